# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the package makes of a robot description: sensors, submodels, clusters, dependence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.body_motion import BodyMotion, MotionPlan
from inertial_estimation.estimation.body_report import report_bodies
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.grounds import Grounds, find_grounds
from inertial_estimation.findings import Action, Cell, Findings, Pose, key
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.inertia import inertia_complaint
from inertial_estimation.model.motion_sources import assign_owners, serving_sources
from inertial_estimation.model.robot import Robot
from inertial_estimation.table import Table

FEW = 3
"""So many names are listed; of more only the number."""


class Dependence(NamedTuple):
    """What results of one kind rest on."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Grounds, ...]


@dataclass(frozen=True)
class Check:
    """The findings about one robot."""

    robot: Robot
    findings: tuple[Findings, ...]
    """Sensors, submodels and clusters."""
    warnings: tuple[str, ...]
    dependence: tuple[Dependence, ...] = ()
    """What torques and external wrenches rest on."""

    @property
    def summary(self) -> str:
        """What the robot consists of."""
        return self.robot.summary

    @property
    def tables(self) -> tuple[Table, ...]:
        """The findings for a person."""
        tables = [findings.table for findings in self.findings]
        return (*tables, *map(_dependence_table, self.dependence))

    def as_dict(self) -> dict[str, Any]:
        """
        Return the findings for a machine.

        Returns
        -------
        dict
            ``summary``, ``warnings``, ``robot``, and under each table's title in snake case a
            list of rows by column. Units are in the keys, lists hold all names.

        """
        tables: dict[str, Any] = {key(f.title): f.records() for f in self.findings}
        for title, columns, rows in self.dependence:
            keys = [key(column) for column in columns]
            tables[key(title)] = [dict(zip(keys, astuple(row), strict=True)) for row in rows]
        robot = {
            'name': self.robot.name,
            'mass_kg': self.robot.mass,
            'links': list(self.robot.link_names),
            'joints': list(self.robot.joint_names),
            'fixed_link': self.robot.fixed_frame or None,
        }
        warnings = list(self.warnings)
        return {'summary': self.summary, 'warnings': warnings, 'robot': robot, **tables}


def check_urdf(
    urdf: str | Path,
    *,
    imus: Iterable[str] | None = None,
    fixed_link: str = '',
    contacts: Sequence[Contact] = (),
) -> Check:
    """
    Read a robot description and tell what cannot be used instead of failing on it.

    Parameters
    ----------
    urdf : str or Path
        Text or path.
    imus : iterable of str, optional
        IMUs in use; default: all that the tags show.
    fixed_link : str, optional
        Frame at rest, instead of IMUs.
    contacts : sequence of Contact, optional
        Where the environment is taken to touch the robot: tells what every result rests on.

    Returns
    -------
    Check

    Raises
    ------
    ModelError
        If the description cannot be read at all.
    NameNotFound
        If an IMU, the fixed link or the frame of a contact does not exist.

    """
    root = urdf_text.parse(urdf_text.load_text(urdf))
    joints, joint_warnings = _usable_joints(urdf_text.joint_types(root))
    sensors, sensor_warnings = _usable_sensors(root, joints, urdf)
    robot = Robot.from_urdf(
        urdf, joints=joints, ft_sensors=sensors, imus=imus, fixed_link=fixed_link
    )
    return check_robot(robot, (*joint_warnings, *sensor_warnings), contacts)


def check_robot(
    robot: Robot,
    warnings: Iterable[str] = (),
    contacts: Sequence[Contact] = (),
    angular_acceleration_source: str = 'filter',
) -> Check:
    """
    Describe a robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    warnings : iterable of str, optional
        What is known to be wrong already.
    contacts : sequence of Contact, optional
        As in `check_urdf`.
    angular_acceleration_source : str, optional
        As in the settings.

    Returns
    -------
    Check

    Raises
    ------
    FrameNotFound
        If a contact names a frame that the robot does not have.

    """
    complaints = [
        f"link '{name}' {complaint}"
        for name, parameters in zip(robot.link_names, robot.parameters, strict=True)
        if (complaint := inertia_complaint(parameters))
    ]
    if not robot.imus and not robot.fixed_frame:
        complaints.append('nothing tells how the robot moves: name an IMU or a fixed link')
    arrays = angular_acceleration_source == 'array'
    plan = None
    try:
        plan = BodyMotion(robot, arrays=arrays).nominal
    except ModelError as error:
        complaints.append(str(error))
    findings = [_ft_sensors(robot), _inertial_sensors(robot), _submodels(robot)]
    if plan is not None:
        findings += [_clusters(robot, plan), *_bodies(robot, plan, angular_acceleration_source)]
    if not contacts or plan is None or not (robot.imus or robot.fixed_frame):
        return Check(robot, tuple(findings), (*warnings, *complaints))
    found = find_grounds(robot, contacts, acceleration_arrays=arrays)
    things = ('FT sensors', 'IMUs', 'joints', 'links')
    dependence = (
        Dependence('What joint torques rest on', ('joint', *things), found.torques),
        Dependence('What external wrenches rest on', ('contact', *things), found.wrenches),
    )
    complaints += map(str, found.uninformed)
    return Check(robot, tuple(findings), (*warnings, *complaints), dependence)


def _usable_joints(types: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the joints that can be estimated, and why others are locked."""
    joints, warnings = [], []
    for name, kind in types.items():
        if kind in urdf_text.ONE_DOF:
            joints.append(name)
        elif kind != 'fixed':
            warnings.append(
                f"joint '{name}' is of type '{kind}': it is locked at zero here, but node and "
                "library refuse the robot until 'joints' names all joints to estimate but this one"
            )
    return joints, warnings


