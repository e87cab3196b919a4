# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches through joints [T 4.23] and net wrenches of links [T 4.9] over a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.building import build_estimator, build_internal_wrenches
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.estimation.sides import Side, find_sides
from inertial_estimation.logs.check_figures import NetReport, ThroughReport
from inertial_estimation.logs.replay import Replay, Through
from inertial_estimation.logs.situations import Situation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose
from inertial_estimation.sample import Array


class Inside(NamedTuple):
    """Wrenches inside the robot that are asked for; those of the settings first, each once."""

    joints: tuple[str, ...]
    """Whose whole wrench is told."""
    links: tuple[str, ...]
    """Whose net wrench is told."""


def check_inside(
    joints: Sequence[str], links: Sequence[str], robot: Robot, settings: EstimatorSettings
) -> Inside:
    """Return what is asked for besides the settings and by them, and refuse what cannot be."""
    _check_once(joints, 'the wrench through', 'joint')
    _check_once(links, 'the net wrench of', 'link')
    wanted = Inside(
        tuple(dict.fromkeys((*settings.internal_wrench_joints, *joints))),
        tuple(dict.fromkeys((*settings.net_wrench_links, *links))),
    )
    if wanted.joints or wanted.links:
        wrenches = build_internal_wrenches(settings, build_estimator(settings, robot))
        wrenches.frames(wanted.joints)
    for link in links:
        _check_link(link, robot)
    return wanted


def _check_link(name: str, robot: Robot) -> None:
    """Refuse a name that is no link's."""
    if name in robot.link_names:
        return
    if name in robot.frames:
        body = robot.link_names[robot.frame(name)[0]]
        raise ConfigError(
            f"'{name}' is a frame fixed to link '{body}', and net wrenches are of links: ask for "
            f"'{body}'"
        )
    raise NameNotFound('link', name, robot.link_names)


def _check_once(names: Sequence[str], what: str, kind: str) -> None:
    """Refuse names that come twice."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ConfigError(
            f'{what} {", ".join(twice)} is asked for more than once: name each {kind} once'
        )


def through_reports(replay: Replay, situations: Sequence[Situation]) -> tuple[ThroughReport, ...]:
    """Sum up the wrenches through joints."""
    found = replay.through
    if found is None:
        return ()
    ways = _ways(replay.robot, found, situations, len(replay.recording.samples))
    return tuple(
        _report(found, column, tuple(ways[joint])) for column, joint in enumerate(found.joints)
    )


def net_reports(replay: Replay) -> tuple[NetReport, ...]:
    """Sum up the net wrenches of links."""
    found = replay.net
    if found is None:
        return ()
    return tuple(
        NetReport(link=link, **_sizes(found.wrenches[:, column]))
        for column, link in enumerate(found.links)
    )


def _report(found: Through, column: int, obtained: tuple[str, ...]) -> ThroughReport:
    return ThroughReport(
        joint=found.joints[column],
        frame=found.frames[column],
        obtained=obtained,
        **_sizes(found.wrenches[:, column]),
    )


def _sizes(values: Array) -> dict[str, Any]:
    """Return how large wrenches (n, 6) are where they are known."""
    known = values[np.isfinite(values).all(axis=1)]
    force, moment = (np.linalg.norm(known[:, axes], axis=1) for axes in (slice(3), slice(3, 6)))
    return {
        'n_samples': len(known),
        'nan_share': 1.0 - len(known) / len(values),
        'rms_force_n': _rms(force),
        'max_force_n': float(force.max()) if len(known) else np.nan,
        'rms_moment_nm': _rms(moment),
        'max_moment_nm': float(moment.max()) if len(known) else np.nan,
    }


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else float('nan')


def _ways(
    robot: Robot, found: Through, situations: Sequence[Situation], n: int
) -> dict[str, list[str]]:
    """Return how each joint's wrench was obtained, most frequent first."""
    counts: dict[str, Counter[str]] = {joint: Counter() for joint in found.joints}
    links = {link.name: k for k, link in enumerate(robot.links)}
    for situation in situations:
        contacts, fts = situation.parts.contacts, situation.parts.fts
        submodels = decompose(robot.links, robot.ft_sensors, fts)
        places = [robot.frame(contact.frame)[0] for contact in contacts]
        sides = find_sides(robot, submodels, places, [contact.unknowns for contact in contacts])
        measured = {robot.ft_sensors[k].child: robot.ft_sensors[k].name for k in fts}
        for joint, frame in zip(found.joints, found.frames):
            k = links[frame]
            way = f'measured by FT {measured[k]}' if k in measured else _sum(robot, sides[k])
            counts[joint][way] += len(situation.rows)
    return {
        joint: [f'{way} ({count / n:.0%})' for way, count in ways.most_common()]
        for joint, ways in counts.items()
    }


def _sum(robot: Robot, side: Side) -> str:
    """Say which sum a wrench is."""
    links = '1 link' if len(side.links) == 1 else f'{len(side.links)} links'
    sensors = ', '.join(robot.ft_sensors[k].name for k in side.sensors)
    where = 'away from' if side.away else 'towards'
    return f'sum over {links} {where} the root, {f"FT {sensors}" if sensors else "no FT sensor"}'
