# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""An arm of four joints on a table, with samples of a motion and its joint torques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation import EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import net_wrench_regressor

LINKS = 'drawn', 'seen', 'told', 'bare'
AXES = '0 0 1', '0 1 0', '1 0 0', '0 1 0'
MASSES = 2.0, 1.5, 1.0, 0.5


def arm_urdf(masses: Sequence[float] = MASSES, drawn: Mapping[str, str] | None = None) -> str:
    """Return the URDF, with tags of geometry by link."""
    parent, text = 'base', '<robot name="arm"><link name="base"/>'
    for name, mass, axis in zip(LINKS, masses, AXES, strict=True):
        text += f"""<link name="{name}"><inertial><origin xyz="0.1 0 0.02"/><mass value="{mass}"/>
          <inertia ixx="{0.01 * mass}" iyy="{0.02 * mass}" izz="{0.02 * mass}" ixy="0" ixz="0"
          iyz="0"/></inertial>{(drawn or {}).get(name, '')}</link>
          <joint name="j_{name}" type="continuous"><parent link="{parent}"/><child link="{name}"/>
          <origin xyz="0.3 0 0" rpy="0.3 0.2 0"/><axis xyz="{axis}"/></joint>"""
        parent = name
    return text + '</robot>'


def arm() -> Robot:
    """Return the arm as it is."""
    return Robot.from_urdf(arm_urdf(), fixed_link='base')


def swinging(
    rng: np.random.Generator,
    seconds: float,
    rate: float,
    n_joints: int = 3,
    n_fts: int = 0,
    waves: tuple[Sequence[float], float, float] = ((0.3, 0.7, 1.1, 1.7), 0.05, 0.3),
) -> SampleBatch:
    """Return samples of joints that swing at frequencies [Hz] and amplitudes, all else zero."""
    t = np.arange(round(seconds * rate)) / rate
    q, v, a = np.zeros((3, len(t), n_joints))
    frequencies, least, most = waves
    for f in frequencies:
        size, phase = rng.uniform(least, most, n_joints), rng.uniform(0, 6, n_joints)
        w = 2 * np.pi * f
        q += size * np.sin(w * t[:, None] + phase)
        v += w * size * np.cos(w * t[:, None] + phase)
        a -= w**2 * size * np.sin(w * t[:, None] + phase)
    empty = np.zeros((len(t), 0, 3))
    return SampleBatch(
        np.round(t * 1e9).astype(np.int64), q, v, a, empty, empty, empty,
        np.zeros((len(t), n_fts, 6)), efforts=np.zeros_like(q),
    )  # fmt: skip


def moving(rng: np.random.Generator, seconds: float, rate: float) -> SampleBatch:
    """Return samples of the arm on a motion below 1 Hz, with efforts of zero."""
    return swinging(rng, seconds, rate, 4, waves=((0.2, 0.5, 0.9), 0.2, 0.5))


def tool_readings(robot: Robot, samples: SampleBatch) -> NDArray[np.float64]:
    """Return the readings of the sensor that carries the link 'tool', (n, 6)."""
    tool = robot.link_names.index('tool')
    motions = link_motions(robot, samples, poses_in_parents(robot, samples.positions))
    return -net_wrench_regressor(motions[tool]) @ robot.parameters[tool]


def efforts_of(
    robot: Robot, samples: SampleBatch, external: Mapping[str, NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """Return the joint torques of a robot, all in its first submodel, shape (n, n_joints)."""
    samples = replace(samples, efforts=np.zeros_like(samples.positions))
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    # With efforts of zero, the residuals of the equations are the efforts.
    rows = builder.equations(samples, external=external)[0]
    x = robot.parameters[list(robot.submodels[0].links)].reshape(-1)
    kinds = [rows[f'effort {name}'] for name in robot.joint_names]
    return np.stack([one.Y @ x - one.y for one in kinds], axis=1)
