# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration by the rigid body beyond a sensor: offset-without-model, matrix, live."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from pinocchio.rpy import rpyToMatrix

from inertial_estimation.calibration.calibration_file import SensorCalibration, others_in, read
from inertial_estimation.calibration.configured_estimator import (
    calibration_path,
    sensor_calibrations,
)
from inertial_estimation.calibration.in_situ_matrix import AddedMass, in_situ_matrix
from inertial_estimation.calibration.in_situ_offset import InSituOffset, in_situ_offset
from inertial_estimation.calibration.session import Session
from inertial_estimation.cli.calibrate import (
    KEPT_SLOPES,
    UNITS,
    Result,
    finish,
    former,
    robot_name,
)
from inertial_estimation.cli.render import escape, records_table, show
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.findings import Level
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.sensor_log import read_body_log

DIRECTIONS = {'child_to_parent': 1, 'parent_to_child': -1}


def offset(chosen: argparse.Namespace) -> None:
    """Identify an offset without a model."""
    before = former(chosen) or SensorCalibration()
    settings = IdentifySettings.from_yaml(chosen.config)
    log = read_body_log(LogSlice.parse(chosen.log).require(), settings, chosen.ft, chosen.imu)
    found = in_situ_offset(
        log.raw, log.accelerations, turning=log.turning, matrix=before.matrix,
        bias=chosen.accelerometer_offset, what=log.name,
    )  # fmt: skip
    _finish_offset(chosen, found, before, log.date, {'log': log.name}, keeps=KEPT_SLOPES)


def matrix(chosen: argparse.Namespace) -> None:
    """Identify a matrix from added masses."""
    given, sets, dates = (*chosen.data, *chosen.validate), [], []
    parts = [LogSlice.parse(log).require() for log, *_ in given]
    for first, second in combinations(parts, 2):
        if first.overlaps(second):
            raise CallError(f"'{first}' and '{second}' of --data or --validate overlap")
    before, settings = former(chosen), IdentifySettings.from_yaml(chosen.config)
    for part, (_, *values) in zip(parts, given, strict=True):
        try:
            mass, *centre = map(float, values)
        except ValueError as error:
            raise CallError(f'data set {part}: {error}') from None
        log = read_body_log(part, settings, chosen.ft, chosen.imu)
        dates.append(log.date)
        sets.append(AddedMass(
            log.name, log.raw, log.accelerations, mass, np.array(centre), log.turning
        ))  # fmt: skip
    bias, n = chosen.accelerometer_offset, len(chosen.data)
    former_matrix = None if before is None else before.matrix
    found = in_situ_matrix(
        sets[:n], rotation=rpyToMatrix(*chosen.imu_rpy), former=former_matrix, bias=bias,
        direction=DIRECTIONS[chosen.direction],
    )  # fmt: skip
    findings = tuple(found.findings(chosen.ft, former_matrix))
    # A wrong matrix makes no channels comparable.
    is_wrong = any(one.level >= Level.ERROR for one in findings)
    metric = former_matrix if is_wrong else found.matrix
    offsets = [*found.offsets, *(one.offset(metric, bias) for one in sets[n:])]
    residuals = [*found.residuals, *[None] * (len(sets) - n)]
    entries = []
    for one, offset, residual in zip(sets, offsets, residuals, strict=True):
        added = found.weigh(offset)
        entries.append({
            'name': one.name, 'added_mass': one.mass, 'found_mass': added.mass,
            'centre': one.centre, 'found_centre': added.centre if one.mass else None,
            'residual_over_noise': residual, **_figures(offset, found.matrix),
        })  # fmt: skip
    figures = {
        'rank': len(found.singular_values),
        'change': None if former_matrix is None else found.change(former_matrix),
        'body_mass': found.body.mass, 'body_first_moment': found.body.first_moment,
        'body_deviations': found.body_deviations, 'matrix': found.matrix,
        'deviations': found.deviations,
    }  # fmt: skip
    columns = {
        'name': 'name', 'added mass [kg]': 'added_mass', 'found mass [kg]': 'found_mass',
        'residual over noise': 'residual_over_noise', 'gap': 'gap', 'samples': 'samples',
    }  # fmt: skip
    shown = [{**entry, 'name': Path(entry['name']).name} for entry in entries]
    notes = [one.text for one in findings]
    calibration = found.calibration(dates[n - 1], chosen.temperature, notes)
    # Those of the other data sets do not concern the matrix.
    of_others = [
        each
        for one, offset in zip(sets[n:], offsets[n:], strict=True)
        for each in offset.findings(found.matrix, f'{chosen.ft}, {one.name}')
    ]
    finish(
        chosen, robot_name(chosen), {chosen.ft: Result(calibration, figures)},
        [*findings, *of_others], others={'data_sets': entries},
        tables=[records_table('Data sets', shown, columns)], deviations=UNITS['matrix'],
    )  # fmt: skip


