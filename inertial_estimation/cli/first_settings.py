# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First settings of a robot: topics, sensors, base and contacts that a URDF and a bag tell.

Contacts and a base at rest follow from the names of links and from the FT readings of the bag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.support_loads import support_loads
from inertial_estimation.cli.robot_check import usable_joints
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.bag import BagReader, deserialize
from inertial_estimation.logs.log import Log
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec
from inertial_estimation.model.urdf import ft_specs, joint_types, parse
from inertial_estimation.signals.messages import READINGS
from inertial_estimation.signals.router import Source

MOST_MESSAGES = 20_000
"""Of a topic that are looked at."""
MIN_SAMPLES = 30
"""In the window of a filter: encoders of fewer make noisy accelerations."""
WINDOW = 0.1, 0.5
"""Of filters, least and greatest [s]."""
AGE_PERIODS = 5.0
"""Periods of a stream after which its newest message is stale."""
MAX_RATE_ERROR = 0.5
"""Of velocities in messages, over the velocities from positions, from which these are filtered."""
FIXED_ROOTS = 'world', 'base', 'ground', 'map', 'base_link', 'base_footprint', 'pedestal'
FEET, HANDS = ('sole', 'foot'), ('palm', 'hand', 'gripper', 'tcp', 'tool', 'flange', 'ee')
"""Parts of the names of links that touch the ground or things, most telling first."""
SIDES = {'', 'l', 'r', 'left', 'right', 'link', 'frame'}
CLEAR = 0.7
"""Unexplained force with a link at rest over that with the second best, up to which it is."""
MIN_KNOWN = 0.5
"""Share of the samples in which a reading and its prediction are known."""
MAX_SAMPLES = 1000
"""Of a log by which links at rest are found."""
MAX_UNEXPLAINED = 0.1
"""Force that a part in which one link carries the robot may leave [robot weights]."""
SMOOTHING = 0.5
"""Time over which these forces are averaged [s]."""


WIDTH = 98
"""Of lines of the file."""
PLAIN, WORDS = r'[A-Za-z_/][\w/.]*', ('yes', 'no', 'on', 'off', 'true', 'false', 'null', 'y', 'n')
"""Texts that stand without quotes in YAML, but for some words."""


class Topic(NamedTuple):
    """First messages of a topic."""

    name: str
    frame_id: str
    stamps: Array
    """Shape (n,) [s]."""
    readings: list[Any]

    @property
    def rate(self) -> float:
        """Messages a second."""
        steps = np.diff(self.stamps)
        return float(1.0 / np.median(steps)) if len(steps) and np.median(steps) > 0.0 else 0.0


