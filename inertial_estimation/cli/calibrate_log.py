# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration from the log of a robot: offsets, affine, temperature, tool."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import calibrate_options as options
from inertial_estimation.cli import files
from inertial_estimation.cli.calibrate_options import (
    KEPT_SLOPES,
    add_method,
    check_files,
    figures_tables,
    finish,
)
from inertial_estimation.cli.render import escape, progress_bars, show
from inertial_estimation.errors import CalibrationError, CallError

if TYPE_CHECKING:
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.sensor_fits import PredictedWrenches, SensorFit
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.log import Log, LogSlice, TimeRange
    from inertial_estimation.model.robot import Robot

MAX_SAMPLES = 20_000
"""Longer ranges are thinned for offsets: constants need no more."""


def add(ways: Any) -> None:
    """Add the methods."""
    of_robot = (
        options.LOG, ('--robot', 'URDF', 'robot description', {'required': True}),
        ('--config', 'YAML', 'parameter file of the node', {'required': True}),
        options.CALIBRATION, options.OUT,
    )  # fmt: skip
    fts: options.Option = (
        '--ft', 'SENSOR', 'FT sensors (default: all that can be calibrated)',
        {'nargs': '+', 'default': []},
    )  # fmt: skip
    support = ('--support', 'FRAME', 'the only contact (default: fixed_link)', {'default': ''})
    is_true = {'action': 'store_true'}
    add_method(
        ways, 'offsets', 'offsets from the model, while supports carry the robot',
        'stand.mcap --robot robot.urdf --config node.yaml --support l_sole --out ft.yaml',
        _offsets, *of_robot, fts,
        ('--support', 'FRAME', 'all contacts of the robot (default: fixed_link)',
         {'nargs': '+', 'default': []}),
        ('--accept-split', '', 'of several supports, assume the smallest wrenches that add up',
         is_true),
        ('--moving', '', 'use samples in motion as well', is_true),
    )  # fmt: skip
    add_method(
        ways, 'affine', 'matrices and offsets from the model, while one contact carries the robot',
        'swing.mcap@5:40 --validate swing.mcap@40:75 --robot robot.urdf --config robot.yaml',
        _affine, *of_robot, fts, support,
        ('--validate', 'LOG@FROM:TO', 'other part of the log, to test the result'),
        ('--prior-weight', 'W',
         'of the former matrix [N^2], inf: keep it (default: by cross-validation)',
         {'type': float}),
        ('--accept-doubts', '', 'write it despite errors', is_true),
    )  # fmt: skip
    add_method(
        ways, 'temperature', 'temperature coefficients, while one contact carries the robot',
        'warm_up.mcap --robot robot.urdf --config robot.yaml '
        '--temperature-topic l_leg_ft=/l_leg/temperature',
        _temperature, *of_robot, fts, support,
        ('--temperature-topic', 'FT=TOPIC',
         'sensor_msgs/Temperature of a sensor (default: of --config)',
         {'action': 'append', 'default': []}),
        ('--reference-temperature', 'T',
         'at which nothing is added [degrees Celsius] (default: mean of the log)',
         {'type': float}),
    )  # fmt: skip
    add_method(
        ways, 'tool', 'mass of a tool, FT offset and delay of an IMU on it, from free motion',
        'free.mcap --robot arm.urdf --config arm.yaml --ft wrist_ft --imu tool_imu', _tool,
        *of_robot, options.FT, options.BIAS,
        ('--imu', 'NAME', 'IMU on the tool', {'required': True}),
        ('--inertia', '', 'identify the inertia too', is_true),
        ('--most-delay', 'S', 'of the IMU, either way (default: %(default)s)',
         {'type': float, 'default': 0.05}),
    )  # fmt: skip


