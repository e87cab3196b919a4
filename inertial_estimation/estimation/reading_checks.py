# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings that are plainly impossible, found within half a second, and the results they reach.

Each check is a function of a few samples, `PERIOD_NS` apart, of a robot and its joint limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.dependence import Tables, find_dependence
from inertial_estimation.estimation.estimate import Flags, Quality, WrenchEstimate
from inertial_estimation.estimation.known_readings import KNOWN_NS, KnownReadings
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.pinocchio_model import free_floating_model, supports
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import AXES
from inertial_estimation.model.urdf import limits_of, parse
from inertial_estimation.sample import Sample, SampleBatch

PERIOD_NS, COUNT = 50_000_000, 10
"""Time between the samples of a window, and their number."""
EVERY = 4
"""Samples of a window whose motion is computed."""
MAX_EXCESS = 1.0
"""Beyond an end stop by the range of a joint, and by so much, a unit is wrong [rad or m]."""
MAX_REST_RATE, MAX_REST_CHANGE = 0.1, 1.0
"""Angular velocity [rad/s] and change of proper acceleration [m/s^2] of an IMU at rest."""
MAX_GRAVITY_ERROR = 2.0
"""Of the proper acceleration at rest: scale and bias of cheap IMUs are a tenth of it [m/s^2]."""
MAX_DIFFERENCE = 4.0
"""Of the proper accelerations of IMUs: an axis off by 23 degrees [m/s^2]."""
MAX_REVERSED_SHARE = 0.9
"""Of the mass, in submodels whose weight acts upwards: more than any that is held or stands."""
MIN_TRAVEL = 0.03
"""That velocities state while a position stands still [rad or m]."""
MIN_MOVING_AXES = 3
"""Of an FT sensor whose readings all differ, while another axis repeats itself."""
MAX_LEAP, MIN_LEAP = 1.5, 440.0
"""Of a load between two samples, in weights of the robot, and for light robots [N, Nm]: a running
person loads a foot by a weight in 10 ms; transient contact with a person, ISO/TS 15066."""
MAX_EFFORT_LEAP = 5.0
"""Of one sample from both beside it, over the largest range of a joint; real arms have up to 1."""
KEPT_NS = 1_000_000_000
"""Time for which a leap is reported: the period of diagnostics."""
Findings = Iterator[Finding]
Failing = frozenset[tuple[str, str]]
"""Subjects and codes of findings."""
DOUBTFUL = np.uint8(Quality.DOUBTFUL)
QUALITIES = 'contact_quality', 'torque_quality', 'external_torque_quality', 'submodel_quality'


def joint_ranges(robot: Robot) -> Array:
    """Return end stops of the URDF, (2, n_joints) [rad or m]; NaN where a joint has none."""
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    limits = [limits_of(tags[name]) for name in robot.joint_names]
    ends = np.array([[one.get(key, np.nan) for one in limits] for key in ('lower', 'upper')])
    return np.asarray(np.where(ends[0] < ends[1], ends, np.nan))


def positions_beyond_range(robot: Robot, window: SampleBatch, ends: Array) -> Findings:
    """Yield joints that are farther beyond their end stops than these are apart."""
    q, (lower, upper) = window.positions, ends
    off = np.fmax(lower - q, q - upper).min(axis=0)
    for k in np.flatnonzero(off > np.fmax(upper - lower, MAX_EXCESS)):
        yield finding('joint_limit', robot.joint_names[k], level=Level.ERROR, value=q[-1, k],
                      lower=lower[k], upper=upper[k])  # fmt: skip


def frozen_positions(robot: Robot, window: SampleBatch) -> Findings:
    """Yield joints that repeat a position while they state a velocity."""
    steps = np.diff(window.stamp_ns)[:, None] * 1e-9
    travel = np.ptp(np.cumsum(window.velocities[1:] * steps, axis=0), axis=0)
    for k in np.flatnonzero((np.ptp(window.positions, axis=0) == 0.0) & (travel > MIN_TRAVEL)):
        name, what = robot.joint_names[k], f'position in a window of {steps.sum():.2g} s'
        yield finding('frozen', name, level=Level.ERROR, what=what, share=1.0)


