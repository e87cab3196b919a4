# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What speaks against the presumed support being the only contact of an offset range.

The offsets from the model take up whatever another contact carries, so that no force of it is left
to be seen. Two things remain: a contact that is as high as the support may stand on the same
ground, and a force that changes is no offset. Neither is a proof, and a hand that leans on
something still is found by neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.forest import build_geometry
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, Sample, SampleBatch

Mask = NDArray[np.bool_]

LEVEL = 0.02
"""Contacts whose heights differ by less may stand on the same ground [m]."""
MOSTLY = 0.5
"""Level for a larger share of the range means that it may have stood there throughout."""
UNSTEADY = 0.1
"""
Share of the weight by which a free submodel's force may change.

A real iCub on one foot that bends and swings the other leg shows 0.07, from wrong calibration
matrices and filtered accelerations; the same robot shifting its weight from foot to foot 0.22.
"""
MOST_POSES = 500
TINY = 1e-9


@dataclass(frozen=True)
class SupportDoubt:
    """A second contact that may carry the robot while offsets are computed."""

    contact: str
    """A configured contact, or the root link of a submodel without one."""
    level_share: float
    """Share of the samples in which it is as high as the support, from 0 to 1."""
    load_change_n: float
    """Standard deviation of the force on its submodel [N]."""
    weight_n: float
    """Of the robot [N]."""

    @property
    def finding(self) -> Finding:
        """The doubt as a finding."""
        return finding(
            'second_support', self.contact, share=self.level_share, change=self.load_change_n,
            part=self.load_change_n / self.weight_n,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The finding as text."""
        return str(self.finding)


def find_doubts(
    samples: SampleBatch, estimator: WrenchEstimator, contacts: tuple[Contact, ...]
) -> tuple[SupportDoubt, ...]:
    """Look for other contacts than the support."""
    robot = estimator.robot
    gravity = np.linalg.norm(robot.gravity)
    support = estimator.contacts[0]
    if not len(samples) or gravity < TINY:
        return ()
    weight = robot.mass * float(gravity)
    changes = _force_changes(samples, estimator)
    level = _level_shares(samples, robot, support, contacts)
    link = robot.frame(support.frame)[0]
    doubts = []
    for row, submodel in enumerate(robot.submodels):
        if link in submodel.links:
            continue
        here = [c for c in contacts if robot.frame(c.frame)[0] in submodel.links]
        named = max(here, key=lambda c: level[c.name], default=None)
        share = level[named.name] if named else 0.0
        if share > MOSTLY or changes[row] > UNSTEADY * weight:
            name = named.name if named else submodel.name
            doubts.append(SupportDoubt(name, share, float(changes[row]), weight))
    return tuple(doubts)


def beside_level(doubts: Sequence[SupportDoubt]) -> tuple[SupportDoubt, ...]:
    """Return the doubts that stay once somebody has said what carries the robot."""
    return tuple(one for one in doubts if one.load_change_n > UNSTEADY * one.weight_n)


def _force_changes(samples: SampleBatch, estimator: WrenchEstimator) -> Array:
    """Return the standard deviation of each submodel's residual force, (n_submodels,) [N]."""
    forces = estimator.batch(samples).residuals[:, :, :3]
    known: Mask = np.logical_and.reduce(np.isfinite(forces), axis=2)
    count = np.maximum(known.sum(axis=0), 1)
    forces = np.where(known[..., None], forces, 0.0)
    centred = np.where(known[..., None], forces - forces.sum(axis=0) / count[:, None], 0.0)
    changes: Array = np.sqrt((centred**2).sum(axis=(0, 2)) / count)
    return changes


def _level_shares(
    samples: SampleBatch, robot: Robot, support: Contact, contacts: tuple[Contact, ...]
) -> dict[str, float]:
    """Return in which share of the known poses each contact is as high as the support."""
    rows = np.unique(np.linspace(0, len(samples) - 1, MOST_POSES).round().astype(int))
    heights_of = _Heights(robot, (support, *contacts))
    heights = np.array([heights_of.at(samples[k]) for k in rows])
    steps = heights[:, 1:] - heights[:, :1]
    known = np.maximum(np.isfinite(steps).sum(axis=0), 1)
    shares = (np.abs(steps) < LEVEL).sum(axis=0) / known
    return dict(zip((contact.name for contact in contacts), shares.tolist()))


class _Heights:
    """Heights of contacts in one pose."""

    def __init__(self, robot: Robot, contacts: Sequence[Contact]) -> None:
        self._robot = robot
        self._geometry = build_geometry(robot)
        self._data = self._geometry.model.createData()
        self._frames = [robot.frame(contact.frame) for contact in contacts]
        self._points = [(*contact.point, 1.0) for contact in contacts]

    def at(self, sample: Sample) -> Array:
        """Return the height of each contact above the root link's origin, NaN if unknown [m]."""
        pin.forwardKinematics(self._geometry.model, self._data, sample.positions)
        up = self._upward(sample)
        places = [self._pose(*f) @ p for f, p in zip(self._frames, self._points)]
        heights: Array = np.array(places)[:, :3] @ up
        return heights

    def _pose(self, link: int, L_H_frame: Array) -> Array:
        """Return the pose of a frame in the root link [m]."""
        joint = int(self._geometry.support[link])
        pose: Array = self._data.oMi[joint].homogeneous @ self._geometry.support_H_L[link]
        return pose @ L_H_frame

    def _upward(self, sample: Sample) -> Array:
        """Return the upward direction in the root link; an IMU tells it but for its motion."""
        robot = self._robot
        if robot.fixed_frame:
            pose, up = self._pose(*robot.frame(robot.fixed_frame)), -robot.gravity
        else:
            known = np.isfinite(sample.proper_accelerations).all(axis=1)
            if not known.any():
                return np.full(3, np.nan)
            k = int(np.argmax(known))
            pose = self._pose(robot.imus[k].link, robot.imus[k].L_H_S)
            up = sample.proper_accelerations[k]
        direction: Array = pose[:3, :3] @ up / np.linalg.norm(up)
        return direction
