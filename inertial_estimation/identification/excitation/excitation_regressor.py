# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Condition number of the equations of a motion, and a smooth bound of it with its gradient.

The condition number is that of the stacked equations over the base parameters, in SI units and
unscaled [S], the worst of all submodels. Where singular values meet it has a kink; with P growing

    log ||W||_P + log ||W^+||_P      P-norms of singular values

decreases to its logarithm. Friction and drive inertia follow S 27, with a tanh for the sign of a
velocity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.unknowns import Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.identifiable import STATES_PER_COLUMN, excitable, random_states
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.model.tree import Submodel


class ConditionBound(NamedTuple):
    """A smooth bound of a condition number, and its gradient."""

    bound: float
    """Its logarithm."""
    condition: float
    """The condition number itself."""
    slopes: Array
    """Gradient of `bound` over the regressor, or over states, shape (3, n, n_joints)."""


@dataclass(frozen=True, eq=False)
class SubmodelRows:
    """The equations of one submodel and its base parameters."""

    name: str
    rows: NDArray[np.intp]
    """Among those of `TorqueRegressor`."""
    columns: NDArray[np.intp]
    """Of its unknowns among those of all."""
    kinds: str
    """Of the equations: wrench, efforts."""
    base: BaseParameters
    """Of these columns."""

    def of(self, Y: Array) -> Array:
        """Return the regressor over the base parameters, (n, n_rows, n_base)."""
        return np.asarray(Y[:, self.rows][:, :, self.columns[self.base.independent]])


class ExcitationRegressor:
    """Equations of joint efforts and FT sensors over the base parameters of each submodel."""

    def __init__(
        self,
        robot: Robot,
        joint: JointModel,
        efforts: Sequence[str] | None = None,
        joint_names: Sequence[str] | None = None,
    ) -> None:
        if not robot.joint_names:
            raise ModelError(f"robot '{robot.name}' has no joint that moves")
        self.robot, self.joint = robot, joint
        names = list(robot.joint_names)
        for name in efforts or ():
            if name not in names:
                raise NameNotFound('joint', name, names)
        used = names if efforts is None else [name for name in names if name in efforts]
        self._efforts = [names.index(name) for name in used]
        self._order = [list(joint_names or names).index(name) for name in names]
        extras = [extra for name in used for extra in joint.extras(name)]
        self.unknowns = Unknowns(robot.link_names, tuple(extras))
        self._regressor = TorqueRegressor(robot)
        n = int(np.ceil(STATES_PER_COLUMN * len(self.unknowns))) + 8
        states = random_states(excitable(robot), n)
        Y = self._stacked(np.array([states.positions, states.velocities, states.accelerations]))
        found = (self._submodel(submodel, Y) for submodel in robot.submodels)
        self.submodels = tuple(one for one in found if one.base.rank)
        """Those with base parameters."""
        if not self.submodels:
            raise ModelError('no equations: neither efforts nor FT sensors beyond a joint')

    def conditions(self, states: Array) -> list[float]:
        """Return the condition number of each submodel; states (3, n, n_joints)."""
        Y = self._stacked(states[..., self._order])
        found = []
        for one in self.submodels:
            triangle = np.linalg.qr(one.of(Y).reshape(-1, one.base.rank), mode='r')
            values = np.linalg.svd(triangle, compute_uv=False)
            found.append(float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf)
        return found

    def condition(self, states: Array) -> float:
        """Return the condition number: the worst of all submodels; states (3, n, n_joints)."""
        return max(self.conditions(states))

    def bound(self, states: Array, sharpness: float, sign_widths: Array) -> ConditionBound:
        """
        Return a smooth bound of the condition number with smooth signs of velocities.

        states (3, n, n_joints); sign_widths (n_joints,) [rad/s or m/s].
        """
        ordered = states[..., self._order]
        rows = self._regressor.rows(*ordered)
        columns, rates = _smooth_columns(self.joint, ordered, sign_widths[self._order])
        Y = self._join(rows.Y, columns)
        bounds = [condition_bound(one.of(Y), sharpness) for one in self.submodels]
        logs = np.array([one.bound for one in bounds])
        weights = np.exp(sharpness * (logs - logs.max()))
        slopes = np.zeros_like(Y)
        for one, of_one, share in zip(
            self.submodels, bounds, weights / weights.sum(), strict=True
        ):
            kept = one.columns[one.base.independent]
            slopes[:, one.rows[:, None], kept] = share * of_one.slopes
        inertial, terms = self.unknowns.n_inertial, len(self.joint.terms)
        found = np.array(self._regressor.gradient(rows, slopes[:, :, :inertial]))
        for k, j in enumerate(self._efforts):
            own = slopes[:, j, inertial + terms * k :][:, :terms]
            for of_joint, rate in zip(found[1:], rates, strict=True):
                of_joint[:, j] += np.sum(own * rate[:, j], axis=-1)
        back = np.empty_like(found)
        back[..., self._order] = found
        bound = float(logs.max() + np.log(weights.sum()) / sharpness)
        return ConditionBound(bound, max(one.condition for one in bounds), back)

    def _submodel(self, submodel: Submodel, Y: Array) -> SubmodelRows:
        """Return the equations of a submodel, with its base parameters from random states."""
        links = [k for k in submodel.links if self.robot.links[k].joint in self._efforts]
        joints = [self.robot.links[k].joint for k in links]
        wrench = self._regressor.wrench_rows.get(submodel.root, ())
        rows = np.array([*joints, *wrench], dtype=np.intp)
        names = [self.robot.joint_names[j] for j in joints]
        extras = [
            self.unknowns.n_inertial + k
            for k, extra in enumerate(self.unknowns.extras)
            if extra.of in names
        ]
        inner = (10 * np.array(submodel.links)[:, None] + np.arange(10)).reshape(-1)
        columns = np.array([*inner, *extras], dtype=np.intp)
        order = conditioning_order(len(submodel.links), len(extras))
        stacked = Y[:, rows][:, :, columns].reshape(-1, len(columns))
        kinds = ['wrench'] if len(wrench) else []
        kinds += [f'{len(joints)} effort{"s" if len(joints) > 1 else ""}'] if joints else []
        base = BaseParameters.of_regressor(stacked, order)
        return SubmodelRows(submodel.name, rows, columns, ', '.join(kinds), base)

    def _stacked(self, states: Array) -> Array:
        """Return all equations over all unknowns, joints in the robot's order."""
        _, velocities, accelerations = states
        columns = [
            self.joint.columns(velocities[:, j], accelerations[:, j])
            for j in range(velocities.shape[1])
        ]
        return self._join(self._regressor.rows(*states).Y, np.stack(columns, axis=1))

    def _join(self, Y: Array, columns: Array) -> Array:
        """Return the regressor with the terms of each joint, (n, n_joints, k)."""
        n, rows, inertial = Y.shape
        terms = columns.shape[-1]
        joined = np.zeros((n, rows, len(self.unknowns)))
        joined[:, :, :inertial] = Y
        for k, j in enumerate(self._efforts):
            joined[:, j, inertial + terms * k :][:, :terms] = columns[:, j]
        return joined


