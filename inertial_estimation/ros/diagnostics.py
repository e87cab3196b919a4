# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What goes to /diagnostics once a second, and the warnings that follow from it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from inertial_estimation.estimation.contact_stream import ContactStatistics
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import ns_to_stamp
from inertial_estimation.ros.cycles import CycleReport
from inertial_estimation.ros.deviations import DeviationsReport
from inertial_estimation.ros.sources import Source
from inertial_estimation.ros.touch_rhythm import SlowSender
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.streams.assembler import AssemblerStatistics
from inertial_estimation.streams.stream import StreamStatistics

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
MARGIN = 2.0
"""Of a timeout over the period: a message may be lost."""
SKEW_LIMIT = 1.0
"""A clock that is further off than this is set wrong, not late [s]."""

ALONE = {
    'accelerometer': ', measures the acceleration only',
    'gyroscope': ', measures the angular velocity only',
}
"""What is said of an IMU that is known to measure one quantity."""

Values = Mapping[str, object]


class Task(NamedTuple):
    """One status of the array."""

    name: str
    level: bytes
    message: str
    values: Values
    cause: str = ''
    """The message without the figures that change all the time; empty: it has none."""
    repeats: bool = True
    """Whether it is worth a warning now and then while it lasts, not only when it comes."""

    @property
    def complaint(self) -> tuple[str, str]:
        """Who complains about what: the same as long as a warning would say nothing new."""
        return self.name, self.cause or self.message


def cycle_task(
    report: CycleReport,
    total_missed: int,
    fallbacks: int,
    failed: int,
    *,
    active: bool,
    failure: str = '',
) -> Task:
    """
    Return the state of the cycle.

    Parameters
    ----------
    report : CycleReport
        Since the last time.
    total_missed, fallbacks, failed : int
        Since the start: cycles missed, messages decoded slowly, samples that were not estimated.
    active : bool
        Whether the node is.
    failure : str, optional
        Why a sample since the last time was not estimated; empty: none was refused.

    Returns
    -------
    Task

    """
    level, message, cause = OK, 'running' if active else 'inactive', ''
    if failure:
        level, message = ERROR, f'no estimate: {failure}'
    elif active and not report.count:
        level, message = ERROR, 'no joint states: no estimate'
    elif report.missed:
        level, cause = WARN, 'the stamps of joint states leave out cycles'
        message = f'the stamps of joint states leave out {report.missed} cycles'
    values = {
        'cycles': report.count,
        'interval of the stamps [ms]': _ms(report.interval),
        'cycle time p50 [us]': _us(report.duration_p50),
        'cycle time p99 [us]': _us(report.duration_p99),
        'cycle time max [us]': _us(report.duration_max),
        'missed cycles': report.missed,
        'missed cycles, total': total_missed,
        'failed cycles, total': failed,
        'decode fallbacks, total': fallbacks,
    }
    return Task('cycle', level, message, values, cause)


def sensor_task(
    source: Source,
    statistics: StreamStatistics,
    rate: float,
    state: SensorState | None,
    new_problems: Mapping[str, int],
    delivers: str = 'both',
) -> Task:
    """
    Return the state of an FT sensor or IMU.

    Parameters
    ----------
    source : Source
        Its subscription.
    statistics : StreamStatistics
        Of its stream.
    rate : float
        Of its stamps, lately [Hz].
    state : SensorState or None
        In the last sample; None: there was none lately.
    new_problems : mapping of str to int
        What was wrong with its messages since the last time.
    delivers : str, optional
        What an IMU has in the last sample, one of `sensors.MEASURES`.

    Returns
    -------
    Task

    """
    level, message, cause = OK, f'fresh{ALONE.get(delivers, "")}', ''
    if state is None:
        message = 'received; there was no joint state to use it with'
    if not source.problems and not statistics.received:
        level, message = ERROR, f'nothing received on {source.topic}'
    elif state is None and np.isnan(rate):
        level, message = ERROR, f'nothing received lately on {source.topic}'
    elif state == SensorState.PARTIAL:
        level, cause = WARN, f'partial on {source.topic}'
        message = _partial_message(source, delivers)
    elif state is not None and state != SensorState.FRESH:
        level, cause = ERROR, f'not used: {state.name.lower()} (topic {source.topic})'
        warming = state == SensorState.WARMING and statistics.filter_lack
        problems = ''.join(f'; {problem}' for problem in new_problems)
        message = cause + (f', {statistics.filter_lack}' if warming else '') + problems
        cause += problems
    elif new_problems:
        level, message = WARN, next(iter(new_problems))
    elif source.skew is not None and abs(source.skew) > SKEW_LIMIT:
        level, message, cause = WARN, _skew_message(source), f'skew on {source.topic}'
    values = _stream(source, statistics, rate)
    return Task(f'{source.kind} {source.name}', level, message, values, cause)


