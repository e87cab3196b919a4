# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of the diagnostics about the cycle, the joints and the results."""

from collections.abc import Iterable

import numpy as np

from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.cycles import CycleReport
from inertial_estimation.ros.deviations import DeviationsReport
from inertial_estimation.ros.diagnostics import ERROR, OK, WARN, Task, microseconds, milliseconds
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.stream import AssemblerStatistics


def cycle_task(
    report: CycleReport,
    total_missed: int,
    fallbacks: int,
    failed: int,
    *,
    active: bool,
    failure: str = '',
) -> Task:
    """Return the state of the cycle."""
    level, message, cause = OK, 'running' if active else 'inactive', ''
    if failure:
        level, message = ERROR, f'no estimate: {failure}'
    elif active and not report.count:
        level, message = ERROR, 'no joint states: no estimate'
    elif report.jumped:
        level, cause = WARN, 'the stamps of joint states jumped forward'
        message = f'{cause} by {report.jumped:.1f} s'
    elif report.stopped:
        level, cause = WARN, 'no joint states for some time'
        message = f'no joint states for {report.stopped:.1f} s'
    elif report.missed:
        level, cause = WARN, 'the stamps of joint states leave out cycles'
        message = f'the stamps of joint states leave out {report.missed} cycles'
    values = {
        'cycles': report.count,
        'interval of the stamps [ms]': milliseconds(report.interval),
        'cycle time p50 [us]': microseconds(report.duration_p50),
        'cycle time p99 [us]': microseconds(report.duration_p99),
        'cycle time max [us]': microseconds(report.duration_max),
        'missed cycles': report.missed,
        'missed cycles, total': total_missed,
        'failed cycles, total': failed,
        'decode fallbacks, total': fallbacks,
    }
    return Task('cycle', level, message, values, cause)


def known_joints_task(
    robot: Robot, sample: Sample | None, statistics: AssemblerStatistics, motion: str = ''
) -> Task:
    """Return which joints are known."""
    by_state: dict[str, list[str]] = {}
    if sample is not None and sample.joint_states is not None:
        for name, state in zip(robot.joint_names, sample.joint_states.tolist()):
            by_state.setdefault(SensorState(state).name.lower(), []).append(name)
    lacking = [s for s in by_state if s not in ('fresh', 'assumed')]
    values: dict[str, object] = {state: ' '.join(names) for state, names in by_state.items()}
    values['motion of joints'] = motion
    values['not estimated'] = ' '.join(statistics.ignored_joints)
    values['resets'] = statistics.resets
    if lacking:
        joints = ', '.join(name for state in lacking for name in by_state[state])
        return Task('joints', ERROR, f'{"/".join(lacking)}: {joints}', values)
    if sample is not None and (absent := np.flatnonzero(np.isnan(sample.velocities))).size:
        joints = ', '.join(robot.joint_names[k] for k in absent)
        remedy = 'if their driver sends none, set velocity_source: filter'
        return Task('joints', ERROR, f'no velocities of {joints}: {remedy}', values)
    if 'assumed' in by_state:
        return Task('joints', WARN, f'assumed: {", ".join(by_state["assumed"])}', values)
    if sample is None and statistics.samples:
        return Task('joints', ERROR, 'no joint states lately', values)
    return Task('joints', OK, 'all fresh' if by_state else 'none yet', values)


def submodel_tasks(robot: Robot, estimate: WrenchEstimate) -> Iterable[Task]:
    """Yield the state of each submodel."""
    rows = zip(
        robot.submodels,
        estimate.residuals,
        estimate.ranks.tolist(),
        estimate.submodel_quality.tolist(),
    )
    for submodel, residual, rank, quality in rows:
        flags = [flag.name.lower() for flag in Quality if quality & flag]
        level = ERROR if quality & Quality.MISSING else WARN if flags else OK
        values = {
            'rank': rank,
            'residual force [N]': f'{np.linalg.norm(residual[:3]):.3f}',
            'residual moment [Nm]': f'{np.linalg.norm(residual[3:]):.4f}',
            'quality': ' '.join(flags),
        }
        yield Task(f'submodel {submodel.name}', level, ' '.join(flags) or 'measured', values)


def deviations_task(report: DeviationsReport) -> Task:
    """Return the state of the standard deviations; nobody has to ask for them."""
    level, message = OK, 'published' if report.count else 'nobody asks for them'
    if report.lack and not report.count:
        level, message = WARN, f'not published: {report.lack}'
    mean = report.seconds / report.count if report.count else float('nan')
    return Task(
        'deviations', level, message, {'count': report.count, 'time each [us]': microseconds(mean)}
    )