def constant_axes(robot: Robot, window: SampleBatch) -> Findings:
    """Yield axes of FT sensors that stand still while others of the same sensor move."""
    for s, sensor in enumerate(robot.ft_sensors):
        ordered = np.sort(window.ft_readings[:, s], axis=0)
        repeated = (ordered[1:] == ordered[:-1]).sum(axis=0)
        if (repeated == 0).sum() >= MIN_MOVING_AXES and np.isfinite(ordered).all():
            for k in np.flatnonzero(repeated == COUNT - 1):
                yield finding('constant', sensor.name, level=Level.ERROR, what=AXES[k],
                              value=ordered[0, k], count=COUNT)  # fmt: skip


def gravity_at_rest(robot: Robot, window: SampleBatch) -> Findings:
    """Yield IMUs at rest whose proper acceleration is not as large as gravity."""
    a, gravity = window.proper_accelerations, float(np.linalg.norm(robot.gravity))
    rests = (np.abs(window.angular_velocities) < MAX_REST_RATE).all(axis=(0, 2))
    rests &= (np.ptp(a, axis=0) < MAX_REST_CHANGE).all(axis=1)
    off = np.abs(np.linalg.norm(a.mean(axis=0), axis=1) - gravity)
    for k in np.flatnonzero(rests & (off > MAX_GRAVITY_ERROR)):
        what = 'proper acceleration at rest, beside gravity,'
        yield finding('rating', robot.imus[k].name, level=Level.ERROR, what=what,
                      value=off[k], limit=MAX_GRAVITY_ERROR)  # fmt: skip


def leaping_readings(robot: Robot, leaps: Array, limit: float) -> Findings:
    """Yield FT sensors whose reading changed by more than a limit; leaps (n, n_fts, 6)."""
    sizes = np.nan_to_num(np.abs(leaps)).max(axis=(0, 2), initial=0.0)
    for s in np.flatnonzero(sizes > limit):
        what = 'change of force or moment between two samples'
        yield finding('rating', robot.ft_sensors[s].name, what=what, value=sizes[s], limit=limit)


def largest_leap(robot: Robot) -> float:
    """Return the largest change between two samples that is a load [N, Nm]."""
    return max(MAX_LEAP * robot.mass * float(np.linalg.norm(robot.gravity)), MIN_LEAP)


def last_known(stamp_ns: Indices, readings: Array) -> tuple[Array, Indices]:
    """Return the newest known readings at each sample and their stamps; all (n, n_fts, 6)."""
    rows = np.where(np.isfinite(readings), np.arange(len(readings))[:, None, None], 0)
    newest = np.maximum.accumulate(rows)
    known_ns: Indices = np.take_along_axis(stamp_ns, newest, axis=0)
    known = np.take_along_axis(readings, newest, axis=0)
    return np.where(np.abs(stamp_ns - known_ns) > KNOWN_NS, np.nan, known), known_ns


def without_leaps(robot: Robot, samples: SampleBatch) -> tuple[SampleBatch, list[Finding]]:
    """Return samples with NaN where a reading or effort leaps out and back, and all leaps."""
    F, limit, E = samples.ft_readings, largest_leap(robot), samples.efforts
    changes, alone = leaps_of(samples.stamp_ns, F, limit)
    kept = replace(samples, ft_readings=np.where(alone[..., None], np.nan, F))
    found = [*leaping_readings(robot, changes, limit)]
    if E is None or len(E) < 3:
        return kept, found
    changes = np.abs(np.diff(E, axis=0))
    sizes = np.minimum(changes[1:], changes[:-1])
    others = np.sort([E[:-2], E[1:-1], E[2:]], axis=0)[1]
    ranges = np.fmax.reduce(others) - np.fmin.reduce(others)
    limit = MAX_EFFORT_LEAP * float(np.nan_to_num(ranges).max(initial=0.0))
    alone = np.zeros(E.shape, dtype=bool)
    alone[1:-1] = (sizes > limit) & (limit > 0.0)
    for j in np.flatnonzero(alone.any(axis=0)):
        what, value = 'effort that leaps out and back', sizes[alone[1:-1, j], j].max()
        name = robot.joint_names[j]
        found.append(finding('rating', name, what=what, value=value, limit=limit))
    return replace(kept, efforts=np.where(alone, np.nan, E)), found