def _offsets(chosen: argparse.Namespace) -> None:
    """Identify offsets from the model."""
    import numpy as np

    from inertial_estimation.calibration.configured_estimator import build_estimator, noisy_sensors
    from inertial_estimation.calibration.offset_from_model import offset_from_model
    from inertial_estimation.findings import Level

    with progress_bars() as progress:
        robot, settings, calibrations = _robot(chosen)
        log, date = _open(chosen, robot, settings, progress)
        supports = tuple(chosen.support) or (settings.fixed_link,)
        part = log.within(_range(_part(chosen))).thinned(MAX_SAMPLES)
        names, felt = list(calibrations), None
        if part.touches is not None:
            known = {robot.frame(support, f"'supports' names '{support}'")[0]
                     for support in supports}  # fmt: skip
            felt = np.array([
                any(robot.frame(contact.frame)[0] not in known for contact in contacts)
                for contacts in part.touches.sets
            ], dtype=bool)[part.touches.rows]  # fmt: skip
        try:
            found = offset_from_model(
                build_estimator(settings, robot), part.without_frozen(names), supports,
                sensors=chosen.ft or None, accept_split=chosen.accept_split, felt=felt,
                moving=chosen.moving, noisy=noisy_sensors(settings, robot),
            )  # fmt: skip
        except CalibrationError:
            log.require_derivatives()
            raise
    # A support that was named is known to be the only one.
    findings = [
        replace(one, level=Level.ERROR)
        if one.code == 'second_support' and not chosen.support else one
        for one in found.findings
    ]  # fmt: skip
    fields = {'offset': found.offsets, 'spread': found.spread, 'deviation': found.deviations,
              'samples': found.n_samples, 'unique': found.unique, 'assumed': found.assumed,
              'temperature': found.temperatures}  # fmt: skip
    sensors: dict[str, Any] = {}
    for k in np.flatnonzero(found.found):
        sensors[names[k]] = {key: values[k] for key, values in fields.items()}
        poses = found.poses.get(names[k])
        sensors[names[k]]['poses'] = None if poses is None else poses._asdict()
    keys = ('supports', 'is_unique', 'left_out', 'silent', 'undetermined')
    figures = {key: getattr(found, key) for key in keys}
    figures |= {'support_assumed': not chosen.support, 'sensors': sensors}
    shown = {f'{name} {key}': one[key] for name, one in sensors.items()
             for key in ('offset', 'spread')}  # fmt: skip
    tables = [*figures_tables('Offsets', shown), escape(f'samples left out: {found.left_out}')]
    tables += [escape(f'not found: {name}: {reason}') for name, reason in found.silent.items()]
    finish(
        chosen, robot.name, found.calibrations(calibrations, date), findings, figures, tables,
        insists=chosen.out is None, keeps=KEPT_SLOPES,
    )  # fmt: skip


def _affine(chosen: argparse.Namespace) -> None:
    """Fit matrices and offsets to predicted wrenches."""
    import numpy as np

    from inertial_estimation.calibration.sensor_fits import calibrate_affine
    from inertial_estimation.logs.log import LogSlice

    parts = [_part(chosen)]
    if chosen.validate is not None:
        parts.append(LogSlice.parse(chosen.validate))
        if parts[1].path.resolve() != parts[0].path.resolve():
            raise CallError(f"'{parts[1]}' of --validate is no part of '{parts[0].path}'")
        if parts[1].overlaps(parts[0]):
            raise CallError(f"'{parts[1]}' of --validate overlaps '{parts[0]}'")
    ranges = [_range(one) for one in parts]
    with progress_bars() as progress:
        robot, before, predicted, date = _predict(chosen, ranges, progress)
        inside, *test = [one.mask(predicted.times) for one in ranges]
        found, refused = calibrate_affine(
            predicted, before, inside, test=test[0] if test else None, sensors=chosen.ft,
            weight=chosen.prior_weight,
        )  # fmt: skip
    degrees = np.full(len(before), np.nan)
    if predicted.samples.ft_temperatures is not None:
        of_fit = predicted.samples.ft_temperatures[inside]
        known = np.isfinite(of_fit).any(axis=0)
        degrees[known] = np.nanmean(of_fit[:, known], axis=0)
    temperatures = dict(zip(before, degrees.tolist()))
    calibrations = {
        one.name: one.fit.calibration(
            before[one.name], predicted.support, date, temperatures[one.name], one.notes
        )
        for one in found
    }
    insists = chosen.accept_doubts or chosen.out is None
    _finish_fits(chosen, robot, found, calibrations, refused, insists=insists)


def _temperature(chosen: argparse.Namespace) -> None:
    """Fit temperature coefficients to predicted wrenches."""
    import numpy as np

    from inertial_estimation.calibration.sensor_fits import calibrate_temperature
    from inertial_estimation.logs.raw_log import read_temperatures

    topics = {}
    for text in chosen.temperature_topic:
        sensor, equals, topic = text.partition('=')
        if not (sensor and equals and topic):
            raise CallError(f'--temperature-topic {text}: expected FT=TOPIC')
        topics[sensor] = topic
    part = _part(chosen)
    with progress_bars() as progress:
        robot, before, predicted, date = _predict(chosen, [_range(part)], progress)
        samples = predicted.samples
        warmth = read_temperatures(part.path, topics, list(before), samples.stamp_ns)
        if samples.ft_temperatures is not None:
            warmth = np.where(np.isfinite(warmth), warmth, samples.ft_temperatures)
        found = calibrate_temperature(
            predicted, warmth, before, reference=chosen.reference_temperature, sensors=chosen.ft
        )
    calibrations = {
        one.name: one.fit.calibration(before[one.name], predicted.support, date, one.notes)
        for one in found
    }
    _finish_fits(chosen, robot, found, calibrations)


def _finish_fits(
    chosen: argparse.Namespace,
    robot: Robot,
    found: Sequence[SensorFit],
    calibrations: Mapping[str, SensorCalibration],
    refused: Mapping[str, str] | None = None,
    *,
    insists: bool = False,
) -> None:
    """Print and write the fits of some sensors."""
    figures: dict[str, Any] = {}
    tables: list[Any] = []
    for one in found:
        entry = {key: value for key, value in one.fit._asdict().items() if key != 'used'}
        entry |= {'samples': int(one.used.sum()), 'assumed': one.assumed}
        # The matrix over the former one is shown.
        shown = {key: value for key, value in entry.items() if key != 'matrix'}
        if one.test is not None:
            entry['test'] = one.test
            shown |= {f'test {key}': value for key, value in one.test.items()}
        tables += figures_tables(one.name, shown)
        figures[one.name] = entry
    if refused is not None:
        tables += [escape(f'not fitted: {reason}') for reason in refused.values()]
        figures['refused'] = refused
    findings = [finding for one in found for finding in one.findings]
    finish(chosen, robot.name, calibrations, findings, figures, tables, insists=insists)


