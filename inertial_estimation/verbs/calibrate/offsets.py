# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate offsets``: what FT sensors read without load, from the model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.verbs.calibrate.common_options import (
    add_outputs,
    add_sensors,
    not_written,
)
from inertial_estimation.verbs.calibrate.log_options import (
    LEFT,
    add_bag,
    add_robot,
    check_files,
    save,
    say_support,
    settings_of,
    stretch_of,
    time_range,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.logs.offset_calibration import OffsetCalibration

NAMES = {'supports': '--support', 'sensors': '--ft', 'accept_split': '--accept-split'}
"""What arguments of the library are called here."""


def add(ways: Any) -> None:
    """Add the way that finds offsets while supports carry the robot."""
    way = add_verb(
        ways, 'offsets', 'offsets of FT sensors from the model, while supports carry the robot',
        'stand.mcap --robot robot.urdf --config node.yaml --support l_sole --out ft.yaml',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'find what each FT sensor reads besides what the model says, while nothing but the '
        'supports touches the robot. One support tells every offset. Several share the load in a '
        'way that nothing tells: sums and differences of sensors are told then, single offsets '
        'only with --accept-split. Instants in which the robot moves or is touched are left out '
        'and counted. Hold it in several poses, and the offset is told from errors of the model'
    )
    add_bag(way)
    add_robot(way)
    way.add_argument(
        '--support', nargs='+', default=[], metavar='FRAME',
        help='all that carries and touches the robot (default: fixed_link of the parameter file)',
    )  # fmt: skip
    add_sensors(way, 'FT sensors whose offsets are wanted', 'all that say something')
    way.add_argument(
        '--accept-split', action='store_true',
        help='of several supports, take the smallest wrenches that add up for true; what rests on '
        'it is marked (default: it is refused)',
    )  # fmt: skip
    way.add_argument(
        '--moving', action='store_true',
        help='use instants in motion as well, and do not look for touches: the model tells what '
        'motion does as well as the derivatives are (default: only still ones)',
    )  # fmt: skip
    add_outputs(way, LEFT)
    way.set_defaults(run=_run, names=NAMES)


def _run(chosen: argparse.Namespace) -> None:
    """Find offsets."""
    from inertial_estimation.logs.offset_calibration import (
        OffsetCalibrationRequest,
        calibrate_offsets,
    )
    from inertial_estimation.logs.offset_calibration_tables import offset_dict, offset_tables
    from inertial_estimation.verbs.calibrate import picture

    check_files(chosen)
    part = stretch_of(chosen)
    request = OffsetCalibrationRequest(
        tuple(chosen.support),
        tuple(chosen.ft),
        time_range(part),
        accept_split=chosen.accept_split,
        moving=chosen.moving,
    )
    urdf = files.load_urdf(chosen.robot)
    settings = settings_of(chosen)
    say_support(chosen, settings)
    with progress_bars() as progress:
        result = calibrate_offsets(part.path, urdf, settings, request, progress)
    files.write_json(chosen.json, offset_dict(result) | {'support_assumed': not chosen.support})
    if chosen.picture is not None:
        picture.draw(_drawn(result), chosen.picture)
    show(*(table(*found) for found in offset_tables(result)))
    for note, sensors in _notes(result).items():
        show(f'[yellow]note:[/] {escape(f"{sensors}: {note}")}')
    for sensor, reason in result.found.silent.items():
        show(f'[yellow]not found:[/] {escape(f"{sensor}: {reason}")}')
    # At the end: what was found is seen even if it does not belong into that file.
    if chosen.out is not None and result.doubts and not chosen.support:
        carrying = result.found.supports[0]
        raise not_written(
            chosen.out, result.doubts,
            f'name all that carries the robot with --support, or --support {carrying} if it '
            'does so alone',
        )  # fmt: skip
    save(chosen.out, result.robot.name, result.calibrations, keeps_slopes=True)


def _notes(result: OffsetCalibration) -> dict[str, str]:
    """Return what whoever uses the offsets must know, each with the sensors it is about."""
    found: dict[str, list[str]] = {}
    for k, sensor in enumerate(result.robot.ft_sensors):
        for note in result.notes(k) if result.found.found[k] else ():
            found.setdefault(note, []).append(sensor.name)
    return {note: ', '.join(sensors) for note, sensors in found.items()}


def _drawn(result: OffsetCalibration) -> list[Any]:
    """Return what is left of the readings of each sensor, before and after."""
    from inertial_estimation.verbs.calibrate.picture import Residuals

    found = result.found
    return [
        Residuals(
            sensor.name,
            result.times,
            found.differences[:, k] - result.before[sensor.name].offset,
            found.differences[:, k] - found.offsets[k],
            found.instants.used[:, k],
        )
        for k, sensor in enumerate(result.robot.ft_sensors)
        if found.found[k]
    ]
