# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""External wrenches and joint torques from FT sensors, IMUs and joint sensors [T chapter 4]."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import inf, isfinite
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ModelError, ShapeError
from inertial_estimation.estimation.balance import Balance, build_balance
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dynamics import Dynamics, serving_sources
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.faults import (
    Sizes,
    alike,
    find_faults,
    without_faults,
    working_of,
)
from inertial_estimation.estimation.plan import Plan, build_plan
from inertial_estimation.estimation.quality import Working
from inertial_estimation.estimation.solver import Solver
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.submodels import Submodel, decompose
from inertial_estimation.sample import Sample, SampleBatch, SensorState

Indices = NDArray[np.intp]
K = TypeVar('K')
V = TypeVar('V')

SOLVERS_KEPT = 64
"""They are small; more than this means contacts that never come back."""
DYNAMICS_KEPT = 8
"""Each holds Pinocchio's workspace, tens of megabytes for a humanoid."""
CHUNK = 256
"""Samples of a batch that are worked on at once; their workspace fits into a processor's cache."""


class WrenchEstimator:
    """
    The estimator: give it samples, it gives wrenches and torques.

    It has no memory between samples: the batch form and the step-by-step form are the same
    computation. Sensors that are NaN in a sample cost only what depends on them: without an FT
    sensor its two submodels merge, without an IMU a neighbour serves its links. The first sample
    with a new combination of faults takes milliseconds longer, as new models are built.

    Parameters
    ----------
    robot : Robot
        With FT sensors, and with a fixed link or at least one IMU.
    contacts : iterable of Contact
        Default contacts, most trusted first: where submodels merge, only the first one of them
        stays. A submodel without contact is taken to be free; what it feels is its residual.
    calibration : FtCalibration, optional
        How raw readings become wrenches. Default: they are wrenches.
    length_scale : float
        Moment noise over force noise [m], for submodels with other contacts than one full wrench.
    rank_tolerance : float
        Relative size of singular values that count as zero there.

    Raises
    ------
    ModelError
        If nothing tells how the robot moves, the calibration is for other sensors, or the
        inertial parameters of a link cannot be used.
    ConfigError
        If one of the numbers is out of its range.
    FrameNotFound
        If a contact names a frame that the robot does not have.

    """

    def __init__(
        self,
        robot: Robot,
        contacts: Iterable[Contact] = (),
        *,
        calibration: FtCalibration | None = None,
        length_scale: float = 0.1,
        rank_tolerance: float = 1e-3,
    ) -> None:
        if not robot.fixed_frame and not robot.imus:
            raise ModelError(
                f"nothing tells how robot '{robot.name}' moves: give it a fixed_link or an IMU"
            )
        n_fts = len(robot.ft_sensors)
        self.robot = robot
        self.contacts = tuple(contacts)
        self.calibration = calibration or FtCalibration.identity(n_fts)
        if len(self.calibration.offsets) != n_fts:
            raise ModelError(
                f'the calibration is for {len(self.calibration.offsets)} FT sensors, '
                f"robot '{robot.name}' has {n_fts}"
            )
        _check_parameters(robot)
        if not 0.0 < length_scale < inf:
            raise ConfigError(f'length_scale is {length_scale}, expected a positive length')
        if not 0.0 <= rank_tolerance < 1.0:
            raise ConfigError(f'rank_tolerance is {rank_tolerance}, expected 0 or more, below 1')
        self._numbers = (length_scale, rank_tolerance)
        self._sizes = Sizes(len(robot.joint_names), len(robot.imus), n_fts)
        self._shapes = _shapes(self._sizes)
        self._dynamics: dict[tuple[int, ...], Dynamics] = {}
        self._balances: dict[Hashable, Balance] = {}
        self._solvers: dict[Hashable, Solver] = {}
        self._faultless: dict[Hashable, Solver] = {}
        self._none_assumed = bytes(self._sizes.joints)
        self._faultless_solver(self._none_assumed, None)

    def update(
        self, sample: Sample, contacts: tuple[Contact, ...] | None = None
    ) -> WrenchEstimate:
        """
        Estimate one instant.

        Parameters
        ----------
        sample : Sample
            Rows as in the robot.
        contacts : tuple of Contact, optional
            Contacts of this instant instead of the default ones. None of them gives way.

        Returns
        -------
        WrenchEstimate

        Raises
        ------
        ShapeError
            If an array of the sample has the wrong shape.
        FrameNotFound
            If a contact names a frame that the robot does not have.

        """
        self._check_shapes(sample, ())
        given = None if contacts is None else tuple(contacts)
        assumed = self._none_assumed
        if sample.joint_states is not None:
            assumed = (sample.joint_states == SensorState.ASSUMED).tobytes()
        solver = self._faultless_solver(assumed, given)
        solver.plan.dynamics.run(sample)
        if _is_faulty(solver.plan, sample):
            faults = find_faults(sample)
            solver = self._solver(working_of(faults, self._sizes), given)
            sample = without_faults(sample, faults, self._sizes)
            solver.plan.dynamics.run(sample)
        dynamics = solver.plan.dynamics
        readings = self.calibration.apply(sample.ft_readings)
        return solver.solve(
            sample.stamp_ns, dynamics.tau, dynamics.poses, dynamics.jacobian, readings
        )

    def batch(
        self, samples: SampleBatch, contacts: tuple[Contact, ...] | None = None
    ) -> WrenchEstimate:
        """
        Estimate many instants.

        Parameters
        ----------
        samples : SampleBatch
            Rows as in the robot, with a leading axis for the instants.
        contacts : tuple of Contact, optional
            As in `update`, the same for all instants.

        Returns
        -------
        WrenchEstimate
            Every array with a leading axis; the same numbers that `update` gives.

        Raises
        ------
        ShapeError
            If an array has the wrong shape.
        FrameNotFound
            If a contact names a frame that the robot does not have.

        """
        self._check_shapes(samples, (len(samples),))
        given = None if contacts is None else tuple(contacts)
        parts, order = [], []
        for faults, rows in alike(find_faults(samples)):
            plan = self._solver(working_of(faults, self._sizes), given).plan
            for start in range(0, max(1, len(rows)), CHUNK):
                order.append(rows[start : start + CHUNK])
                chunk = without_faults(samples.take(order[-1]), faults, self._sizes)
                solver = Solver(plan, self._numbers[1], (len(chunk),))
                readings = self.calibration.apply(chunk.ft_readings)
                results = plan.dynamics.run_many(chunk)
                parts.append(solver.solve(chunk.stamp_ns, *results, readings))
        return _join(parts, order)

    def _faultless_solver(self, assumed: bytes, contacts: tuple[Contact, ...] | None) -> Solver:
        """Return the solver for samples in which every sensor works; joints may be assumed."""
        solver = self._faultless.get((assumed, contacts))
        if solver is None:
            working = Working(
                imus=(True,) * self._sizes.imus,
                fts=(True,) * self._sizes.fts,
                missing_joints=(False,) * self._sizes.joints,
                assumed_joints=tuple(flag != 0 for flag in assumed),
            )
            solver = self._solver(working, contacts)
            _keep(self._faultless, (assumed, contacts), solver, SOLVERS_KEPT)
        return solver

    def _check_shapes(self, sample: Sample | SampleBatch, lead: tuple[int, ...]) -> None:
        """Raise if an array has the wrong shape."""
        for name, shape in self._shapes:
            array = getattr(sample, name)
            if array.shape != lead + shape:
                raise ShapeError(name, lead + shape, array.shape)
        states, shape = sample.joint_states, (*lead, self._sizes.joints)
        if states is not None and states.shape != shape:
            raise ShapeError('joint_states', shape, states.shape)

    def _solver(self, working: Working, contacts: tuple[Contact, ...] | None) -> Solver:
        """Return the solver for working sensors and contacts, new or kept."""
        key = (working, contacts)
        solver = self._solvers.get(key)
        if solver is None:
            new = Solver(self._new_plan(working, contacts), self._numbers[1])
            solver = _keep(self._solvers, key, new, SOLVERS_KEPT)
        return solver

    def _new_plan(self, working: Working, contacts: tuple[Contact, ...] | None) -> Plan:
        """Lay out a plan."""
        robot = self.robot
        given = self.contacts if contacts is None else contacts
        used = [k for k, works in enumerate(working.fts) if works]
        submodels = decompose(robot.links, robot.ft_sensors, used)
        links = [robot.frame(contact.frame)[0] for contact in given]
        active = list(range(len(given)))
        if contacts is None:
            active = _trusted(robot, submodels, given, links)
        dynamics = self._dynamics_for([k for k, works in enumerate(working.imus) if works])
        active_links = tuple(links[c] for c in active)
        key = (dynamics, tuple(used), active_links)
        balance = self._balances.get(key)
        if balance is None:
            new = build_balance(robot, dynamics.forest, submodels, used, active_links)
            balance = _keep(self._balances, key, new, SOLVERS_KEPT)
        return build_plan(robot, dynamics, balance, given, active, working, self._numbers[0])

    def _dynamics_for(self, imus: list[int]) -> Dynamics:
        """
        Return the models for the working IMUs, new or kept.

        Without a single one of them the models of all are used, fed with zeros; the plan marks
        every result as missing then.
        """
        serving, _ = serving_sources(self.robot, imus or range(len(self.robot.imus)))
        key = tuple(int(k) for k in serving)
        dynamics = self._dynamics.get(key)
        if dynamics is None:
            dynamics = _keep(self._dynamics, key, Dynamics(self.robot, key), DYNAMICS_KEPT)
        return dynamics