def live(chosen: argparse.Namespace) -> None:
    """Run a session, and hand its result to the estimator."""
    if chosen.config and chosen.readings:
        raise CallError('--readings excludes --config')
    if chosen.robot and not chosen.config:
        raise CallError('--robot needs --config')
    if not chosen.config and not (chosen.readings and chosen.imu):
        raise CallError('name --config, or both --readings and --imu')
    if find_spec('rclpy') is None:
        raise ConfigError('a live session needs ROS')
    from inertial_estimation.ros import calibration_session as ros

    before = former(chosen)
    feed: Any
    with ros.session_node(chosen.namespace) as node:
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            urdf = ros.find_description(node, settings, chosen.robot)
            feed = ros.RobotFeed(node, settings, urdf, chosen.ft, chosen.imu)
            if before is None:
                before = sensor_calibrations(settings, feed.robot, new_file=True)[chosen.ft]
            chosen.robot_name = chosen.robot_name or feed.robot.name
            chosen.out = chosen.out or calibration_path(settings)
        else:
            feed = ros.TopicFeed(node, chosen.readings, chosen.imu)
            if before is None and chosen.out is not None and chosen.out.exists():
                before = read(chosen.out)[1].get(chosen.ft)
            chosen.robot_name = robot_name(chosen)
        if chosen.out is not None:
            others_in(chosen.out, chosen.robot_name)
        before = before or SensorCalibration()
        found = ros.collect(node, feed, Session(before.matrix, feed.axes))
        if not isfinite(chosen.temperature):
            chosen.temperature = feed.temperature
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        notes = [f'live, gravity from {feed.gravity}']
        _finish_offset(chosen, found, before, date, {'gravity_from': feed.gravity}, notes=notes)
        if chosen.out is not None and chosen.estimator:
            show(escape(ros.hand_over(node, chosen.estimator, chosen.out)[1]))


def _finish_offset(
    chosen: argparse.Namespace,
    found: InSituOffset,
    before: SensorCalibration,
    date: str,
    more: dict[str, Any],
    *,
    notes: Sequence[str] = (),
    keeps: Sequence[str] = (),
) -> None:
    calibration = found.calibration(before, date, chosen.temperature, notes)
    result = Result(calibration, more | _figures(found, before.matrix))
    findings = tuple(found.findings(before.matrix, chosen.ft))
    finish(chosen, robot_name(chosen), {chosen.ft: result}, findings, keeps=keeps)


def _figures(found: InSituOffset, matrix: Any) -> dict[str, Any]:
    """Return the figures of an offset; matrix (6, 6)."""
    offset, deviations = found.in_wrench(matrix)
    drift, of_drift = found.drift(matrix)
    return {
        'offset': offset, 'deviations': deviations, 'drift': drift, 'drift_deviations': of_drift,
        'gap': found.gap, 'gravity_spreads': found.gravity_spreads,
        'accelerometer_bias': found.bias, 'unexplained': found.unexplained,
        'samples': found.slopes.n_samples, 'left_out': found.left_out,
    }  # fmt: skip