def leaps_of(stamp_ns: Indices, readings: Array, limit: float) -> tuple[Array, Mask]:
    """Return changes of readings (n, n_fts, 6), and a mask (n, n_fts) of leaps out and back."""
    stamps = np.broadcast_to(stamp_ns[:, None, None], readings.shape)
    changes: Array = np.full((2, *readings.shape), np.nan)
    changes[0, 1:] = readings[1:] - last_known(stamps, readings)[0][:-1]
    changes[1, -2::-1] = readings[-2::-1] - last_known(stamps[::-1], readings[::-1])[0][:-1]
    sizes = np.nan_to_num(np.abs(changes)).max(axis=3, initial=0.0)
    return changes[0], (sizes > limit).all(axis=0)


class ImuModel:
    """Proper accelerations of all IMUs from the motion of one of them [T 4.11]."""

    def __init__(self, robot: Robot) -> None:
        self._model = free_floating_model(robot)
        self._data = self._model.createData()
        joint_of, J_H_L = supports(robot)
        self._joints = joint_of[[imu.link for imu in robot.imus]].tolist()
        self._J_H_S = [pin.SE3(J_H_L[imu.link] @ imu.L_H_S) for imu in robot.imus]

    def differences(self, sample: Sample, source: int) -> Array:
        """Return predicted minus measured proper accelerations in the root link, (n_imus, 3)."""
        model, data, J_H_S = self._model, self._data, self._J_H_S[source]
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[7:], v[6:], a[6:] = sample.positions, sample.velocities, sample.accelerations
        turning = pin.Motion(np.zeros(3), sample.angular_velocities[source])
        joint = self._joints[source]
        # The root link moves such that the source moves as it measures, its origin without speed.
        pin.forwardKinematics(model, data, q, v)
        root_H_S = data.oMi[joint] * J_H_S
        v[:6] = root_H_S.act(turning - J_H_S.actInv(data.v[joint])).vector
        pin.forwardKinematics(model, data, q, v, a)
        own = sample.proper_accelerations[source], sample.angular_accelerations[source]
        a[:6] = root_H_S.act(pin.Motion(*own) - J_H_S.actInv(data.a[joint])).vector
        pin.forwardKinematics(model, data, q, v, a)
        found = np.empty((len(self._joints), 3))
        for k, (joint, J_H_S) in enumerate(zip(self._joints, self._J_H_S)):
            motion = pin.getFrameClassicalAcceleration(model, data, joint, J_H_S, pin.LOCAL)
            off = motion.linear - sample.proper_accelerations[k]
            found[k] = data.oMi[joint].rotation @ J_H_S.rotation @ off
        return found


def differing_imus(robot: Robot, window: SampleBatch, model: ImuModel, doubted: Mask) -> Findings:
    """Yield IMUs whose proper acceleration is not what the median of all implies."""
    usable = np.isfinite(window.proper_accelerations).all(axis=(0, 2)) & ~doubted
    turning = np.isfinite(window.angular_accelerations).all(axis=(0, 2)) & usable
    far = np.zeros(len(robot.imus), dtype=bool)
    # Terms of the motion are wrong if the IMU that they come from is.
    for source in np.flatnonzero(turning).tolist() if usable.sum() > 1 else ():
        # An impact makes a link vibrate for a sample.
        off = np.median(
            [model.differences(window[k], source) for k in range(0, COUNT, EVERY)], axis=0
        )
        known = usable & np.isfinite(off).all(axis=1)
        if known[source]:
            sizes = np.linalg.norm(off - np.median(off[known], axis=0), axis=1)
            far = known & (sizes > MAX_DIFFERENCE)
            if not far[source]:
                break
    for k in np.flatnonzero(far):
        what = 'difference of proper acceleration from that of other IMUs'
        yield finding('rating', robot.imus[k].name, level=Level.ERROR, what=what,
                      value=sizes[k], limit=MAX_DIFFERENCE)  # fmt: skip


