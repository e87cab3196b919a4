# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From a robot, its description or settings to what is found about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from inertial_estimation.building import (
    build_assembler,
    build_contact_stream,
    build_contacts,
    build_estimator,
    build_internal_wrenches,
    build_robot,
)
from inertial_estimation.check.descriptions import hidden_sensors, usable_joints, usable_sensors
from inertial_estimation.check.overview import find_main
from inertial_estimation.check.records import Findings, Names
from inertial_estimation.check.report import Check, Dependence
from inertial_estimation.check.tables import find_all
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.body_report import joint_motion_text
from inertial_estimation.estimation.contacts import Contact, check_contacts
from inertial_estimation.estimation.dependence import dependence_table
from inertial_estimation.estimation.link_motion import BodyMotion, MotionPlan
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.inertia import LARGEST_ARM, inertia_complaint
from inertial_estimation.model.inertial_sensors import KINDS
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.router import accepted_frame_ids

QUANTITIES = {'accelerometer': 'accelerations', 'gyroscope': 'angular velocities'}


def check_urdf(
    urdf: str | Path,
    *,
    imus: Iterable[str] | None = None,
    fixed_link: str = '',
    contacts: Sequence[Contact] = (),
) -> Check:
    """Read a robot description and tell what cannot be used instead of failing on it."""
    root = urdf_text.parse(urdf_text.load_text(urdf))
    joints, joint_refusals = usable_joints(urdf_text.joint_types(root))
    sensors, sensor_refusals = usable_sensors(root, joints, urdf)
    robot = Robot.from_urdf(
        urdf, joints=joints, ft_sensors=sensors, imus=imus, fixed_link=fixed_link
    )
    refusals = (*joint_refusals, *sensor_refusals)
    return check_robot(robot, hidden_sensors(root), contacts, refusals=refusals)


def check_settings(
    settings: EstimatorSettings, urdf: str, contacts: Sequence[Contact] = ()
) -> Check:
    """Check a robot as the node would build it."""
    robot = build_robot(settings, urdf)
    builders: list[Callable[[], object]] = [
        lambda: build_internal_wrenches(settings, build_estimator(settings, robot)),
        partial(build_assembler, settings, robot),
        partial(build_contact_stream, settings, robot),
        *(partial(accepted_frame_ids, settings, robot, s) for s in robot.ft_sensors),
        *(partial(accepted_frame_ids, settings, robot, s) for s in robot.imus),
    ]
    refusals = [said for build in builders if (said := _refusal(build))]
    given = contacts or ([] if refusals else build_contacts(settings))
    source = settings.angular_acceleration_source
    return _with_joints(check_robot(robot, (), given, source, refusals), settings)


def check_robot(
    robot: Robot,
    warnings: Iterable[str] = (),
    contacts: Sequence[Contact] = (),
    angular_acceleration_source: str = 'filter',
    refusals: Iterable[str] = (),
) -> Check:
    """Describe a robot."""
    contacts = check_contacts(contacts)
    for contact in contacts:
        at = f" at '{contact.frame}'" if contact.name != contact.frame else ''
        robot.frame(contact.frame, f"the contacts name '{contact.name}'{at}")
    source = angular_acceleration_source
    arrays = source == 'array'
    twice = [
        f"'contacts' names '{name}' more than once: name it once"
        for name, n in Counter(contact.name for contact in contacts).items()
        if n > 1
    ]
    refused = _refusal(lambda: WrenchEstimator(robot, contacts, acceleration_arrays=arrays))
    plan = _motion_plan(robot, arrays)
    findings = find_all(robot, plan, source)
    check = Check(
        robot,
        findings,
        find_main(robot, plan, source, findings),
        (*warnings, *_inertia_warnings(robot), *_presumed_warnings(robot)),
        tuple(dict.fromkeys((*refusals, *twice, *([refused] if refused else ())))),
    )
    return check if plan is None or not contacts else _with_grounds(check, contacts, arrays)


def _with_joints(check: Check, settings: EstimatorSettings) -> Check:
    """Return a check that says where the motion of joints comes from."""
    names = check.robot.joint_names
    reported = Names.of((n for n in names if n not in settings.assumed_joints), names)
    text = joint_motion_text(settings.velocity_source, settings.acceleration_source)
    rows = ((reported, text),) if reported.names else ()
    found = Findings('Motion of joints', ('joints', 'comes from'), rows)
    return replace(check, findings=(*check.findings, found), main=(*check.main, found))


def _with_grounds(check: Check, contacts: Sequence[Contact], arrays: bool) -> Check:
    """Return a check that says what everything rests on."""
    found = dependence_table(check.robot, contacts, acceleration_arrays=arrays)
    things = ('FT sensors', 'IMUs', 'joints', 'links')
    return replace(
        check,
        contacts=tuple(contact.name for contact in contacts),
        dependence=(
            Dependence('What joint torques rest on', ('joint', *things), found.torques),
            Dependence('What external wrenches rest on', ('contact', *things), found.wrenches),
        ),
        uninformed=tuple(map(str, found.uninformed)),
    )


def _refusal(build: Callable[[], object]) -> str:
    """Return why something cannot be built; empty: it can."""
    try:
        build()
    except InertialEstimationError as error:
        return str(error)
    return ''


def _motion_plan(robot: Robot, arrays: bool) -> MotionPlan | None:
    """Return how the motions of links come about, if they do."""
    if not robot.imus and not robot.fixed_frame:
        return None
    try:
        return BodyMotion(robot, arrays=arrays).nominal
    except ModelError:
        return None


def _inertia_warnings(robot: Robot) -> list[str]:
    """Return which links cannot be bodies, or are none of a robot."""
    warnings = []
    for name, parameters in zip(robot.link_names, robot.parameters, strict=True):
        if complaint := inertia_complaint(parameters):
            warnings.append(f"link '{name}' {complaint}")
        mass, arm = parameters[0], float(np.linalg.norm(parameters[1:4]))
        if mass > 0.0 and arm > LARGEST_ARM * mass:
            warnings.append(
                f"link '{name}' has its centre of mass {arm / mass:g} m off its origin, expected "
                f'up to {LARGEST_ARM:g}: identify refuses it; state the origin of its inertial in '
                'metres'
            )
    return warnings


def _presumed_warnings(robot: Robot) -> list[str]:
    """Return which IMUs have tags of one kind only, and count as whole all the same."""
    warnings = []
    for kind, presumed in (KINDS, tuple(reversed(KINDS))):
        names = [imu.name for imu in robot.imus if imu.presumed == presumed]
        if names:
            warnings.append(
                f'the description shows {kind}s only at the IMUs {", ".join(names)}: they are '
                f'taken to measure {QUANTITIES[presumed]} as well, as many descriptions have one '
                f"tag for a whole IMU; set 'imu.<name>.measures' to '{kind}' for those that do "
                "not, and to 'both' for those that do"
            )
    return warnings