def _tool(chosen: argparse.Namespace) -> None:
    """Identify a tool from free motion."""
    from inertial_estimation.calibration.tool import fit_tool
    from inertial_estimation.logs.raw_log import iso_date, read_tool_log, source_on_robot

    part = _part(chosen)
    robot, settings, calibrations = _robot(chosen)
    source = source_on_robot(robot, settings, chosen.ft, chosen.imu)
    before = calibrations[chosen.ft]
    log = read_tool_log(
        part.path, source, _range(part), before, chosen.accelerometer_offset or (0.0, 0.0, 0.0)
    )
    fit = fit_tool(
        log.motion, direction=source.direction, inertia=chosen.inertia,
        max_delay=chosen.most_delay, name=chosen.ft,
    )  # fmt: skip
    known = fit.delay_deviation < inf
    figures = {key: value for key, value in fit._asdict().items()
               if key not in ('residuals', 'used')}  # fmt: skip
    figures |= {'samples': int(fit.used.sum()), 'disturbed': int((~fit.used).sum()),
                'delay': fit.delay if known else None}  # fmt: skip
    tables = figures_tables(f'Tool on {chosen.ft}', figures)
    if known and abs(fit.delay) > fit.delay_deviation:
        offset = source.imu_time_offset - fit.delay
        tables.append(f'time_offset of the IMU, if the FT sensor has none: {offset:.5f}')
    calibration = fit.calibration(before, iso_date(log.origin_ns))
    finish(chosen, robot.name, {chosen.ft: calibration}, (), figures, tables, keeps=KEPT_SLOPES)


def _predict(
    chosen: argparse.Namespace, ranges: list[TimeRange], progress: Callable[[str, float], None]
) -> tuple[Robot, dict[str, SensorCalibration], PredictedWrenches, str]:
    """Return robot, former calibrations, predictions smoothed in hindsight, and the date."""
    from inertial_estimation.logs.log import TimeRange
    from inertial_estimation.logs.offsets import in_hindsight, predict_wrenches

    robot, settings, calibrations = _robot(chosen)
    settings = in_hindsight(settings)
    log, date = _open(chosen, robot, settings, progress)
    for one in ranges:
        log.within(one)  # Raises if it is empty.
    whole = TimeRange(min(one.start for one in ranges), max(one.stop for one in ranges))
    predicted = predict_wrenches(log.within(whole), robot, settings, chosen.support)
    return robot, calibrations, predicted, date


def _robot(
    chosen: argparse.Namespace,
) -> tuple[Robot, EstimatorSettings, dict[str, SensorCalibration]]:
    """Return the robot of --robot and --config, settings, and former calibrations by sensor."""
    from inertial_estimation.calibration.configured_estimator import sensor_calibrations
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.model.configured_robot import build_robot

    inputs = (_part(chosen).path, chosen.robot, *files.config_files(chosen.config))
    check_files(chosen, inputs)
    settings = EstimatorSettings.from_yaml(chosen.config)
    if chosen.calibration is not None:
        chosen.names = {**chosen.names, 'calibration_file': '--calibration'}
        settings = replace(settings, calibration_file=str(chosen.calibration))
    urdf = files.load_urdf(chosen.robot)
    with files.naming(chosen.robot):
        robot = build_robot(settings, urdf)
    return robot, settings, sensor_calibrations(settings, robot, new_file=True)


def _open(
    chosen: argparse.Namespace,
    robot: Robot,
    settings: EstimatorSettings,
    progress: Callable[[str, float], None],
) -> tuple[Log, str]:
    """Return the log of a robot on known supports, and the date of its part."""
    from inertial_estimation.logs.open_log import open_log
    from inertial_estimation.logs.raw_log import iso_date

    if settings.fixed_link and not chosen.support:
        show(escape(f'support: fixed_link {settings.fixed_link}, assumed the only contact'))
    elif not chosen.support:
        raise CallError('name --support, or give a fixed_link')
    part = _part(chosen)
    log = open_log(part.path, robot, settings, progress=progress)
    return log, iso_date(int(log.within(_range(part)).samples.stamp_ns[0]))


def _part(chosen: argparse.Namespace) -> LogSlice:
    """Return the part of the log."""
    from inertial_estimation.logs.log import LogSlice

    return LogSlice.parse(chosen.log)


def _range(part: LogSlice) -> TimeRange:
    """Return a part as times after the first FT message."""
    from inertial_estimation.logs.log import TimeRange

    # Joint states may come before the first FT message.
    return TimeRange(part.start or -inf, part.stop)
