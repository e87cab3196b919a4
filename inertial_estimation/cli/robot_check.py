# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check of a robot: sensors, submodels, motion sources, dependence, and what would be refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from pinocchio.rpy import matrixToRpy

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.configured_estimator import build_contacts, build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import dependence_table
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.link_motion import LinkMotions, MotionPlan
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import LARGEST_ARM, inertia_complaint
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import assign_owners
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import accepted_frame_ids

Record = dict[str, Any]


class RobotCheck(NamedTuple):
    """Description of a robot, and what is wrong with it."""

    robot: Robot
    records: Record
    """Sensors, submodels, clusters, dependence, as written by ``--json``."""
    findings: tuple[Finding, ...]
    refusals: tuple[str, ...]
    """Reasons that the node would not start with it."""

    def as_dict(self) -> Record:
        """Return all of it for JSON."""
        return {
            'summary': self.robot.summary,
            'findings': [one.as_dict() for one in self.findings],
            'refusals': list(self.refusals),
            **self.records,
        }


def check_urdf(
    urdf: str | Path,
    *,
    imus: Iterable[str] | None = None,
    fixed_link: str = '',
    contacts: Sequence[Contact] = (),
) -> RobotCheck:
    """Check a URDF; joints and sensors that cannot be used are left out and refused."""
    root = urdf_text.parse(urdf_text.load_text(urdf))
    joints, refusals = usable_joints(urdf_text.joint_types(root))
    sensors: list[str] = []
    for name in urdf_text.ft_specs(root):
        try:
            Robot.from_urdf(urdf, joints=joints, ft_sensors=[*sensors, name], imus=())
        except ModelError as error:
            refusals.append(f'FT sensor left out: {error}')
        else:
            sensors.append(name)
    robot = Robot.from_urdf(
        urdf, joints=joints, ft_sensors=sensors, imus=imus, fixed_link=fixed_link
    )
    return check_robot(robot, contacts, findings=hidden_sensors(root), refusals=refusals)


def check_settings(
    settings: EstimatorSettings, urdf: str, contacts: Sequence[Contact] = ()
) -> RobotCheck:
    """Check a robot as the node would build it."""
    robot = build_robot(settings, urdf)
    builders: list[Callable[[], object]] = [
        lambda: build_internal_wrenches(settings, build_estimator(settings, robot)),
        partial(SampleAssembler, robot, settings),
        partial(ContactStream, robot, settings),
        *(partial(accepted_frame_ids, settings, robot, one) for one in robot.ft_sensors),
        *(partial(accepted_frame_ids, settings, robot, one) for one in robot.imus),
    ]
    refusals = [error for build in builders if (error := _refusal(build))]
    given = contacts or ([] if refusals else build_contacts(settings))
    arrays = settings.angular_acceleration_source == 'array'
    return check_robot(robot, given, arrays=arrays, refusals=refusals)


def check_robot(
    robot: Robot,
    contacts: Sequence[Contact] = (),
    *,
    arrays: bool = False,
    findings: Iterable[Finding] = (),
    refusals: Iterable[str] = (),
) -> RobotCheck:
    """Describe a robot; arrays: whether accelerometers give angular accelerations."""
    for contact in contacts:
        robot.frame(contact.frame, f"the contacts name '{contact.name}'")
    counts = Counter(contact.name for contact in contacts)
    twice = [f"contact '{name}' is named more than once" for name, n in counts.items() if n > 1]
    refused = _refusal(lambda: WrenchEstimator(robot, contacts, acceleration_arrays=arrays))
    records: Record = {
        'robot': {
            'name': robot.name,
            'mass_kg': robot.mass,
            'links': list(robot.link_names),
            'joints': list(robot.joint_names),
            'ft_sensors': [sensor.name for sensor in robot.ft_sensors],
            'imus': [imu.name for imu in robot.imus],
            'fixed_link': robot.fixed_frame or None,
        },
        **_sensors_and_submodels(robot),
        'clusters': [],
    }
    found = [*findings, *inertia_findings(robot)]
    # Without motion sources the refusal states why.
    with suppress(ModelError):
        moves = bool(robot.imus or robot.fixed_frame)
        if moves:
            plan = LinkMotions(robot, arrays=arrays).nominal
            records['clusters'] = list(_clusters(robot, plan))
        if moves and contacts:
            table = dependence_table(robot, contacts, acceleration_arrays=arrays)
            records['contacts'] = [contact.name for contact in contacts]
            records['torque_dependence'] = [asdict(row) for row in table.torques]
            records['wrench_dependence'] = [asdict(row) for row in table.wrenches]
            for group in table.uninformed:
                joints = ', '.join(group.joints)
                found.append(
                    finding('uninformed', group.submodel, joints=joints, contact=group.contact)
                )
    reasons = filter(None, (*refusals, *twice, refused))
    return RobotCheck(robot, records, tuple(found), tuple(dict.fromkeys(reasons)))