@dataclass
class FirstSettings:
    """Settings with their reasons, and what was decided."""

    given: dict[str, Any] = field(default_factory=dict)
    """Values by dotted names."""
    comments: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Decisions and what is left to the user, a line each."""
    part: tuple[float, float] | None = None
    """In which the link at rest alone carries the robot [s after the first FT message]."""

    def set(self, name: str, value: Any, why: str = '') -> None:
        """Give a setting its value."""
        self.given[name] = value
        if why:
            self.comments[name] = why

    @property
    def settings(self) -> EstimatorSettings:
        """The settings, checked."""
        return EstimatorSettings.from_dict(self.given)

    def text(self, *heads: str) -> str:
        """Return the YAML file, its settings below some heads."""
        tree: dict[str, Any] = {}
        for name, value in self.given.items():
            *groups, key = name.split('.')
            below = tree
            for group in groups:
                below = below.setdefault(group, {})
            below[key] = value
        lines = [f'{"  " * k}{head}:' for k, head in enumerate(heads)]
        return '\n'.join([*lines, *self._lines(tree, '', '  ' * len(heads)), ''])

    def _lines(self, tree: dict[str, Any], prefix: str, indent: str) -> Iterator[str]:
        for key, value in tree.items():
            if why := self.comments.get(prefix + key):
                yield from wrap(
                    why, WIDTH, initial_indent=f'{indent}# ', subsequent_indent=f'{indent}# '
                )
            if isinstance(value, dict):
                yield f'{indent}{key}:'
                yield from self._lines(value, f'{prefix}{key}.', f'{indent}  ')
            else:
                first = f'{indent}{key}: '
                yield from wrap(
                    first + _flow(value), WIDTH, subsequent_indent=' ' * (len(first) + 1),
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip


def _flow(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, list):
        return f'[{", ".join(map(_flow, value))}]'
    if isinstance(value, str) and re.fullmatch(PLAIN, value) and value.lower() not in WORDS:
        return value
    return json.dumps(value)


def first_settings(urdf: str, bag: str | Path | None = None) -> FirstSettings:
    """
    Decide the settings of the nodes and of replays by a URDF and a bag, or by the URDF alone.

    Raises
    ------
    ModelError
        If the URDF cannot be used.
    LogError
        If no topic of the bag reports a joint of the robot.

    """
    found, root = FirstSettings(), parse(urdf)
    topics: dict[str, list[Topic]] = {'joints': [], 'ft': [], 'imu': []}
    if bag is not None:
        with BagReader(bag) as reader:
            topics = {
                kind: [_read(reader, kind, name) for name, one in sorted(reader.topics.items())
                       if one.type == READINGS[kind][0] and one.n_messages]
                for kind in topics
            }  # fmt: skip
    joints, others = usable_joints(root)
    if others:
        found.set('joints', joints, f'Without {", ".join(others)}, at zero.')
        found.notes.append(f'joints: {len(joints)}, locked: {", ".join(others)}')
    if bag is not None:
        _choose_joint_topics(found, joints, topics['joints'])
        _choose_ft_sensors(found, root, topics['ft'])
    whole = Robot.from_urdf(urdf, joints=joints, ft_sensors=(), imus=None if bag is None else ())
    _choose_base(found, whole, topics['imu'])
    robot = build_robot(found.settings, urdf)
    contacts = _contacts(robot, [tag.get('name', '') for tag in root.findall('link')])
    if not robot.imus and not robot.fixed_frame:
        if bag is not None:
            _find_link_at_rest(found, urdf, bag, contacts)
        else:
            first, *others = contacts.values()
            why = f'No IMU: the link that stays at rest, or {", ".join(others)}, or IMUs instead.'
            found.set('fixed_link', first, why)
            found.notes.append(f'at rest: {first}; choose it')
    if fixed := found.given.get('fixed_link', ''):
        own = robot.submodel_of(fixed)
        contacts = {own: fixed} | {k: one for k, one in contacts.items() if k != own}
    found.set('contacts', [*contacts.values()], 'One for each submodel, most trusted first.')
    return found


def _read(reader: BagReader, kind: str, name: str) -> Topic:
    """Return the first messages of a topic."""
    source = Source(kind, name, name, deserialize)
    messages = islice(reader.messages([name]), MOST_MESSAGES)
    readings = [one for one in (source.read(message.data) for message in messages) if one]
    stamps = 1e-9 * np.array([one.stamp_ns for one in readings])
    return Topic(name, readings[0].frame_id if readings else '', stamps, readings)


def _choose_joint_topics(found: FirstSettings, joints: list[str], topics: list[Topic]) -> None:
    """Choose topics that report joints, the fastest first, and joints that none reports."""
    reported: dict[str, set[str]] = {}
    # Of equal rates the shorter name: commands and copies have longer ones.
    for one in sorted(topics, key=lambda topic: (-round(topic.rate), len(topic.name), topic.name)):
        names = {name for reading in one.readings for name in reading.names} & set(joints)
        if names - set().union(*reported.values()):
            reported[one.name] = names
    if not reported:
        raise LogError(f'no JointState of the bag reports one of the joints {joints[:3]}')
    others = [topic.name for topic in topics if topic.name not in reported]
    found.set('joint_states.topics', [*reported], 'The first one makes the samples.')
    missing = [name for name in joints if name not in set().union(*reported.values())]
    if missing:
        why = 'Never reported; results with them are flagged.'
        found.set('joint_states.assumed', missing, why)
        found.set('joint_states.assumed_positions', [0.0] * len(missing))
        found.notes.append(f'joints never reported, assumed at zero: {", ".join(missing)}')
    if others:
        found.notes.append(f'joint states not used: {", ".join(others)}')
    if 2 * len(missing) > len(joints):
        found.notes.append(f'{len(missing)} of {len(joints)} joints are missing: another robot?')
    used = [topic for topic in topics if topic.name in reported]
    if lacking := sorted({name for topic in used for name in _without_velocity(topic)}):
        why = f'Velocities in messages are not those of the positions: {", ".join(lacking)}.'
        found.set('joint_states.velocity_source', 'filter', why)
    rate = min(topic.rate for topic in used)
    window = round(float(np.clip(MIN_SAMPLES / max(rate, 1.0), *WINDOW)), 2)
    if window > WINDOW[0]:
        found.set('filter.window', window, f'{MIN_SAMPLES} samples at {rate:.0f} Hz.')
    _set_age(found, 'joint_states.max_age', rate, 0.1)


def _without_velocity(topic: Topic) -> Iterator[str]:
    """Yield joints whose velocities in messages contradict their positions."""
    layouts: dict[tuple[str, ...], list[int]] = {}
    for k, one in enumerate(topic.readings):
        layouts.setdefault(one.names, []).append(k)
    for names, rows in layouts.items():
        some, t = [topic.readings[k] for k in rows], topic.stamps[rows]
        if len(some) < 3 or any(len(one.positions) != len(names) for one in some):
            continue
        q = np.array([one.positions for one in some])
        if any(len(one.velocities) != len(names) for one in some):
            yield from names
            continue
        v, steps = np.array([one.velocities for one in some]), np.diff(t)
        kept = steps > 0.0
        # Sums over a while: noise of encoders cancels in them.
        moved = np.diff(q, axis=0)[kept]
        stated = (0.5 * (v[1:] + v[:-1]) * steps[:, None])[kept]
        span = max(round(0.1 / float(np.median(steps[kept]))), 1)
        moved, stated = (np.add.reduceat(one, np.arange(0, len(one), span), axis=0)
                         for one in (moved, stated))  # fmt: skip
        sizes = np.sqrt((moved**2).mean(axis=0))
        wrong = np.sqrt(((moved - stated) ** 2).mean(axis=0)) > MAX_RATE_ERROR * sizes
        yield from (name for name, one, size in zip(names, wrong, sizes) if one and size > 1e-4)


def _choose_ft_sensors(found: FirstSettings, root: Element, topics: list[Topic]) -> None:
    """Match topics with FT sensors of the URDF, else with the fixed joints of their frames."""
    specs = [one for one in ft_specs(root).values() if isinstance(one, FtSpec)]
    left = list(topics)
    matched: dict[str, tuple[Topic, str]] = {}
    fits = (
        lambda spec, topic: topic.frame_id == spec.name,
        lambda spec, topic: spec.name in topic.frame_id or spec.name in topic.name,
        lambda spec, topic: topic.frame_id in (spec.joint, _child(root, spec.joint)),
        lambda spec, topic: len(specs) == len(topics) == 1,
    )
    for fit in fits:
        for spec in specs:
            own = [topic for topic in left if fit(spec, topic)]
            if spec.name not in matched and own:
                matched[spec.name] = own[0], ''
                left.remove(own[0])
    if not specs:
        fixed = {
            _child(root, name): name for name, kind in joint_types(root).items() if kind == 'fixed'
        }
        for topic in topics:
            if topic.frame_id in fixed:
                matched[topic.frame_id] = topic, fixed[topic.frame_id]
                left.remove(topic)
    lost = [spec.name for spec in specs if spec.name not in matched]
    why = 'Without those that no topic reports: ' + ', '.join(lost) + '.' if lost else ''
    found.set('ft_sensors', [*matched], why)
    for name, (topic, joint) in matched.items():
        found.set(f'ft.{name}.topic', topic.name)
        if topic.frame_id != name:
            found.set(f'ft.{name}.frame_id', topic.frame_id)
        if joint:
            found.set(f'ft.{name}.joint', joint, 'The fixed joint that holds its frame.')
        _set_age(found, f'ft.{name}.max_age', topic.rate, 0.05)
    for topic in left:
        found.notes.append(
            f"not used: {topic.name}, as frame '{topic.frame_id}' is on no sensor or fixed joint: "
            'ft.NAME.joint and frame_id can place it'
        )
    found.notes.append(f'FT sensors: {", ".join(matched) or "none"}')


def _child(root: Element, joint: str) -> str:
    """Return the child link of a joint."""
    tag = root.find(f"joint[@name='{joint}']/child")
    return '' if tag is None else tag.get('link', '')


def _choose_base(found: FirstSettings, robot: Robot, topics: list[Topic]) -> None:
    """Choose IMUs, else a root link that is at rest by its name or place."""
    base, named = robot.link_names[0], dict.fromkeys(imu.name for imu in robot.imus)
    for topic in topics:
        if topic.frame_id not in robot.frames:
            found.notes.append(
                f"not used: {topic.name}, as the URDF has no frame '{topic.frame_id}': imu.NAME."
                'frame and pose can place it'
            )
    named |= {one.frame_id: one for one in topics if one.frame_id in robot.frames}
    is_arm = sum(link.parent == 0 for link in robot.links) == 1
    if base in FIXED_ROOTS or (is_arm and not (topics and named)):
        found.set('fixed_link', base, 'The root link is taken to be at rest, its z axis up.')
        found.notes.append(f'at rest: {base}, by its name and place')
    elif named:
        found.set('imus', [*named])
        for name, own in named.items():
            if own is not None:
                found.set(f'imu.{name}.topic', own.name)
                _set_age(found, f'imu.{name}.max_age', own.rate, 0.05)
        found.notes.append(f'IMUs: {", ".join(named)}')


def _set_age(found: FirstSettings, name: str, rate: float, usual: float) -> None:
    """Allow for slow streams."""
    if rate > 0.0 and AGE_PERIODS / rate > usual * (1.0 + 1e-3):
        found.set(name, round(AGE_PERIODS / rate, 3))


def _contacts(robot: Robot, urdf_links: Sequence[str]) -> dict[int, str]:
    """Return a frame for each submodel: feet, hands, then the others, by the names of links."""
    ranked = []
    for k, submodel in enumerate(robot.submodels):
        frames = [name for name in urdf_links if robot.frames[name][0] in submodel.links]
        best = 2, 0, robot.link_names[submodel.links[-1] if k else submodel.root]
        for name in frames:
            words = _words(name)
            for group, known in enumerate((FEET, HANDS)):
                if words and words <= set(known):
                    best = min(best, (group, min(map(known.index, words)), name))
        ranked.append((*best[:2], k, best[2]))
    return {k: frame for _, _, k, frame in sorted(ranked)}


def _words(name: str) -> set[str]:
    """Return the words of a name without sides."""
    return set(re.split('[^a-z]+', name.lower())) - SIDES


def _find_link_at_rest(
    found: FirstSettings, urdf: str, bag: str | Path, contacts: dict[int, str]
) -> None:
    """Choose the foot that carries the robot alone for longest, and that part of the log."""
    feet = [name for name in contacts.values() if _words(name) <= {*FEET}]
    frames = feet or [*contacts.values()]
    tried = [EstimatorSettings.from_dict({**found.given, 'fixed_link': one}) for one in frames]
    robots = {one.fixed_link: build_robot(one, urdf) for one in tried}
    log = open_log(bag, robots[frames[0]], tried[0])
    parts_of = {frame: _longest_support(robot, log, frame) for frame, robot in robots.items()}
    spans = {frame: stop - start for frame, (start, stop) in parts_of.items()}
    first, second = [*sorted(spans, key=lambda frame: -spans[frame]), ''][:2]
    parts = ', '.join(f'{name} {span:.1f} s' for name, span in spans.items())
    why = f'FT readings change as if it alone carried the robot for so long: {parts}.'
    found.set('fixed_link', first, f'No IMU. {why}')
    found.part = parts_of[first]
    clear = 'clear' if CLEAR * spans[first] > spans.get(second, 0.0) else 'not clear'
    found.notes.append(f'at rest: {first}, {clear}: {parts}')


def _longest_support(robot: Robot, log: Log, frame: str) -> tuple[float, float]:
    """Return the longest part in which a frame alone explains how FT readings change [s]."""
    rows = np.unique(np.linspace(0, len(log.samples) - 1, MAX_SAMPLES).astype(int))
    samples, times = log.samples.take(rows), log.times[rows]
    loads = support_loads(WrenchEstimator(robot), samples, [frame])
    limit = MAX_UNEXPLAINED * robot.mass * float(np.linalg.norm(robot.gravity))
    left = (samples.ft_readings - loads.readings)[..., :3].reshape(len(rows), -1)
    left = left[:, np.isfinite(left).mean(axis=0) > MIN_KNOWN]
    best = 0.0, 0.0
    for k, start in enumerate(times):
        if times[-1] - start <= best[1] - best[0] or not left.size:
            break
        spread = np.fmax.accumulate(left[k:]) - np.fmin.accumulate(left[k:])
        # NaN are samples without a reading.
        over = np.flatnonzero((spread > 2.0 * limit).any(axis=1))
        stop = times[k + over[0] - 1] if len(over) and over[0] else times[-1]
        best = max(best, (start, stop), key=lambda part: part[1] - part[0])
    return best
