# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration from the log of a robot: offsets, affine, temperature, tool."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from inertial_estimation.cli import files
from inertial_estimation.cli.calibrate_options import (
    DIRECTIONS,
    OPTIONS,
    add_method,
    check_files,
    draw,
    figures_tables,
    finish,
    former,
    robot_name,
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
    of_robot = ('log', '--robot', '--config', '--calibration')
    shared = (*of_robot, '--support', '--fts', '--out', '--picture')
    add_method(
        ways, 'offsets', 'offsets from the model, while supports carry the robot',
        'stand.mcap --robot robot.urdf --config node.yaml --support l_sole --out ft.yaml',
        _offsets, (
            *of_robot, '--fts', '--out', '--picture',
            ('--support', {'nargs': '+', 'default': [], 'metavar': 'FRAME',
                           'help': 'all contacts of the robot (default: fixed_link)'}),
            ('--accept-split', {'action': 'store_true', 'help':
             'of several supports, assume the smallest wrenches that add up'}),
            ('--moving', {'action': 'store_true', 'help': 'use samples in motion as well'}),
        ), of_robot[1:3],
    )  # fmt: skip
    add_method(
        ways, 'affine', 'matrices and offsets from the model, while one contact carries the robot',
        'swing.mcap@5:40 --validate swing.mcap@40:75 --robot robot.urdf --config robot.yaml',
        _affine, (
            *shared, '--blocks',
            ('--validate', {'metavar': 'LOG@FROM:TO',
                            'help': 'other part of the log, to test the result'}),
            ('--prior-weight', {'type': float, 'metavar': 'W', 'help':
             'of the former matrix [N^2], inf: keep it (default: by cross-validation)'}),
            ('--prior-deviation', {'type': float, 'default': 0.1, 'metavar': 'D', 'help':
             'of elements of the former matrix (default: %(default)s)'}),
            ('--accept-doubts', {'action': 'store_true', 'help': 'write it despite errors'}),
        ), of_robot[1:3],
    )  # fmt: skip
    add_method(
        ways, 'temperature', 'temperature coefficients, while one contact carries the robot',
        'warm_up.mcap --robot robot.urdf --config robot.yaml '
        '--temperature-topic l_leg_ft=/l_leg/temperature',
        _temperature, (
            *shared,
            ('--temperature-topic', {'action': 'append', 'default': [], 'metavar': 'SENSOR=TOPIC',
             'help': 'sensor_msgs/Temperature of a sensor (default: of --config)'}),
            ('--reference-temperature', {'type': float, 'metavar': 'T', 'help':
             'at which nothing is added [degrees Celsius] (default: mean of the log)'}),
            ('--least-change', {'type': float, 'default': 2.0, 'metavar': 'K',
                                'help': 'of the temperature (default: %(default)s)'}),
        ), of_robot[1:3],
    )  # fmt: skip
    add_method(
        ways, 'tool', 'mass of a tool, FT offset and delay of an IMU on it, from free motion',
        'free.mcap --robot arm.urdf --config arm.yaml --ft wrist_ft --imu tool_imu', _tool, (
            *of_robot, '--ft', '--imu-rpy', '--direction', '--accelerometer-offset', '--blocks',
            '--robot-name', '--out', '--picture',
            ('--imu', {'required': True, 'metavar': 'NAME|TOPIC',
                       'help': 'IMU on the tool: its name with --config, else its topic'}),
            ('--readings', {'metavar': 'TOPIC', 'help': 'of the FT sensor, without --config'}),
            ('--imu-xyz', {**OPTIONS['--imu-rpy'], 'metavar': ('X', 'Y', 'Z'), 'help':
             "origin of the IMU in the sensor's frame, without --config [m]"}),
            ('--inertia', {'action': 'store_true', 'help': 'identify the inertia too'}),
            ('--most-delay', {'type': float, 'default': 0.05, 'metavar': 'S',
                              'help': 'of the IMU, either way (default: %(default)s)'}),
        ),
    )  # fmt: skip


def _offsets(chosen: argparse.Namespace) -> None:
    """Identify offsets from the model."""
    import numpy as np

    from inertial_estimation.calibration.configured_estimator import build_estimator, noisy_sensors
    from inertial_estimation.calibration.offset_from_model import offset_from_model
    from inertial_estimation.calibration.still_samples import Stillness
    from inertial_estimation.findings import Level

    with progress_bars() as progress:
        log = _Log.read(chosen, lambda settings: settings, progress)
        robot, settings = log.robot, log.settings
        supports = tuple(chosen.support) or (settings.fixed_link,)
        part = log.recording.within(_range(_part(chosen))).thinned(MAX_SAMPLES)
        names = [sensor.name for sensor in robot.ft_sensors]
        samples, felt = part.without_frozen(names), None
        if part.touches is not None:
            known = {robot.frame(support, f"'supports' names '{support}'")[0]
                     for support in supports}  # fmt: skip
            felt = np.array([
                any(robot.frame(contact.frame)[0] not in known for contact in contacts)
                for contacts in part.touches.sets
            ], dtype=bool)[part.touches.rows]  # fmt: skip
        estimator = build_estimator(settings, robot)
        try:
            found = offset_from_model(
                estimator, samples, supports, sensors=chosen.ft or None,
                accept_split=chosen.accept_split, felt=felt,
                stillness=Stillness.none() if chosen.moving else Stillness(),
                length_scale=settings.length_scale, noisy=noisy_sensors(settings, robot),
            )  # fmt: skip
        except CalibrationError:
            log.recording.require_derivatives()
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
    rows = {names[k]: k for k in np.flatnonzero(found.found)}
    sensors = {name: {key: values[k] for key, values in fields.items()}
               for name, k in rows.items()}  # fmt: skip
    poses = {name: {'poses': found.poses[name]._asdict() if name in found.poses else None}
             for name in rows}  # fmt: skip
    keys = ('supports', 'is_unique', 'left_out', 'silent', 'undetermined')
    figures = {key: getattr(found, key) for key in keys} | {
        'support_assumed': not chosen.support,
        'sensors': {name: sensors[name] | poses[name] for name in rows},
    }
    shown = {f'{name} {key}': sensors[name][key] for name in rows for key in ('offset', 'spread')}
    tables = [*figures_tables('Offsets', shown), escape(f'samples left out: {found.left_out}')]
    tables += [escape(f'not found: {name}: {reason}') for name, reason in found.silent.items()]
    draw(chosen.picture, part.times, {
        name: (found.differences[:, k] - log.calibrations[name].offset,
               found.differences[:, k] - found.offsets[k], found.used[:, k])
        for name, k in rows.items()
    })  # fmt: skip
    finish(
        chosen, robot.name, found.calibrations(log.calibrations, log.date), findings,
        figures, tables, insists=chosen.out is None, keeps_slopes=True,
    )  # fmt: skip


def _affine(chosen: argparse.Namespace) -> None:
    """Fit matrices and offsets to predicted wrenches."""
    import numpy as np

    from inertial_estimation.calibration.sensor_fits import calibrate_affine
    from inertial_estimation.logs.log import LogSlice
    from inertial_estimation.logs.offsets import in_hindsight

    parts = [_part(chosen)]
    if chosen.validate is not None:
        parts.append(LogSlice.parse(chosen.validate))
        if parts[1].path.resolve() != parts[0].path.resolve():
            raise CallError(f"'{parts[1]}' of --validate is no part of '{parts[0].path}'")
        if parts[1].overlaps(parts[0]):
            raise CallError(f"'{parts[1]}' of --validate overlaps '{parts[0]}'")
    with progress_bars() as progress:
        log = _Log.read(chosen, in_hindsight, progress)
        ranges = [_range(one) for one in parts]
        predicted = log.predict(chosen, ranges)
        masks = [one.mask(predicted.times) for one in ranges]
        found, refused = calibrate_affine(
            predicted, log.calibrations, masks[0], test=masks[1] if masks[1:] else None,
            sensors=chosen.ft, weight=chosen.prior_weight,
        )  # fmt: skip
    k, warmth = list(log.calibrations).index, predicted.samples.ft_temperatures
    mean = {}
    for one in found:
        known = np.array([]) if warmth is None else warmth[masks[0], k(one.name)]
        known = known[np.isfinite(known)]
        mean[one.name] = float(known.mean()) if len(known) else float('nan')
    _finish_fits(
        chosen, log, predicted, found,
        lambda one, before: one.fit.calibration(
            before, predicted.support, log.date, mean[one.name], one.notes
        ), refused, insists=chosen.accept_doubts or chosen.out is None,
    )  # fmt: skip


def _temperature(chosen: argparse.Namespace) -> None:
    """Fit temperature coefficients to predicted wrenches."""
    import numpy as np

    from inertial_estimation.calibration.sensor_fits import calibrate_temperature
    from inertial_estimation.logs.offsets import in_hindsight
    from inertial_estimation.logs.raw_log import read_temperatures

    topics = {}
    for text in chosen.temperature_topic:
        sensor, equals, topic = text.partition('=')
        if not (sensor and equals and topic):
            raise CallError(f'--temperature-topic {text}: expected SENSOR=TOPIC')
        topics[sensor] = topic
    part = _part(chosen)
    with progress_bars() as progress:
        log = _Log.read(chosen, in_hindsight, progress)
        predicted = log.predict(chosen, [_range(part)])
        samples = predicted.samples
        warmth = read_temperatures(part.path, topics, list(log.calibrations), samples.stamp_ns)
        if samples.ft_temperatures is not None:
            warmth = np.where(np.isfinite(warmth), warmth, samples.ft_temperatures)
        found = calibrate_temperature(
            predicted, warmth, log.calibrations, reference=chosen.reference_temperature,
            sensors=chosen.ft,
        )  # fmt: skip
    _finish_fits(
        chosen, log, predicted, found,
        lambda one, before: one.fit.calibration(before, predicted.support, log.date, one.notes),
    )  # fmt: skip


def _finish_fits(
    chosen: argparse.Namespace,
    log: _Log,
    predicted: PredictedWrenches,
    found: list[SensorFit],
    calibration: Callable[[SensorFit, SensorCalibration], SensorCalibration],
    refused: dict[str, str] | None = None,
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
        if one.tested is not None:
            before, after = one.test_rms
            entry['test'] = {'rms_before': before, 'rms': after, 'samples': int(one.tested.sum())}
            shown |= {f'test {key}': value for key, value in entry['test'].items()}
        tables += figures_tables(one.name, shown)
        figures[one.name] = entry
    draw(chosen.picture, predicted.times, {
        one.name: (one.residuals_before, one.residuals, one.used) for one in found
    })  # fmt: skip
    if refused is not None:
        tables += [escape(f'not fitted: {reason}') for reason in refused.values()]
        figures['refused'] = refused
    finish(
        chosen, log.robot.name,
        {one.name: calibration(one, log.calibrations[one.name]) for one in found},
        [finding for one in found for finding in one.findings], figures, tables, insists=insists,
    )  # fmt: skip


def _tool(chosen: argparse.Namespace) -> None:
    """Identify a tool from free motion."""
    from inertial_estimation.calibration.calibration_file import (
        SensorCalibration,
        require_sensor_axes,
    )
    from inertial_estimation.calibration.configured_estimator import sensor_calibrations
    from inertial_estimation.calibration.tool import fit_tool
    from inertial_estimation.logs.raw_log import ToolSource, read_tool_log, source_on_robot
    from inertial_estimation.model.configured_robot import build_robot
    from inertial_estimation.model.urdf import pose_from_xyz_rpy

    part = _part(chosen)
    check_files(chosen, (part.path, chosen.robot, *files.config_files(chosen.config)))
    if bool(chosen.robot) != bool(chosen.config):
        raise CallError('--robot and --config go together')
    if chosen.config:
        for option in ('readings', 'imu_rpy', 'imu_xyz', 'direction'):
            if getattr(chosen, option):
                raise CallError(f'--{option.replace("_", "-")} is not for --config')
        settings = _settings(chosen)
        robot = build_robot(settings, files.load_urdf(chosen.robot))
        source = source_on_robot(robot, settings, chosen.ft, chosen.imu)
        before = sensor_calibrations(settings, robot, new_file=True)[chosen.ft]
        name = chosen.robot_name or robot.name
    else:
        if not chosen.readings:
            raise CallError('name --config, or --readings')
        zero = [0.0] * 3
        pose = pose_from_xyz_rpy(chosen.imu_xyz or zero, chosen.imu_rpy or zero)
        direction = DIRECTIONS[chosen.direction or 'child_to_parent']
        source = ToolSource(chosen.readings, chosen.imu, pose, direction)
        before = former(chosen) or SensorCalibration()
        require_sensor_axes(chosen.ft, before.axes)
        name = robot_name(chosen)
    log = read_tool_log(
        part.path, source, _range(part), before, chosen.accelerometer_offset or (0.0, 0.0, 0.0)
    )
    fit = fit_tool(
        log.motion, direction=source.direction, inertia=chosen.inertia,
        max_delay=chosen.most_delay, name=chosen.ft,
    )  # fmt: skip
    series = ('times', 'residuals', 'residuals_before', 'used')
    figures = {key: value for key, value in fit._asdict().items() if key not in series}
    figures |= {'samples': int(fit.used.sum()), 'disturbed': fit.n_disturbed}
    known = fit.delay_deviation < inf
    if not known:
        figures['delay'] = None
    tables = figures_tables(f'Tool on {chosen.ft}', figures)
    if known and abs(fit.delay) > fit.delay_deviation:
        offset = source.imu_time_offset - fit.delay
        tables.append(f'time_offset of the IMU, if the FT sensor has none: {offset:.5f}')
    draw(chosen.picture, fit.times, {chosen.ft: (fit.residuals_before, fit.residuals, fit.used)})
    calibration = fit.calibration(before, _date(log.origin_ns))
    finish(chosen, name, {chosen.ft: calibration}, (), figures, tables, keeps_slopes=True)


class _Log(NamedTuple):
    """Log of a robot."""

    robot: Robot
    settings: EstimatorSettings
    recording: Log
    calibrations: dict[str, SensorCalibration]
    """Former, in the order of the robot's FT sensors."""
    date: str

    @classmethod
    def read(
        cls,
        chosen: argparse.Namespace,
        adapt: Callable[[EstimatorSettings], EstimatorSettings],
        progress: Callable[[str, float], None],
    ) -> _Log:
        """Read the log of --robot and --config."""
        from inertial_estimation.calibration.configured_estimator import sensor_calibrations
        from inertial_estimation.logs.open_log import open_log
        from inertial_estimation.model.configured_robot import build_robot

        part = _part(chosen)
        check_files(chosen, (part.path, chosen.robot, *files.config_files(chosen.config)))
        settings = adapt(_settings(chosen))
        if settings.fixed_link and not chosen.support:
            show(escape(f'support: fixed_link {settings.fixed_link}, assumed the only contact'))
        elif not chosen.support:
            raise CallError('name --support, or give a fixed_link')
        urdf = files.load_urdf(chosen.robot)
        with files.naming(chosen.robot):
            robot = build_robot(settings, urdf)
        calibrations = sensor_calibrations(settings, robot, new_file=True)
        recording = open_log(part.path, robot, settings, progress=progress)
        first = recording.within(_range(part)).samples.stamp_ns[0]
        return cls(robot, settings, recording, calibrations, _date(int(first)))

    def predict(self, chosen: argparse.Namespace, ranges: list[TimeRange]) -> PredictedWrenches:
        """Return the predicted wrenches of a part that holds some ranges."""
        from inertial_estimation.logs.log import TimeRange
        from inertial_estimation.logs.offsets import predict_wrenches

        for one in ranges:
            self.recording.within(one)  # Raises if it is empty.
        whole = TimeRange(min(one.start for one in ranges), max(one.stop for one in ranges))
        part = self.recording.within(whole)
        return predict_wrenches(part, self.robot, self.settings, chosen.support)


def _settings(chosen: argparse.Namespace) -> EstimatorSettings:
    """Return the parameters of the node, with the calibration of --calibration."""
    from inertial_estimation.config import EstimatorSettings

    settings = EstimatorSettings.from_yaml(chosen.config)
    if chosen.calibration is None:
        return settings
    chosen.names = {**chosen.names, 'calibration_file': '--calibration'}
    return replace(settings, calibration_file=str(chosen.calibration))


def _part(chosen: argparse.Namespace) -> LogSlice:
    """Return the part of the log."""
    from inertial_estimation.logs.log import LogSlice

    return LogSlice.parse(chosen.log)


def _range(part: LogSlice) -> TimeRange:
    """Return a part as times after the first FT message."""
    from inertial_estimation.logs.log import TimeRange

    # Joint states may come before the first FT message.
    return TimeRange(part.start or -inf, part.stop)


def _date(stamp_ns: int) -> str:
    """Return a stamp as ISO 8601."""
    return datetime.fromtimestamp(stamp_ns // 1_000_000_000, timezone.utc).isoformat()