def joints_task(
    source: Source,
    parts: Mapping[str, StreamStatistics],
    rates: Mapping[str, float],
    new_problems: Mapping[str, int],
) -> Task:
    """
    Return the state of a joint topic.

    Parameters
    ----------
    source : Source
        Its subscription.
    parts : mapping of str to StreamStatistics
        The streams it carries: one for each set of joints that come together.
    rates : mapping of str to float
        Of their stamps, lately [Hz].
    new_problems : mapping of str to int
        What was wrong with its messages since the last time.

    Returns
    -------
    Task

    """
    level, message, cause = OK, f'{len(parts)} stream{"s" * (len(parts) != 1)}', ''
    if not parts:
        level, message = ERROR, f'nothing received on {source.topic}'
    elif all(np.isnan(rate) for rate in rates.values()):
        level, message = ERROR, f'nothing received lately on {source.topic}'
    elif new_problems:
        level, message = WARN, next(iter(new_problems))
    elif lacks := [part.filter_lack for part in parts.values() if part.filter_lack]:
        level, message, cause = WARN, f'no derivatives: {lacks[0]}', 'no derivatives'
    elif source.skew is not None and abs(source.skew) > SKEW_LIMIT:
        level, message, cause = WARN, _skew_message(source), f'skew on {source.topic}'
    values: dict[str, object] = {}
    for name, statistics in parts.items():
        for key, value in _stream(source, statistics, rates[name]).items():
            values[key if len(parts) == 1 else f'{key} ({name})'] = value
    return Task(f'joint states {source.name}', level, message, values, cause)


def contacts_task(
    source: Source,
    statistics: ContactStatistics,
    new_problems: Mapping[str, int],
    slow: Sequence[SlowSender] = (),
    timeout: float = float('nan'),
) -> Task:
    """
    Return the state of the topic of the points that are felt; nobody has to use it.

    Parameters
    ----------
    source : Source
        Its subscription.
    statistics : ContactStatistics
        What came in.
    new_problems : mapping of str to int
        What was wrong with its messages since the last time.
    slow : sequence of SlowSender, optional
        Frames whose touches lapse between one message and the next.
    timeout : float, optional
        After which a touch is over [s].

    Returns
    -------
    Task

    """
    level, cause = OK, ''
    message = f'{statistics.live} live' if statistics.received else 'nobody reports any'
    if new_problems:
        level, message = WARN, next(iter(new_problems))
    elif slow:
        level, message = WARN, _slow_message(slow, timeout)
        cause = f'slower than contact_timeout: {" ".join(sender.frame for sender in slow)}'
    elif source.skew is not None and abs(source.skew) > SKEW_LIMIT:
        level, message = WARN, _skew_message(source)
    values = {
        'topic': source.topic,
        'live': statistics.live,
        'received': statistics.received,
        'dropped': statistics.dropped,
        'decode fallbacks': source.fallbacks,
        **{f'period of {sender.frame} [ms]': _ms(sender.period) for sender in slow},
        **{f'problem: {text}': count for text, count in source.problems.items()},
    }
    return Task('contacts', level, message, values, cause)


