# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate temperature``: what FT sensors read as they warm up."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.errors import CallError
from inertial_estimation.verbs.calibrate.common_options import add_outputs, add_sensors
from inertial_estimation.verbs.calibrate.log_options import (
    LEFT,
    RobotLog,
    add_bag,
    add_robot,
    add_support,
    check_files,
    read_log,
    save,
    say_support,
    settings_of,
    stretch_of,
    time_range,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inertial_estimation.logs.thermal_calibration import ThermalResult

NAMES = {
    'topics': '--temperature-topic', 'least_range': '--least-change', 'support': '--support',
    'supports': '--support', 'sensors': '--ft',
}  # fmt: skip
"""What arguments of the library are called here."""


def add(ways: Any) -> None:
    """Add the way that finds temperature coefficients."""
    way = add_verb(
        ways, 'temperature', 'temperature coefficients of FT sensors, from a log in which they '
        'warm up or cool down while one contact carries the robot',
        'warm_up.mcap --robot robot.urdf --config robot.yaml '
        '--temperature-topic l_leg_ft=/l_leg/temperature',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'fit what a degree adds to each component of FT sensors, and the offset that goes with '
        'it. A log is refused in which the temperature hardly changes, or goes evenly with time '
        'or with the load'
    )
    add_bag(way)
    add_robot(way)
    add_support(way)
    add_sensors(way, 'FT sensors to fit', 'all that have a temperature')
    way.add_argument(
        '--temperature-topic', action='append', default=[], metavar='SENSOR=TOPIC',
        help='sensor_msgs/Temperature topic of an FT sensor, repeatable (default: those of the '
        'parameter file)',
    )  # fmt: skip
    way.add_argument(
        '--reference-temperature', type=float, metavar='T',
        help='temperature at which nothing is added [degrees C] (default: the mean of the log)',
    )  # fmt: skip
    way.add_argument(
        '--least-change', type=float, default=2.0, metavar='K',
        help='by which a temperature must change at least (default: %(default)s)',
    )  # fmt: skip
    add_outputs(way, LEFT)
    way.set_defaults(run=_run, names=NAMES)


def _run(chosen: argparse.Namespace) -> None:
    """Fit temperature coefficients."""
    from inertial_estimation.calibration.temperature import TemperatureSettings
    from inertial_estimation.logs.calibration_figures import thermal_dict, thermal_tables
    from inertial_estimation.logs.thermal_calibration import calibrate_temperature

    topics = _topics(chosen.temperature_topic)
    settings = TemperatureSettings(least_range=chosen.least_change)
    check_files(chosen)
    node = settings_of(chosen)
    say_support(chosen, node)
    with progress_bars() as progress:
        log = read_log(chosen, node, (time_range(stretch_of(chosen)),), progress)
        warmth = _temperatures(chosen, topics, log)
        results = calibrate_temperature(
            log.predicted, warmth, log.calibrations, settings, chosen.reference_temperature,
            chosen.ft,
        )  # fmt: skip
    _write(chosen, log, results)
    files.write_json(chosen.json, thermal_dict(results))
    show(*(table(*found) for found in thermal_tables(results)))
    for result in results:
        show(*(f'[yellow]note:[/] {escape(f"{result.name}: {note}")}' for note in result.notes))


def _topics(given: Sequence[str]) -> dict[str, str]:
    """Return topics by sensor."""
    found = {}
    for one in given:
        sensor, equals, topic = one.partition('=')
        if not (sensor and equals and topic):
            raise CallError(
                f"--temperature-topic {one}: expected SENSOR=TOPIC, as 'l_leg_ft=/l_leg/t'"
            )
        found[sensor] = topic
    return found


def _temperatures(
    chosen: argparse.Namespace, topics: dict[str, str], log: RobotLog
) -> NDArray[Any]:
    """Return the temperatures of the sensors at the samples, (n, n_fts)."""
    import numpy as np

    from inertial_estimation.logs.thermal_calibration import read_temperatures

    samples, names = log.predicted.samples, list(log.calibrations)
    read = read_temperatures(stretch_of(chosen).path, topics, names, samples.stamp_ns)
    if samples.ft_temperatures is None:
        return read
    return np.where(np.isfinite(read), read, samples.ft_temperatures)


def _write(chosen: argparse.Namespace, log: RobotLog, results: Sequence[ThermalResult]) -> None:
    """Write calibration file and picture, if asked to."""
    from inertial_estimation.logs.calibration_figures import date_of
    from inertial_estimation.logs.thermal_calibration import calibration_of
    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

    date, predicted = date_of(log.origin_ns), log.predicted
    found = {
        result.name: calibration_of(
            result, log.calibrations[result.name], support=predicted.support, date=date
        )
        for result in results
    }
    save(chosen.out, log.robot.name, found)
    if chosen.picture is not None:
        drawn = [
            Residuals(r.name, predicted.times, r.residuals_before, r.residuals, r.fit.used)
            for r in results
        ]
        draw(drawn, chosen.picture)
