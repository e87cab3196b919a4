# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of the diagnostics about what is subscribed to: sensors, joint states, touches."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from inertial_estimation.estimation.contact_stream import ContactStatistics
from inertial_estimation.estimation.touch_rhythm import SlowSender
from inertial_estimation.ros.diagnostics import ERROR, OK, WARN, Task, milliseconds
from inertial_estimation.ros.sources import NOTHING, Source
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.stream import StreamStatistics

MARGIN = 2.0
"""Of a timeout over the period: a message may be lost."""
SKEW_LIMIT = 1.0
"""A clock that is further off than this is set wrong, not late [s]."""
ALONE = {
    'accelerometer': ', measures the acceleration only',
    'gyroscope': ', measures the angular velocity only',
}
"""What is said of an IMU that is known to measure one quantity."""


def sensor_task(
    source: Source,
    statistics: StreamStatistics,
    rate: float,
    state: SensorState | None,
    new_problems: Mapping[str, int],
    delivers: str = 'both',
) -> Task:
    """
    Return the state of an FT sensor, an IMU, or the temperature of an FT sensor.

    rate [Hz].
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
    elif state == SensorState.INVALID and NOTHING in new_problems:
        level, message = ERROR, f'not used: {NOTHING} (topic {source.topic})'
    elif state is not None and state != SensorState.FRESH:
        level, cause = ERROR, f'not used: {state.name.lower()} (topic {source.topic})'
        warming = state == SensorState.WARMING and statistics.filter_lack
        problems = ''.join(f'; {problem}' for problem in new_problems)
        message = cause + (f', {statistics.filter_lack}' if warming else '') + problems
        cause += problems
    elif new_problems:
        level, message = WARN, next(iter(new_problems))
    elif is_skewed(source):
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

    rates [Hz].
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
    elif is_skewed(source):
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

    timeout [s].
    """
    level, cause = OK, ''
    message = f'{statistics.live} live' if statistics.received else 'nobody reports any'
    if statistics.twins:
        message += (
            f'; on {", ".join(statistics.twins)} points of one stamp were closer than '
            'touch_spacing: two touches, unless two senders report one, of which one has to add '
            '1 ns to its stamps'
        )
    if new_problems:
        level, message = WARN, next(iter(new_problems))
    elif slow:
        level, message = WARN, _slow_message(slow, timeout)
        cause = f'slower than contact_timeout: {" ".join(sender.frame for sender in slow)}'
    elif is_skewed(source):
        level, message = WARN, _skew_message(source)
    values = {
        'topic': source.topic,
        'live': statistics.live,
        'received': statistics.received,
        'dropped': statistics.dropped,
        'decode fallbacks': source.fallbacks,
        **{f'began beside another on {f}': count for f, count in statistics.twins.items()},
        **{f'period of {sender.frame} [ms]': milliseconds(sender.period) for sender in slow},
        **{f'problem: {text}': count for text, count in source.problems.items()},
    }
    return Task('contacts', level, message, values, cause)


def clock_task(sources: Iterable[Source]) -> Task:
    """
    Return whether the clock of the node fits the stamps; mark sources that are off by as much.
    """
    sources = list(sources)
    skews = [source.skew for source in sources if source.skew is not None]
    shared = (
        len(skews) > 1
        and min(map(abs, skews)) > SKEW_LIMIT
        and max(skews) - min(skews) <= SKEW_LIMIT
    )
    for source in sources:
        source.shares_skew = shared
    if not skews:
        return Task('clock', OK, 'not compared with stamps yet', {})
    skew = sum(skews) / len(skews)
    values = {'mean skew [ms]': milliseconds(skew)}
    if not shared:
        return Task('clock', OK, 'not off from all stamps alike', values)
    message = (
        f'all stamps are {_off(skew)}: if a bag is played or the robot is simulated, set '
        'use_sim_time: true and have /clock published (ros2 bag play --clock)'
    )
    return Task('clock', WARN, message, values, 'all stamps are off')


def is_skewed(source: Source) -> bool:
    """Tell whether the stamps of a source alone are off."""
    return not source.shares_skew and source.skew is not None and abs(source.skew) > SKEW_LIMIT


def _stream(source: Source, statistics: StreamStatistics, rate: float) -> dict[str, object]:
    """Return the figures of a stream."""
    return {
        'topic': source.topic,
        'rate [Hz]': f'{rate:.1f}',
        'age [ms]': milliseconds(statistics.age),
        'skew [ms]': 'unknown' if source.skew is None else milliseconds(source.skew),
        'longest gap [ms]': milliseconds(statistics.longest_gap),
        'received': statistics.received,
        'used': statistics.used,
        'frozen intervals': statistics.frozen,
        'invalid (NaN, infinite, or declared absent)': statistics.invalid,
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
    return f'stamps on {source.topic} are {_off(source.skew)}'


def _off(skew: float) -> str:
    """Say how far stamps are from the clock of the node."""
    behind = 'behind' if skew > 0.0 else 'ahead of'
    return f'{abs(skew):.1f} s {behind} the clock of the node'
