# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Missing parts of a sample: their detection, the results they reach, a sample without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.balance import Balance, Forest, masks
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import find_dependence
from inertial_estimation.estimation.estimate import Flags, Quality
from inertial_estimation.estimation.link_motion import LinkMotions, MotionPlan, replaced
from inertial_estimation.estimation.sensor_arrays import ACCELEROMETER, GYROSCOPE, Bits
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch, SensorState

S = TypeVar('S', Sample, SampleBatch)

NUMBERS = Sample._fields[1:8]
"""Arrays of a sample that no robot may lack."""
ABSURD = 1e30
"""Numbers of this size are faults too: their products would overflow into other results."""


class Faults(NamedTuple):
    """Missing parts of a sample, or of many."""

    joints: Mask
    """Shape (..., n_joints)."""
    fts: Mask
    """Shape (..., n_fts)."""
    assumed: Mask
    """Joints of which a constant stands in, shape (..., n_joints)."""
    linear: Mask
    """IMUs without a proper acceleration, shape (..., n_imus)."""
    angular: Mask
    """IMUs without an angular velocity, shape (..., n_imus)."""

    @classmethod
    def none(cls, assumed: Mask, n_fts: int, motion: LinkMotions) -> Faults:
        """Return the faults of one sample in which every sensor works."""
        has_linear, has_angular = _measured(motion)
        fts = np.zeros(n_fts, dtype=bool)
        return cls(np.zeros_like(assumed), fts, assumed, ~has_linear, ~has_angular)

    @property
    def bits(self) -> Bits:
        """Quantities that the IMUs deliver, at one instant."""
        return tuple((ACCELEROMETER * ~self.linear + GYROSCOPE * ~self.angular).tolist())


# As numbers of the arrays' own type: an enumeration counts as a 64-bit integer beside them.
ASSUMED, MERGED, MISSING = map(np.uint8, (Quality.ASSUMED, Quality.MERGED, Quality.MISSING))


class Qualities(NamedTuple):
    """`Quality` of every result as far as it follows from the working sensors, (n,) each."""

    contacts: Flags
    """All that were asked for."""
    torques: Flags
    external: Flags
    submodels: Flags
    """Rows of ``robot.submodels``."""


def find_qualities(
    robot: Robot,
    forest: Forest,
    balance: Balance,
    contacts: Sequence[Contact],
    active: Sequence[int],
    faults: Faults,
    motion: MotionPlan,
) -> Qualities:
    """Mark all results that depend on something missing or assumed."""
    n, n_links = len(robot.joint_names), len(robot.links)
    unknowns = [contacts[c].unknowns for c in active]
    sums = np.zeros(len(balance.submodels), dtype=np.uint8)
    torques, external = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    if faults.joints.any() or faults.assumed.any():
        depends = find_dependence(robot, forest, balance, unknowns)
        for flag, joints in ((MISSING, faults.joints), (ASSUMED, faults.assumed)):
            sums[depends.submodels.joints[:, joints].any(axis=1)] |= flag
            torques[depends.torques.joints[:, joints].any(axis=1)] |= flag
            external[depends.external.joints[:, joints].any(axis=1)] |= flag
    if not (robot.fixed_frame or motion.serving.any()):
        for flags in (sums, torques, external):
            flags |= MISSING
    lost = [robot.ft_sensors[s].child for s in np.flatnonzero(faults.fts)]
    merged = balance.members[:, lost].any(axis=1)
    sums[merged] |= MERGED
    touched = masks([[robot.frame(one.frame)[0] for one in contacts if one.unknowns]], n_links)
    touched &= balance.members[merged].any(axis=0)
    external[(balance.loading & touched).any(axis=1)] |= MERGED
    torques[(balance.beyond & touched).any(axis=1) | balance.beyond[:, lost].any(axis=1)] |= MERGED
    wrenches = np.zeros(len(contacts), dtype=np.uint8)
    for c in set(range(len(contacts))).difference(active):
        holder = balance.members[:, robot.frame(contacts[c].frame)[0]].argmax()
        wrenches[c] = Quality.DROPPED | (sums[holder] & MERGED)
    for c, s in enumerate(balance.contact_submodel):
        if unknowns[c]:
            wrenches[active[c]] = sums[s]
    submodels = np.full(len(robot.submodels), MERGED)
    submodels[own_rows(robot, balance)] = sums
    for flags in (wrenches, torques, external, submodels):
        flags.flags.writeable = False
    return Qualities(wrenches, torques, external, submodels)


def own_rows(robot: Robot, balance: Balance) -> list[int]:
    """Return the row of each submodel of a balance among the robot's own."""
    rows = {submodel.root: row for row, submodel in enumerate(robot.submodels)}
    return [rows[submodel.root] for submodel in balance.submodels]


