# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration from the log of a robot: offsets, affine, temperature, tool."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from inertial_estimation.calibration.calibration_file import SensorCalibration, iso_date
from inertial_estimation.calibration.configured_estimator import (
    build_estimator,
    sensor_calibrations,
)
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.residual_statistics import USUAL_BIAS
from inertial_estimation.calibration.sensor_fits import (
    PredictedWrenches,
    SensorFit,
    calibrate_affine,
    calibrate_temperature,
)
from inertial_estimation.calibration.support_loads import support_loads
from inertial_estimation.calibration.tool import fit_tool
from inertial_estimation.cli import files
from inertial_estimation.cli.calibrate import KEPT_SLOPES, Result, finish
from inertial_estimation.cli.render import escape, progress_bars, show
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, CallError
from inertial_estimation.findings import Level, raise_errors
from inertial_estimation.logs.checks import urdf_limits
from inertial_estimation.logs.log import Log, LogSlice, TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.sensor_log import pair_on_robot, read_tool_log
from inertial_estimation.logs.table_formats import Layout
from inertial_estimation.model.arguments import indices
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

MAX_SAMPLES = 20_000
"""Longer ranges are thinned for offsets: constants need no more."""
MAX_FITTED = 5000
"""Of the samples whose readings are predicted."""


def offsets(chosen: argparse.Namespace) -> None:
    """Identify offsets from the model."""
    robot, settings, calibrations = _robot(chosen)
    part = LogSlice.parse(chosen.log)
    log = _open(chosen, robot, settings, [part]).thinned(MAX_SAMPLES)
    supports, names = tuple(chosen.support) or (settings.fixed_link,), list(calibrations)
    felt = None
    if log.touches is not None:
        known = {robot.frame(one, f"'supports' names '{one}'")[0] for one in supports}
        others = [
            any(robot.frame(contact.frame)[0] not in known for contact in contacts)
            for contacts in log.touches.sets
        ]
        felt = np.array(others, dtype=bool)[log.touches.rows]
    try:
        found = offset_from_model(
            build_estimator(settings, robot), log.without_frozen(), supports,
            sensors=chosen.ft or None, accept_split=chosen.accept_split, felt=felt,
            noisy=settings.frozen_after > 0.0,
        )  # fmt: skip
    except CalibrationError:
        log.require_derivatives()
        raise
    findings = [
        replace(one, level=Level.ERROR) if one.code == 'second_support' else one
        for one in found.findings
    ]
    fields = {'offset': found.offsets, 'spread': found.spread, 'deviation': found.deviations,
              'samples': found.n_samples, 'unique': found.unique, 'assumed': found.assumed,
              'temperature': found.temperatures}  # fmt: skip
    changed = found.calibrations(calibrations, iso_date(log.samples.stamp_ns[0]))
    results = {}
    for name, calibration in changed.items():
        figures = {key: values[names.index(name)] for key, values in fields.items()}
        if name in found.poses:
            figures['poses'] = found.poses[name]._asdict()
        results[name] = Result(calibration, figures)
    keys = ('supports', 'left_out', 'silent', 'undetermined')
    common = {key: getattr(found, key) for key in keys} | {'support_assumed': not chosen.support}
    left_out = ', '.join(f'{count} {reason}' for reason, count in found.left_out.items())
    lines = [f'samples left out: {left_out}']
    lines += [escape(f'not found: {name}: {reason}') for name, reason in found.silent.items()]
    finish(
        chosen, robot.name, results, findings, others=common, tables=lines, keeps=KEPT_SLOPES,
        temperature='degC',
    )  # fmt: skip


def affine(chosen: argparse.Namespace) -> None:
    """Fit matrices and offsets to predicted wrenches."""
    parts = [LogSlice.parse(chosen.log)]
    if chosen.validate is not None:
        parts.append(LogSlice.parse(chosen.validate))
        if parts[1].path.resolve() != parts[0].path.resolve():
            raise CallError(f"'{parts[1]}' of --validate is no part of '{parts[0].path}'")
        if parts[1].overlaps(parts[0]):
            raise CallError(f"'{parts[1]}' of --validate overlaps '{parts[0]}'")
    robot, before, predicted = _predict(chosen, parts)
    inside, *test = [_range(one).mask(predicted.times) for one in parts]
    found, refused = calibrate_affine(
        predicted, before, inside, test=test[0] if test else None, sensors=chosen.ft
    )
    _finish_fits(chosen, robot, found, refused)


def temperature(chosen: argparse.Namespace) -> None:
    """Fit temperature coefficients to predicted wrenches."""
    robot, before, predicted = _predict(chosen, [LogSlice.parse(chosen.log)])
    found = calibrate_temperature(predicted, before, sensors=chosen.ft)
    _finish_fits(chosen, robot, found, {}, deviations='N/K, Nm/K')


def tool(chosen: argparse.Namespace) -> None:
    """Identify a tool from free motion."""
    part = LogSlice.parse(chosen.log)
    robot, settings, calibrations = _robot(chosen)
    pair = pair_on_robot(robot, settings, chosen.ft, chosen.imu)
    before, bias = calibrations[chosen.ft], chosen.accelerometer_offset
    log = read_tool_log(part.path, pair, _range(part), before, bias or (0.0, 0.0, 0.0))
    fit = fit_tool(
        log.motion, direction=pair.direction, inertia=chosen.inertia,
        max_delay=chosen.max_delay, bias_deviation=0.0 if bias else USUAL_BIAS, name=chosen.ft,
    )  # fmt: skip
    known = fit.delay_deviation < inf
    figures = {key: value for key, value in fit._asdict().items()
               if key not in ('residuals', 'used')}  # fmt: skip
    figures |= {'samples': int(fit.used.sum()), 'disturbed': int((~fit.used).sum()),
                'delay': fit.delay if known else None}  # fmt: skip
    lines = []
    if known and abs(fit.delay) > fit.delay_deviation:
        offset = pair.imu_time_offset - fit.delay
        lines.append(f'time_offset of the IMU, if the FT sensor has none: {offset:.5f} s')
    result = Result(fit.calibration(before, iso_date(log.origin_ns)), figures)
    finish(
        chosen, robot.name, {chosen.ft: result}, [*fit.findings(chosen.ft)], tables=lines,
        keeps=KEPT_SLOPES, spreads='m/s^2',
    )  # fmt: skip