def known_joints_task(
    robot: Robot, sample: Sample | None, statistics: AssemblerStatistics
) -> Task:
    """
    Return which joints are known.

    Parameters
    ----------
    robot : Robot
        Names.
    sample : Sample or None
        The last one; None: there was none lately.
    statistics : AssemblerStatistics
        Which joints were passed over.

    Returns
    -------
    Task

    """
    by_state: dict[str, list[str]] = {}
    if sample is not None and sample.joint_states is not None:
        for name, state in zip(robot.joint_names, sample.joint_states.tolist()):
            by_state.setdefault(SensorState(state).name.lower(), []).append(name)
    lacking = [s for s in by_state if s not in ('fresh', 'assumed')]
    values: dict[str, object] = {state: ' '.join(names) for state, names in by_state.items()}
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
    """
    Yield the state of each submodel.

    Parameters
    ----------
    robot : Robot
        Names.
    estimate : WrenchEstimate
        The last one.

    Yields
    ------
    Task

    """
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
    """
    Return the state of the standard deviations; nobody has to ask for them.

    Parameters
    ----------
    report : DeviationsReport
        Since the last time.

    Returns
    -------
    Task

    """
    level, message = OK, 'published' if report.count else 'nobody asks for them'
    if report.lack and not report.count:
        level, message = WARN, f'not published: {report.lack}'
    mean = report.seconds / report.count if report.count else float('nan')
    return Task('deviations', level, message, {'count': report.count, 'time each [us]': _us(mean)})


def to_message(stamp_ns: int, node: str, robot: str, tasks: Iterable[Task]) -> DiagnosticArray:
    """
    Return tasks as a message.

    Parameters
    ----------
    stamp_ns : int
        Clock of the node [ns].
    node, robot : str
        Names that stand before each task, and for the hardware.
    tasks : iterable of Task
        In the order of the message.

    Returns
    -------
    DiagnosticArray

    """
    message = DiagnosticArray()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.status = [
        DiagnosticStatus(
            name=f'{node}: {task.name}',
            level=task.level,
            message=task.message,
            hardware_id=robot,
            values=[KeyValue(key=key, value=str(value)) for key, value in task.values.items()],
        )
        for task in tasks
    ]
    return message


def _stream(source: Source, statistics: StreamStatistics, rate: float) -> dict[str, object]:
    """Return the figures of a stream."""
    return {
        'topic': source.topic,
        'rate [Hz]': f'{rate:.1f}',
        'age [ms]': _ms(statistics.age),
        'skew [ms]': 'unknown' if source.skew is None else _ms(source.skew),
        'longest gap [ms]': _ms(statistics.longest_gap),
        'received': statistics.received,
        'used': statistics.used,
        'frozen intervals': statistics.frozen,
        'invalid (NaN)': statistics.invalid,
        'refused (stamp)': statistics.refused,
        'dropped': statistics.dropped,
        'unfiltered': statistics.unfiltered,
        'filter lacks': statistics.filter_lack,
        'decode fallbacks': source.fallbacks,
        **{f'problem: {text}': count for text, count in source.problems.items()},
    }


def _partial_message(source: Source, delivers: str) -> str:
    """Say what an IMU leaves out, what is used, and how to say that it is meant so."""
    quantities = ['the angular velocity', 'the acceleration']
    absent, used = quantities if delivers == 'accelerometer' else reversed(quantities)
    return (
        f'partial on {source.topic}: {absent} is absent there, {used} is used; if it never comes, '
        f'set imu.{source.name}.measures: {delivers}'
    )


def _slow_message(slow: Sequence[SlowSender], timeout: float) -> str:
    """Say that touches lapse between one message and the next, and the remedy."""
    said = ', '.join(f'of {sender.frame} every {sender.period:.2f} s' for sender in slow)
    enough = MARGIN * max(sender.period for sender in slow)
    return (
        f'touches {said}, but each is over after {timeout:g} s: it ends and begins again and '
        f'again; send more often, or set contact_timeout: {enough:.2g}'
    )


def _skew_message(source: Source) -> str:
    """Say that a clock is wrong, whose, and how much."""
    behind = 'behind' if source.skew > 0.0 else 'ahead of'
    return f'stamps on {source.topic} are {abs(source.skew):.1f} s {behind} the clock of the node'


def _ms(seconds: float) -> str:
    return f'{1e3 * seconds:.3f}'


def _us(seconds: float) -> str:
    return f'{1e6 * seconds:.0f}'