def _check_parameters(robot: Robot) -> None:
    """Raise where inertial parameters would make every estimate NaN, or would be cut short."""
    for name, parameters in zip(robot.link_names, robot.parameters, strict=True):
        if not np.isfinite(parameters).all():
            raise ModelError(f"link '{name}' has inertial parameters that are not finite")
        if parameters[0] == 0.0 and parameters[1:4].any():
            raise ModelError(f"link '{name}' has a first moment but no mass")


def _shapes(sizes: Sizes) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the shape of each array of a sample."""
    joints = ('positions', 'velocities', 'accelerations')
    imus = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
    return (
        *((name, (sizes.joints,)) for name in joints),
        *((name, (sizes.imus, 3)) for name in imus),
        ('ft_readings', (sizes.fts, 6)),
    )


def _trusted(
    robot: Robot,
    submodels: Sequence[Submodel],
    contacts: Sequence[Contact],
    links: Sequence[int],
) -> list[int]:
    """
    Return the default contacts that stay: of those that a merge brings together the first.

    With it stay the others of its own submodel, and known wrenches: they ask for nothing.
    """
    own = {k: s for s, submodel in enumerate(robot.submodels) for k in submodel.links}
    merged = {k: s for s, submodel in enumerate(submodels) for k in submodel.links}
    first: dict[int, int] = {}
    for contact, k in zip(contacts, links, strict=True):
        if contact.unknowns:
            first.setdefault(merged[k], own[k])
    return [
        c for c, k in enumerate(links) if not contacts[c].unknowns or first[merged[k]] == own[k]
    ]


def _is_faulty(plan: Plan, sample: Sample) -> bool:
    """
    Tell whether something that was used is NaN or infinite.

    Velocities, accelerations and IMU readings all end up in the generalised forces, but for
    joints between two trees. A product each is the cheapest test.
    """
    tau, q, y = plan.dynamics.tau, sample.positions, sample.ft_readings.ravel()
    size = tau.dot(tau) + q.dot(q) + y.dot(y)
    if plan.dynamics.forest.joints_between_trees:
        qd, qdd = sample.velocities, sample.accelerations
        size += qd.dot(qd) + qdd.dot(qdd)
    return not isfinite(size)


def _keep(store: dict[K, V], key: K, value: V, limit: int) -> V:
    """Store a value, forgetting the oldest one when there are too many."""
    if len(store) >= limit:
        del store[next(iter(store))]
    store[key] = value
    return value


def _join(parts: list[WrenchEstimate], order: list[Indices]) -> WrenchEstimate:
    """Put the parts of a batch back into their order."""
    places = np.argsort(np.concatenate(order))
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])[places]
        for name in WrenchEstimate._fields
        if name != 'contacts'
    }
    return WrenchEstimate(contacts=parts[0].contacts, **columns)