def usable_joints(types: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the joints that can be estimated, and why the robot is refused with others."""
    joints = [name for name, kind in types.items() if kind in urdf_text.ONE_DOF]
    refusals = [
        f"joint '{name}' is of type '{kind}': name all others as 'joints'"
        for name, kind in types.items()
        if kind != 'fixed' and name not in joints
    ]
    return joints, refusals


def hidden_sensors(root: Element) -> list[Finding]:
    """Return FT sensors with a tag inside <gazebo> only."""
    tag = "sensor[@type='force_torque']"
    with_tag = {parent.get('joint') for parent in root.findall(f'{tag}/parent')}
    hidden = {
        sensor.get('name', '')
        for gazebo in root.findall('gazebo')
        if gazebo.get('reference') not in with_tag
        for sensor in gazebo.findall(tag)
    } - set(urdf_text.ft_specs(root))
    what = 'FT sensor inside <gazebo> only, not used: put its tag directly under <robot>'
    return [finding('suboptimal', name, what=what) for name in sorted(hidden)]


def inertia_findings(robot: Robot) -> Iterator[Finding]:
    """Yield links that no rigid body, or no link of a robot, can be."""
    for name, parameters in zip(robot.link_names, robot.parameters, strict=True):
        if complaint := inertia_complaint(parameters):
            yield finding('inertia', name, what=complaint)
        mass, arm = parameters[0], float(np.linalg.norm(parameters[1:4]))
        if mass > 0.0 and arm > LARGEST_ARM * mass:
            what = f'centre of mass {arm / mass:g} m off the origin, limit {LARGEST_ARM:g} m'
            yield finding('inertia', name, what=what, distance=arm / mass)


def _refusal(build: Callable[[], object]) -> str:
    """Return the error of building something; empty: none."""
    try:
        build()
    except InertialEstimationError as error:
        return str(error)
    return ''


def _pose(matrix: Array) -> Record:
    """Return a pose (4, 4) [m] as position and roll, pitch, yaw about fixed axes."""
    parts = (('xyz_m', matrix[:3, 3]), ('rpy_rad', matrixToRpy(matrix[:3, :3])))
    return {key: (part.round(9) + 0.0).tolist() for key, part in parts}


def _sensors_and_submodels(robot: Robot) -> Record:
    """Return joint, sign and pose of each sensor, and sensors, mass and links of submodels."""
    links, fts, inertial = robot.link_names, [], []
    for ft in robot.ft_sensors:
        acting, other = (ft.child, ft.parent) if ft.direction > 0 else (ft.parent, ft.child)
        reads = f'{links[acting]} on {links[other]}'
        fts.append({'sensor': ft.name, 'joint': ft.joint, 'reads': reads})
        fts[-1] |= _pose(ft.child_H_sensor)
    for kind, sensors in (
        ('accelerometer', robot.accelerometers),
        ('gyroscope', robot.gyroscopes),
        ('IMU', robot.imus),
    ):
        for sensor in sensors:
            measures = getattr(sensor, 'measures', 'both')
            what = kind if measures == 'both' else f'{kind}, {measures} only'
            inertial.append({'sensor': sensor.name, 'kind': what, 'on_link': links[sensor.link]})
            inertial[-1] |= _pose(sensor.L_H_S)
    names = [*(ft.name for ft in robot.ft_sensors), None]
    submodels = [
        {
            'submodel': one.name,
            'sensor_towards_root': names[one.root_sensor],
            'sensors_beyond': [names[k] for k in one.child_sensors],
            'mass_kg': float(robot.parameters[list(one.links), 0].sum()),
            'links': [links[k] for k in one.links],
        }
        for one in robot.submodels
    ]
    return {'ft_sensors': fts, 'inertial_sensors': inertial, 'submodels': submodels}


def _clusters(robot: Robot, plan: MotionPlan) -> Iterator[Record]:
    """Yield the links that each motion source serves."""
    serving, sources = robot.motion_sources(np.flatnonzero(plan.serving).tolist())
    owners = assign_owners(robot.links, sources)
    for s, source in enumerate(sources):
        yield {
            'source': source.name,
            'frame': robot.imus[serving[s]].frame if len(serving) else robot.fixed_frame,
            'on_link': robot.link_names[source.link],
            'serves': [n for n, o in zip(robot.link_names, owners, strict=True) if o == s],
        }
    for k, imu in enumerate(() if robot.fixed_frame else robot.imus):
        if k not in serving:
            on_link = robot.link_names[imu.link]
            yield {'source': imu.name, 'frame': imu.frame, 'on_link': on_link, 'serves': []}
