# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The findings about a robot, for a person and for a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from inertial_estimation.check.records import Findings, Names, key
from inertial_estimation.check.table import Table
from inertial_estimation.estimation.dependence import ResultDependence
from inertial_estimation.model.robot import Robot


class Dependence(NamedTuple):
    """What results of one kind rest on."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[ResultDependence, ...]


@dataclass(frozen=True)
class Check:
    """The findings about one robot."""

    robot: Robot
    findings: tuple[Findings, ...]
    """Sensors, submodels and clusters."""
    main: tuple[Findings, ...]
    """The same in few lines."""
    warnings: tuple[str, ...]
    refusals: tuple[str, ...] = ()
    """Why the node would not start with it; empty: it would."""
    contacts: tuple[str, ...] = ()
    """Where the environment is taken to touch the robot, by name."""
    dependence: tuple[Dependence, ...] = ()
    """What torques and external wrenches rest on."""
    uninformed: tuple[str, ...] = ()
    """Warnings of torques that no FT sensor informs."""

    @property
    def summary(self) -> str:
        """What the robot consists of."""
        return self.robot.summary

    @property
    def tables(self) -> tuple[Table, ...]:
        """All findings but the dependence, for a person."""
        return tuple(findings.table for findings in self.findings)

    @property
    def main_tables(self) -> tuple[Table, ...]:
        """The same in few lines."""
        return tuple(findings.table for findings in self.main)

    def dependence_tables(self, *, whole: bool = False) -> tuple[Table, ...]:
        """Return what torques and external wrenches rest on, for a person."""
        robot = self.robot
        fts, imus = ([s.name for s in sensors] for sensors in (robot.ft_sensors, robot.imus))
        orders = ((),) * 4 if whole else (fts, imus, robot.joint_names, robot.link_names)
        return tuple(_dependence_table(dependence, orders) for dependence in self.dependence)

    def as_dict(self) -> dict[str, Any]:
        """Return the findings for a machine."""
        tables: dict[str, Any] = {key(f.title): f.records() for f in self.findings}
        for title, columns, rows in self.dependence:
            keys = [key(column) for column in columns]
            tables[key(title)] = [dict(zip(keys, astuple(row), strict=True)) for row in rows]
        robot = {
            'name': self.robot.name,
            'mass_kg': self.robot.mass,
            'links': list(self.robot.link_names),
            'joints': list(self.robot.joint_names),
            'ft_sensors': [sensor.name for sensor in self.robot.ft_sensors],
            'imus': [imu.name for imu in self.robot.imus],
            'fixed_link': self.robot.fixed_frame or None,
        }
        return {
            'summary': self.summary,
            'warnings': [*self.warnings, *self.uninformed],
            'refusals': list(self.refusals),
            'robot': robot,
            **tables,
        }


def _dependence_table(dependence: Dependence, orders: Sequence[Sequence[str]]) -> Table:
    """Return what results rest on, with names that follow each other in an order cut short."""
    rows = tuple(
        (
            row.name,
            *(
                str(Names.of(names, order)) or 'none'
                for names, order in zip(astuple(row)[1:], orders, strict=True)
            ),
        )
        for row in dependence.rows
    )
    return Table(dependence.title, dependence.columns, rows)
