# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Check of a robot: sensors, submodels, motion sources, dependence, and what would be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
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
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import LARGEST_ARM, inertia_complaint
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import assign_owners
from inertial_estimation.model.urdf import FT_TAG, ONE_DOF, ft_specs, joint_types, load_text, parse
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.sources import accepted_frame_ids

Record = dict[str, Any]


def check_urdf(
    urdf: str | Path,
    *,
    imus: Iterable[str] | None = None,
    fixed_link: str = '',
    contacts: Sequence[Contact] = (),
) -> Record:
    """Check a URDF; joints and FT sensors that cannot be used are left out and refused."""
    root = parse(load_text(urdf))
    joints, others = usable_joints(root)
    remedy = "name those to estimate, without it, as 'joints' in a file for --config"
    refusals = [f'joint {one}: {remedy}' for one in others]
    refused = _refusal(lambda: Robot.from_urdf(urdf, joints=joints, imus=()))
    robot = Robot.from_urdf(
        urdf, joints=joints, ft_sensors=() if refused else None, imus=imus, fixed_link=fixed_link
    )
    findings = hidden_sensors(root)
    return check_robot(robot, contacts, findings=findings, refusals=[*refusals, refused])


def check_settings(
    settings: EstimatorSettings, urdf: str, contacts: Sequence[Contact] = ()
) -> Record:
    """Check a robot as the node would build it."""
    robot = build_robot(settings, urdf)

    def build() -> None:
        build_internal_wrenches(settings, build_estimator(settings, robot))
        SampleAssembler(robot, settings)
        ContactStream(robot, settings)
        for ft in robot.ft_sensors:
            accepted_frame_ids(settings, robot, ft)
        for imu in robot.imus:
            accepted_frame_ids(settings, robot, imu)

    refused = _refusal(build)
    given = contacts or ([] if refused else build_contacts(settings))
    arrays = settings.angular_acceleration_source == 'array'
    return check_robot(robot, given, arrays=arrays, refusals=[refused])


def check_robot(
    robot: Robot,
    contacts: Sequence[Contact] = (),
    *,
    arrays: bool = False,
    findings: Iterable[Finding] = (),
    refusals: Sequence[str] = (),
) -> Record:
    """
    Return the records of ``--json``: sensors, submodels, dependence, findings and refusals.

    The refusals are the reasons that the node would not start with the robot; arrays: whether
    accelerometers give angular accelerations.
    """
    for contact in contacts:
        robot.frame(contact.frame, f"the contacts name '{contact.name}'")
    refused = _refusal(lambda: WrenchEstimator(robot, contacts, acceleration_arrays=arrays))
    records, found = _sensors_and_submodels(robot), [*findings, *inertia_findings(robot)]
    # Without motion sources the refusal states why.
    with suppress(ModelError):
        if robot.imus or robot.fixed_frame:
            records['clusters'] = list(_clusters(robot, LinkMotions(robot, arrays=arrays).nominal))
            if contacts:
                table = dependence_table(robot, contacts, acceleration_arrays=arrays)
                records['torque_dependence'] = [asdict(row) for row in table.torques]
                records['wrench_dependence'] = [asdict(row) for row in table.wrenches]
                for group in table.uninformed:
                    joints = ', '.join(group.joints)
                    found.append(
                        finding('uninformed', group.submodel, joints=joints, contact=group.contact)
                    )
    reasons = dict.fromkeys(filter(None, (*refusals, refused)))
    return {'summary': robot.summary, 'findings': found, 'refusals': [*reasons], **records}


def usable_joints(root: Element) -> tuple[list[str], list[str]]:
    """Return the joints that can be estimated, and names and types of others that move."""
    types = joint_types(root)
    others = {k: v for k, v in types.items() if v not in ('fixed', *ONE_DOF)}
    joints = [name for name, kind in types.items() if kind in ONE_DOF]
    return joints, [f"'{name}' of type '{kind}'" for name, kind in others.items()]


def hidden_sensors(root: Element) -> list[Finding]:
    """Return FT sensors with a tag inside <gazebo> only, on joints that cannot be cut."""
    with_tag = {parent.get('joint') for parent in root.findall(f'{FT_TAG}/parent')}
    hidden = {
        sensor.get('name', '')
        for gazebo in root.findall('gazebo')
        if gazebo.get('reference') not in with_tag
        for sensor in gazebo.findall(FT_TAG)
    } - set(ft_specs(root))
    what = 'FT sensor of <gazebo> not used: it sits on no fixed joint'
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


def _sensors_and_submodels(robot: Robot) -> Record:
    """Return sensors, their poses, and sensors, mass and links of submodels."""
    links, fts = robot.link_names, []
    for ft in robot.ft_sensors:
        acting, other = (ft.child, ft.parent) if ft.direction > 0 else (ft.parent, ft.child)
        fts.append({
            'sensor': ft.name, 'joint': ft.joint, 'reads': f'{links[acting]} on {links[other]}',
            'on_link': links[ft.child], **_pose(ft.child_H_sensor),
        })  # fmt: skip
    inertial = [
        {
            'sensor': sensor.name, 'kind': kind, 'measures': getattr(sensor, 'measures', ''),
            'on_link': links[sensor.link], **_pose(sensor.L_H_S),
        }
        for kind in ('accelerometers', 'gyroscopes', 'imus')
        for sensor in getattr(robot, kind)
    ]  # fmt: skip
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
    return {
        'ft_sensors': fts,
        'inertial_sensors': inertial,
        'joints': robot.joint_names,
        'submodels': submodels,
    }


def _pose(L_H_S: Array) -> Record:
    """Return a pose (4, 4) as a URDF has it."""
    xyz, rpy = L_H_S[:3, 3], matrixToRpy(L_H_S[:3, :3])
    return {'xyz_m': xyz.round(9).tolist(), 'rpy_rad': rpy.round(9).tolist()}


def _clusters(robot: Robot, plan: MotionPlan) -> Iterator[Record]:
    """Yield the links that each motion source serves."""
    serving, sources = robot.motion_sources(np.flatnonzero(plan.serving).tolist())
    owners = assign_owners(robot.links, sources)
    for s, source in enumerate(sources):
        serves = [n for n, o in zip(robot.link_names, owners, strict=True) if o == s]
        link = robot.link_names[source.link]
        yield {'source': source.name, 'on_link': link, 'serves': serves}
    for k, imu in enumerate(() if robot.fixed_frame else robot.imus):
        if k not in serving:
            yield {'source': imu.name, 'on_link': robot.link_names[imu.link], 'serves': []}
