# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""In words: what torques and wrenches rest on, what of it has changed, and about which base."""

from collections.abc import Mapping, Sequence

from inertial_estimation.check.records import Names
from inertial_estimation.estimation.dependence import ResultDependence
from inertial_estimation.model.robot import Robot

NO_FT = 'no FT sensor'


class GroundsText:
    """Says in one line what a result rests on, with names that follow each other cut short."""

    def __init__(self, robot: Robot) -> None:
        self._fts, imus = (
            tuple(sensor.name for sensor in sensors) for sensors in (robot.ft_sensors, robot.imus)
        )
        motion = 'fixed link' if robot.fixed_frame else 'IMUs'
        self._others = (
            (motion, imus),
            ('joints', robot.joint_names),
            ('links', robot.link_names),
        )

    def of(self, grounds: ResultDependence) -> str:
        """Return the text."""
        said = [str(Names.of(grounds.fts, self._fts)) or NO_FT]
        others = (grounds.imus, grounds.joints, grounds.links)
        for names, (kind, order) in zip(others, self._others, strict=True):
            if names:
                said.append(f'{kind} {Names.of(names, order)}')
        return '; '.join(said)


def change_text(before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> str:
    """Say which torques rest on other FT sensors than before."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for joint, fts in now.items():
        if fts != before[joint]:
            groups.setdefault((tuple(fts), tuple(before[joint])), []).append(joint)
    if not groups:
        return ''
    said = [
        f'{" ".join(joints)} on {" ".join(new) or NO_FT} (before: {" ".join(old) or NO_FT})'
        for (new, old), joints in groups.items()
    ]
    return f'contacts or sensors have changed; torques rest: {", ".join(said)}'


def base_text(robot: Robot) -> str:
    """Say about which base external joint torques are, and whether that is a choice."""
    base = robot.link_names[robot.base]
    if not robot.fixed_frame:
        return f'{base}, which floats: about another base they are others'
    fixed = robot.link_names[robot.frame(robot.fixed_frame)[0]]
    return f'{base}, the fixed link' if fixed == base else f'{base}, not the fixed link {fixed}'