def _finish_fits(
    chosen: argparse.Namespace,
    robot: Robot,
    found: Sequence[SensorFit],
    refused: Mapping[str, str],
    **units: str,
) -> None:
    results: dict[str, Result] = {}
    for one in found:
        figures = {key: value for key, value in one.fit._asdict().items() if key != 'used'}
        if 'correction' in figures and np.array_equal(figures['correction'], figures['matrix']):
            del figures['correction']  # of no former matrix
        figures |= {'samples': int(one.used.sum()), 'assumed': one.assumed}
        figures |= {f'test_{key}': value for key, value in (one.test or {}).items()}
        results[one.name] = Result(one.calibration, figures)
    finish(
        chosen, robot.name, results, [finding for one in found for finding in one.findings],
        others={'refused': refused}, tables=[escape(f'not fitted: {reason}')
                                             for reason in refused.values()], **units,
    )  # fmt: skip


def _predict(
    chosen: argparse.Namespace, parts: Sequence[LogSlice]
) -> tuple[Robot, dict[str, SensorCalibration], PredictedWrenches]:
    """Return robot, former calibrations, and predictions smoothed in hindsight."""
    robot, settings, calibrations = _robot(chosen)
    settings = in_hindsight(settings)
    log = _open(chosen, robot, settings, parts)
    for name, stream in log.statistics.fts.items() if log.statistics else ():
        if stream.invalid:
            show(escape(f'{name}: {stream.invalid} samples of the log have no valid reading'))
    predicted = predict_wrenches(log, robot, settings, chosen.support)
    return robot, calibrations, predicted


def in_hindsight(settings: EstimatorSettings) -> EstimatorSettings:
    """Return settings that filter readings and motion alike, without delay."""
    used = settings.filter
    if used.kind == 'kalman':
        return settings
    whole = replace(used, kind='savitzky_golay', delay=0.5 * used.window, smooth_readings=True)
    return replace(settings, filter=whole)


def predict_wrenches(
    recording: Log, robot: Robot, settings: EstimatorSettings, support: str = ''
) -> PredictedWrenches:
    """Predict FT readings from motion and inertial parameters; support: default the fixed link."""
    part = recording.thinned(MAX_FITTED)
    samples = part.without_frozen()
    noise = np.array([settings.ft_of(one.name).noise for one in robot.ft_sensors]).reshape(-1, 6)
    if settings.filter.smooth_readings and len(recording.times) > 1:
        count = settings.filter.window / float(np.median(np.diff(recording.times)))
        # Variance of the middle of a cubic polynomial over many samples, times their number.
        noise = noise * min(1.0, np.sqrt(9.0 / 4.0 / count))
    support = support or settings.fixed_link
    loads = support_loads(build_estimator(settings, robot), samples, [support])
    if not np.isfinite(samples.ft_readings - loads.readings).all(axis=2).any():
        recording.require_derivatives()
    return PredictedWrenches(
        samples, part.times, loads.readings, loads.assumed, loads.sides, support, noise,
        settings.frozen_after > 0.0,
    )  # fmt: skip


def _robot(
    chosen: argparse.Namespace,
) -> tuple[Robot, EstimatorSettings, dict[str, SensorCalibration]]:
    """Return the robot of --robot and --config, settings, and former calibrations by sensor."""
    settings = EstimatorSettings.from_yaml(chosen.config)
    if chosen.calibration is not None:
        settings = replace(settings, calibration_file=chosen.calibration)
    urdf = files.load_urdf(chosen.robot)
    with files.naming(chosen.robot, chosen.config):
        robot = build_robot(settings, urdf)
    return robot, settings, sensor_calibrations(
        settings, robot, new_file=chosen.calibration is None
    )  # fmt: skip


def _open(
    chosen: argparse.Namespace,
    robot: Robot,
    settings: EstimatorSettings,
    parts: Sequence[LogSlice],
) -> Log:
    """Return the log of a robot on known supports, from the first to the last of its parts."""
    if settings.fixed_link and not chosen.support:
        show(escape(f'support: fixed_link {settings.fixed_link}, assumed the only contact'))
    elif not chosen.support:
        raise CallError('name --support, or give a fixed_link')
    indices('sensors', chosen.ft, 'FT sensor', [one.name for one in robot.ft_sensors])
    supports = [chosen.support] if isinstance(chosen.support, str) else chosen.support
    for one in filter(None, supports):
        robot.frame(one, f"'supports' names '{one}'")
    layout = Layout.from_yaml(chosen.layout) if chosen.layout else None
    with progress_bars() as progress:
        log = open_log(parts[0].path, robot, settings, layout=layout, progress=progress)
    ranges = [_range(one) for one in parts]
    for one in ranges:
        log.within(one)  # Raises if it is empty.
    log = log.within(TimeRange(min(x.start for x in ranges), max(x.stop for x in ranges)))
    raise_errors(urdf_limits(robot, log.samples, ()))
    return log


def _range(part: LogSlice) -> TimeRange:
    """Return a part as times after the first FT message."""
    # Joint states may come before the first FT message.
    return TimeRange(part.start or -inf, part.stop)