def find_faults(
    sample: Sample | SampleBatch, ft_wrenches: Array, motion: LinkMotions, between: Sequence[int]
) -> Faults:
    """Return the missing parts; between: joints between the trees while nothing is missing."""
    linear, angular = _find_imu_faults(sample, motion)
    rates = np.asarray(_is_sound(sample.velocities) & _is_sound(sample.accelerations))
    nominal = motion.nominal
    # Of these joints only positions are used, as long as no IMU in use fails: the trees change.
    rateless = [j for j in between if nominal.is_plain or j not in nominal.joints]
    if rateless:
        has_linear, has_angular = _measured(motion)
        faulty = (linear & has_linear) | (angular & has_angular)
        whole = ~np.asarray((faulty & nominal.used).any(axis=-1))
        rates[..., rateless] |= whole[..., None]
    joints = _is_sound(sample.positions) & rates
    fts = np.asarray(_is_sound(ft_wrenches).all(axis=-1))
    assumed = np.zeros_like(joints)
    if sample.joint_states is not None:
        assumed = sample.joint_states == SensorState.ASSUMED
    return Faults(~joints, ~fts, assumed, linear, angular)


Unsound = tuple[tuple[int, Indices, bytes], ...]
"""Numbers that are not sound: field of the sample, places in it, and their bytes."""


def unsound(sample: Sample, measured: Array) -> Unsound:
    """Return the numbers that are not sound; FT wrenches are in place of the readings."""
    arrays = enumerate((*sample[1:7], measured), 1)
    found = [(k, array.ravel(), np.flatnonzero(~_is_sound(array))) for k, array in arrays]
    return tuple((k, at, array[at].tobytes()) for k, array, at in found if len(at))


def _measured(motion: LinkMotions) -> tuple[Mask, Mask]:
    """Return masks of the IMUs that measure an acceleration, and an angular velocity."""
    bits = np.array(motion.bits, dtype=np.intp)
    return bits & ACCELEROMETER != 0, bits & GYROSCOPE != 0


def _find_imu_faults(sample: Sample | SampleBatch, motion: LinkMotions) -> tuple[Mask, Mask]:
    """Return the IMUs that lack an acceleration, and those that lack an angular velocity."""
    rates, accelerations = sample.angular_velocities, sample.proper_accelerations
    linear = _is_sound(accelerations).all(axis=-1)
    angular = _is_sound(rates).all(axis=-1)
    if not motion.arrays:
        angular &= _is_sound(sample.angular_accelerations).all(axis=-1)
    has_linear, has_angular = _measured(motion)
    # A quantity that is absent by declaration does not make the other one suspect.
    no_linear = np.isnan(accelerations).all(axis=-1) | ~has_linear
    no_angular = np.isnan(rates).all(axis=-1) | ~has_angular
    linear, angular = linear & has_linear, angular & has_angular
    return ~(linear & (angular | no_angular)), ~(angular & (linear | no_linear))


def _is_sound(values: Array) -> Mask:
    """Return a mask of the values that are finite and not absurd."""
    return np.asarray(np.abs(values) < ABSURD)


def alike(*masks: Mask) -> Iterator[tuple[list[Mask], Indices]]:
    """Group the instants at which all masks (n, ...) are equal; yields their rows (...)."""
    flags = np.concatenate(masks, axis=1)
    borders = np.cumsum([mask.shape[1] for mask in masks])[:-1]
    packed = np.packbits(flags, axis=1)
    starts = np.flatnonzero((packed[1:] != packed[:-1]).any(axis=1)) + 1
    groups: dict[bytes, list[Indices]] = {}
    for rows in np.split(np.arange(len(packed)), starts):
        groups.setdefault(packed[rows[:1]].tobytes(), []).append(rows)
    for runs in groups.values():
        row = flags[runs[0][0]] if len(flags) else np.zeros(flags.shape[1], dtype=bool)
        yield np.split(row, borders), np.concatenate(runs)


class Gaps:
    """Zeros in place of missing parts; a plan for them keeps these out of all results."""

    def __init__(self, faults: Faults, motion: MotionPlan) -> None:
        self._motion = motion
        linear, angular = faults.linear, faults.angular
        imus = (linear | angular if motion.is_plain else linear & angular)[:, None]
        self._fts: list[int] = np.flatnonzero(faults.fts).tolist()
        masks = zip(NUMBERS[:6], [faults.joints] * 3 + [imus] * 3)
        self._masks = {name: mask for name, mask in masks if mask.any()}

    def fill(self, sample: S, ft_wrenches: Array) -> tuple[S, Array]:
        """Return a sample, or many, and its calibrated readings (..., n_fts, 6) without gaps."""
        if self._masks:
            filled = {name: getattr(sample, name).copy() for name in self._masks}
            for name, mask in self._masks.items():
                np.copyto(filled[name], 0.0, where=mask)
            sample = replaced(sample, **filled)
        if self._fts:
            ft_wrenches = ft_wrenches.copy()
            for s in self._fts:
                ft_wrenches[..., s, :] = 0.0
        return self._motion.complete(sample), ft_wrenches