def _smooth_columns(joint: JointModel, states: Array, widths: Array) -> tuple[Array, Array]:
    """Return columns of friction, (n, n_joints, k), and slopes over velocity and acceleration."""
    _, v, a = states
    sign = np.tanh(v / widths)
    one, zero = np.ones_like(v), np.zeros_like(v)
    each = {
        Term.VISCOUS: (v, one, zero),
        Term.COULOMB: (sign, (1.0 - sign**2) / widths, zero),
        Term.OFFSET: (one, zero, zero),
        Term.DRIVE_INERTIA: (a, zero, one),
    }
    found = np.zeros((3, *v.shape, len(joint.terms)))
    for k, term in enumerate(joint.terms):
        found[..., k] = each[term]
    return found[0], found[1:]


def condition_bound(Y: Array, P: float) -> ConditionBound:
    """Return a smooth bound of the condition number; Y (n, n_rows, n_columns)."""
    W = Y.reshape(-1, Y.shape[2]) / np.sqrt(len(Y))
    _, values, right = np.linalg.svd(np.linalg.qr(W, mode='r'))
    values = np.maximum(values, np.finfo(float).tiny)
    condition = float(values[0] / values[-1])
    up, down = (values / values[0]) ** P, (values[-1] / values) ** P
    bound = np.log(condition) + np.log(up.sum() * down.sum()) / P
    of_values = (up / up.sum() - down / down.sum()) / values
    # Of W = U S V' the slopes are U diag(..) V', and U = W V / S.
    of_W = W @ ((right.T * (of_values / values)) @ right)
    return ConditionBound(float(bound), condition, of_W.reshape(Y.shape) / np.sqrt(len(Y)))
