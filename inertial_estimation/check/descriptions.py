# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What of a robot description can be used, and why the rest cannot."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from inertial_estimation.errors import ModelError
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.robot import Robot


def usable_joints(types: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the joints that can be estimated, and why the robot is refused with others."""
    joints, refusals = [], []
    for name, kind in types.items():
        if kind in urdf_text.ONE_DOF:
            joints.append(name)
        elif kind != 'fixed':
            refusals.append(
                f"joint '{name}' is of type '{kind}': it is locked at zero here, but node and "
                "library refuse the robot until 'joints' names all joints to estimate but this one"
            )
    return joints, refusals


def usable_sensors(
    root: Element, joints: list[str], urdf: str | Path
) -> tuple[list[str], list[str]]:
    """Return the FT sensors that can be used, and why the robot is refused with others."""
    sensors: list[str] = []
    refusals: list[str] = []
    for name in urdf_text.ft_specs(root):
        try:
            Robot.from_urdf(urdf, joints=joints, ft_sensors=[*sensors, name], imus=())
        except ModelError as error:
            refusals.append(
                f'left out here: {error}. Node and library refuse the robot until its tag is '
                "mended, or 'ft_sensors' names the others"
            )
        else:
            sensors.append(name)
    return sensors, refusals


def hidden_sensors(root: Element) -> list[str]:
    """Warn of FT sensors that only simulators know."""
    tag = "sensor[@type='force_torque']"
    with_tag = {parent.get('joint') for parent in root.findall(f'{tag}/parent')}
    names = {
        sensor.get('name', '')
        for gazebo in root.findall('gazebo')
        if gazebo.get('reference') not in with_tag
        for sensor in gazebo.findall(tag)
    }
    return [
        f"FT sensor '{name}' has a tag inside <gazebo> only, which does not count: put "
        '<sensor type="force_torque"> directly under <robot>, or describe it in the configuration'
        for name in sorted(names - set(urdf_text.ft_specs(root)))
    ]