def reversed_gravity(robot: Robot, window: SampleBatch, estimator: WrenchEstimator) -> Findings:
    """Yield the only IMU, if half the external force is left with its reversed acceleration."""
    if len(robot.imus) != 1:
        return
    newest = window[COUNT - 1]
    turned = newest._replace(proper_accelerations=-newest.proper_accelerations)
    given, other = (
        np.linalg.norm(estimator.update(one).residuals[:, :3], axis=1) for one in (newest, turned)
    )
    masses = np.array([robot.parameters[list(one.links), 0].sum() for one in robot.submodels])
    is_reversed = (given > MAX_DIFFERENCE * masses) & (other < 0.5 * given)
    if (share := masses @ is_reversed / robot.mass) > MAX_REVERSED_SHARE:
        what = 'share of the mass whose weight acts upwards'
        yield finding('rating', robot.imus[0].name, level=Level.ERROR, what=what,
                      value=share, limit=MAX_REVERSED_SHARE)  # fmt: skip


class ReadingChecks:
    """Checks the newest samples, and marks the results that depend on what fails them."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._ends = robot, joint_ranges(robot)
        self._imus, self._estimator = ImuModel(robot), WrenchEstimator(robot)
        self._recent: deque[Sample] = deque(maxlen=COUNT)
        self._added = 0
        self.findings: tuple[Finding, ...] = ()
        """Of the newest window."""
        self.seen: dict[tuple[str, str], Finding] = {}
        """The first finding of each subject and code."""
        self.max_leap = largest_leap(robot)
        self._leaps: tuple[tuple[int, Finding], ...] = ()
        """Newest leaps and their stamps."""
        self.known = KnownReadings(len(robot.ft_sensors))
        self.mixed = self.failing = Failing()
        """Names and kinds of sources with too many publishers; these, subjects and codes."""
        self._marks: tuple[Plan, Failing, list[Flags]] | None = None

    def add(self, sample: Sample) -> list[Sample]:
        """Take a sample; return the newest window if it is due, else nothing."""
        step = sample.stamp_ns - self._recent[-1].stamp_ns if self._recent else PERIOD_NS
        if 0 <= step < PERIOD_NS:
            return []
        if not 0 < step <= 2 * PERIOD_NS:
            self._recent.clear()
        self._recent.append(sample)
        self._added += 1
        is_due = len(self._recent) == COUNT and self._added % 2 == 0
        return list(self._recent) if is_due else []

    def judge(self, samples: list[Sample]) -> bool:
        """Check a window; return true if other subjects fail than before."""
        robot, window = self._robot, SampleBatch.stack(samples)
        # Where a unit is wrong, so may be that of the velocities of other joints.
        joints = [*positions_beyond_range(robot, window, self._ends)]
        joints = joints or [*frozen_positions(robot, window)]
        imus = [*gravity_at_rest(robot, window)]
        if not joints:
            names = {one.subject for one in imus}
            doubted = np.array([imu.name in names for imu in robot.imus], dtype=bool)
            imus += differing_imus(robot, window, self._imus, doubted)
            imus += reversed_gravity(robot, window, self._estimator)
        newest_ns = samples[-1].stamp_ns
        leaps = {one.subject: one for at, one in self._leaps if 0 <= newest_ns - at < KEPT_NS}
        found = (*joints, *imus, *constant_axes(robot, window))
        before, self.findings = self.failing, (*found, *leaps.values())
        self.seen = {(one.subject, one.code): one for one in self.findings} | self.seen
        now = self.mixed.union((one.subject, one.code) for one in found)
        now = now.union((name, 'leap') for name in leaps)
        self.failing = before if now == before else now
        return now != before

    def at(self, stamp_ns: int, changes: Array) -> Failing:
        """Return the failing, with FT sensors that leap; changes of `known` (n_fts, 6)."""
        if not (np.abs(changes) > self.max_leap).any():
            return self.failing
        found = [*leaping_readings(self._robot, changes[None], self.max_leap)]
        newest = *self._leaps, *((stamp_ns, one) for one in found)
        self._leaps = newest[-max(COUNT, len(found)) :]
        self.seen = {(one.subject, one.code): one for one in found} | self.seen
        return self.failing.union((one.subject, 'ft') for one in found)

    def follow(self, samples: SampleBatch) -> tuple[list[Failing], Indices]:
        """Check the samples of a log; return what fails, and which of it at each sample."""
        failing, numbers = [self.failing], np.zeros(len(samples), dtype=np.intp)
        last_ns = self._recent[-1].stamp_ns if self._recent else -PERIOD_NS
        F = np.concatenate([self.known.readings[None], samples.ft_readings])
        stamps = np.empty(F.shape, dtype=np.intp)
        stamps[0] = np.reshape(self.known.stamps_ns, (-1, 1))
        stamps[1:] = samples.stamp_ns[:, None, None]
        known, known_ns = last_known(stamps, F)
        changes, self.known.readings = F[1:] - known[:-1], known[-1]
        self.known.stamps_ns = known_ns[-1, :, 0].tolist()
        leaps = np.nan_to_num(np.abs(changes)).max(axis=(1, 2), initial=0.0) > self.max_leap
        for row, stamp_ns in enumerate(samples.stamp_ns.tolist()):
            if leaps[row]:
                failing.append(self.at(stamp_ns, changes[row]))
                numbers[row] = len(failing) - 1
            if 0 <= stamp_ns - last_ns < PERIOD_NS:
                continue
            last_ns = stamp_ns
            window = self.add(samples[row])
            if window and self.judge(window):
                # As in the node, from the next sample on.
                numbers[row + 1 :] = len(failing)
                failing.append(self.failing)
        return failing, numbers

    def marked(
        self, estimate: WrenchEstimate, plan: Plan, failing: Failing | None = None
    ) -> WrenchEstimate:
        """Return an estimate in which the results that depend on what fails are doubtful."""
        failing = self.failing if failing is None else failing
        if not failing:
            return estimate
        if self._marks is None or self._marks[0] is not plan or self._marks[1] is not failing:
            masks = doubtful_results(self._robot, plan, failing)
            self._marks = plan, failing, [DOUBTFUL * mask for mask in masks]
        marks = zip(QUALITIES, self._marks[2])
        return estimate._replace(**{name: getattr(estimate, name) | mark for name, mark in marks})


def doubtful_results(robot: Robot, plan: Plan, failing: Iterable[tuple[str, str]]) -> list[Mask]:
    """Return masks of contacts, torques, external torques and submodels [T Theorem 4.2]."""
    kinds = ('joint_limit', 'frozen', 'joints'), ('constant', 'ft'), ('rating', 'imu')
    failed = [{name for name, code in failing if code in kind} for kind in kinds]
    joints = np.isin(robot.joint_names, list(failed[0]))
    if joints.sum() > 1 or any(code == 'joints' for _, code in failing):
        # They are in one message: its unit is wrong, or its publisher.
        joints[:] = True
    fts = np.array([ft.name in failed[1] for ft in robot.ft_sensors], dtype=bool)
    imus = {k for k, imu in enumerate(robot.imus) if imu.name in failed[2]}
    forest = plan.motion.reaching(plan.dynamics.forest)
    trees = np.array([bool(imus & plan.motion.rows.get(top.link, frozenset()))
                      for top in forest.tops if top.ft_sensor < 0], dtype=bool)  # fmt: skip
    unknowns = [plan.contacts[c].unknowns for c in plan.active]

    def depends(tables: Tables) -> Mask:
        parts = tables.joints[:, joints], tables.fts[:, fts], tables.sources[:, trees]
        return np.asarray(np.hstack(parts).any(axis=1))

    found = find_dependence(robot, forest, plan.balance, unknowns)
    contacts = np.zeros(len(plan.contacts), dtype=bool)
    submodels = np.zeros(len(robot.submodels), dtype=bool)
    contacts[plan.active] = depends(found.wrenches)
    submodels[plan.residual_rows] = depends(found.submodels)
    return [contacts, depends(found.torques), depends(found.external), submodels]