def _usable_sensors(
    root: Element, joints: list[str], urdf: str | Path
) -> tuple[list[str], list[str]]:
    """Return the FT sensors that can be used, and why others cannot."""
    sensors: list[str] = []
    specs = urdf_text.ft_specs(root)
    warnings = [
        f"FT sensor '{name}' has a tag inside <gazebo> only, which does not count: put "
        '<sensor type="force_torque"> directly under <robot>, or describe it in the configuration'
        for name in sorted(_ft_tags_inside_gazebo_only(root) - set(specs))
    ]
    for name in specs:
        try:
            Robot.from_urdf(urdf, joints=joints, ft_sensors=[*sensors, name], imus=())
        except ModelError as error:
            warnings.append(
                f'left out here: {error}. Node and library refuse the robot until its tag is '
                "mended, or 'ft_sensors' names the others"
            )
        else:
            sensors.append(name)
    return sensors, warnings


def _ft_tags_inside_gazebo_only(root: Element) -> set[str]:
    """Return the FT sensors that simulators know, on joints without a tag that counts."""
    tag = "sensor[@type='force_torque']"
    with_tag = {parent.get('joint') for parent in root.findall(f'{tag}/parent')}
    return {
        sensor.get('name', '')
        for gazebo in root.findall('gazebo')
        if gazebo.get('reference') not in with_tag
        for sensor in gazebo.findall(tag)
    }


def _ft_sensors(robot: Robot) -> Findings:
    """Return sensor, joint, links, sign and pose."""
    rows = []
    for sensor in robot.ft_sensors:
        parent, child = robot.link_names[sensor.parent], robot.link_names[sensor.child]
        action = Action(child, parent) if sensor.direction > 0 else Action(parent, child)
        pose = Pose.of(sensor.child_H_sensor)
        rows.append((sensor.name, sensor.joint, parent, child, action, pose))
    columns = ('sensor', 'joint', 'parent link', 'child link', 'reads', 'pose in child link')
    return Findings('FT sensors', columns, tuple(rows))


def _inertial_sensors(robot: Robot) -> Findings:
    """Return place of every accelerometer, gyroscope and IMU."""
    kinds = (
        ('accelerometer', robot.accelerometers),
        ('gyroscope', robot.gyroscopes),
        ('IMU', robot.imus),
    )
    rows = [
        (sensor.name, kind, robot.link_names[sensor.link], Pose.of(sensor.L_H_S))
        for kind, sensors in kinds
        for sensor in sensors
    ]
    columns = ('sensor', 'kind', 'on link', 'pose in link')
    return Findings('Inertial sensors', columns, tuple(rows))


def _submodels(robot: Robot) -> Findings:
    """Return the submodels with their sensors, mass and links."""
    names = [sensor.name for sensor in robot.ft_sensors]
    rows = []
    for submodel in robot.submodels:
        links = list(submodel.links)
        rows.append(
            (
                submodel.name,
                names[submodel.root_sensor] if submodel.root_sensor >= 0 else None,
                tuple(names[k] for k in submodel.child_sensors),
                float(robot.parameters[links, 0].sum()),
                tuple(robot.link_names[k] for k in links),
            )
        )
    columns = ('submodel', 'sensor towards root', 'sensors beyond', 'mass [kg]', 'links')
    return Findings('Submodels', columns, tuple(rows))


def _clusters(robot: Robot, plan: MotionPlan) -> Findings:
    """Return which IMU serves which links."""
    columns = ('source', 'frame', 'on link', 'serves')
    beside = 'with the first one of its link'
    if not robot.imus and not robot.fixed_frame:
        return Findings('Clusters', columns, (), beside)
    serving, sources = serving_sources(robot, np.flatnonzero(plan.serving).tolist())
    owners = assign_owners(robot.links, sources)
    rows: list[tuple[Cell, ...]] = [
        (
            source.name,
            robot.imus[serving[s]].frame if len(serving) else robot.fixed_frame,
            robot.link_names[source.link],
            tuple(n for n, o in zip(robot.link_names, owners, strict=True) if o == s),
        )
        for s, source in enumerate(sources)
    ]
    if not robot.fixed_frame:
        rows += [
            (imu.name, imu.frame, robot.link_names[imu.link], ())
            for k, imu in enumerate(robot.imus)
            if k not in serving
        ]
    return Findings('Clusters', columns, tuple(rows), beside)


def _bodies(robot: Robot, plan: MotionPlan, source: str) -> list[Findings]:
    """Return where the motions of links with IMUs come from, if there are any."""
    rows: list[tuple[Cell, ...]] = [tuple(r) for r in report_bodies(robot, plan, source)]
    columns = (
        *('link', 'accelerometers', 'gyroscopes'),
        *('angular velocity from', 'angular acceleration from', 'acceleration from'),
    )
    return [Findings('Motion of links', columns, tuple(rows))] if rows else []


def _dependence_table(dependence: Dependence) -> Table:
    """Return what results rest on: sensors by name, joints and links by name if they are few."""
    rows = tuple(
        (row.name, *(', '.join(names) or 'none' for names in (row.fts, row.imus)),
         _few(row.joints), _few(row.links))
        for row in dependence.rows
    )  # fmt: skip
    return Table(dependence.title, dependence.columns, rows)


def _few(names: Sequence[str]) -> str:
    """Return names, or how many there are."""
    return str(len(names)) if len(names) > FEW else ', '.join(names) or 'none'
