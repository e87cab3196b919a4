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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.identification.unknowns import OF_A_JOINT, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.identifiable import STATES_PER_COLUMN, excitable, random_states
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.model.tree import Submodel


@dataclass(frozen=True, eq=False)
class SubmodelRows:
    """The equations of one submodel and its base parameters."""

    name: str
    rows: Indices
    """Among those of `TorqueRegressor`."""
    columns: Indices
    """Of its unknowns among those of all."""
    base: BaseParameters
    """Of these columns."""

    @property
    def kept(self) -> tuple[slice, Indices, Indices]:
        """Index of the regressor over the base parameters in that of all unknowns."""
        return slice(None), self.rows[:, None], self.columns[self.base.independent]


class ExcitationRegressor:
    """Equations of joint efforts and FT sensors over the base parameters of each submodel."""

    def __init__(
        self,
        robot: Robot,
        terms: tuple[Term, ...] = OF_A_JOINT,
        efforts: Sequence[str] | None = None,
    ) -> None:
        names = robot.joint_names
        if not names:
            raise ModelError(f"robot '{robot.name}' has no joint that moves")
        for name in efforts or ():
            if name not in names:
                raise NameNotFound('joint', name, names)
        self.robot, self.terms = robot, terms
        self._efforts = [j for j, name in enumerate(names) if efforts is None or name in efforts]
        extras = [Extra(names[j], term) for j in self._efforts for term in terms]
        self.unknowns = Unknowns(robot.link_names, tuple(extras))
        self._torques = TorqueRegressor(robot)
        samples = random_states(
            excitable(robot), int(np.ceil(STATES_PER_COLUMN * len(self.unknowns))) + 8
        )
        states = np.array([samples.positions, samples.velocities, samples.accelerations])
        Y, _ = self.equations(states)
        found = [self._submodel(submodel, Y) for submodel in robot.submodels]
        self.submodels = tuple(one for one in found if one.base.rank)
        """Those with base parameters."""
        if not self.submodels:
            raise ModelError('no equations: neither efforts nor FT sensors beyond a joint')

    def equations(
        self, states: Array, sign_widths: Array | None = None
    ) -> tuple[Array, Callable[[Array], Array]]:
        """
        Return equations over all unknowns, (n, n_rows, n_unknowns), and the gradient as `rows`.

        states (3, n, n_joints); sign_widths (n_joints,), of smooth signs [rad/s or m/s].
        """
        Y, gradient = self._torques.rows(states)
        _, v, a = states[..., self._efforts]
        one, zero = np.ones_like(v), np.zeros_like(v)
        sign, slope = np.sign(v), zero
        if sign_widths is not None:
            widths = sign_widths[self._efforts]
            sign = np.tanh(v / widths)
            slope = (1.0 - sign**2) / widths
        each = {
            Term.VISCOUS: (v, one, zero),
            Term.COULOMB: (sign, slope, zero),
            Term.OFFSET: (one, zero, zero),
            Term.DRIVE_INERTIA: (a, zero, one),
        }
        found = np.zeros((3, *v.shape, len(self.terms)))
        for k, term in enumerate(self.terms):
            found[..., k] = each[term]
        rows = np.repeat(np.array(self._efforts, dtype=np.intp), len(self.terms))
        inertial = self.unknowns.n_inertial
        own = slice(None), rows, np.arange(inertial, len(self.unknowns))
        whole = np.zeros((*Y.shape[:2], len(self.unknowns)))
        whole[..., :inertial] = Y
        whole[own] = found[0].reshape(len(v), -1)

        def backwards(slopes: Array) -> Array:
            back = gradient(slopes[..., :inertial])
            of_terms = slopes[own].reshape(found[0].shape)
            back[1:, :, self._efforts] += (of_terms * found[1:]).sum(axis=-1)
            return back

        return whole, backwards

    def conditions(self, states: Array) -> list[float]:
        """Return the condition number of each submodel; states (3, n, n_joints)."""
        Y, _ = self.equations(states)
        return [float(np.linalg.cond(_triangle(Y[one.kept]))) for one in self.submodels]

    def bound(self, states: Array, sharpness: float, sign_widths: Array) -> tuple[float, Array]:
        """
        Return the logarithm of a smooth bound of the condition number, and its gradient.

        states and gradient (3, n, n_joints); sign_widths (n_joints,) [rad/s or m/s].
        """
        Y, gradient = self.equations(states, sign_widths)
        bounds = [_condition_bound(Y[one.kept], sharpness) for one in self.submodels]
        logs = np.array([bound for bound, _ in bounds])
        weights = np.exp(sharpness * (logs - logs.max()))
        slopes = np.zeros_like(Y)
        for one, (_, of_Y), weight in zip(self.submodels, bounds, weights, strict=True):
            slopes[one.kept] = weight / weights.sum() * of_Y
        bound = float(logs.max() + np.log(weights.sum()) / sharpness)
        return bound, gradient(slopes)

    def _submodel(self, submodel: Submodel, Y: Array) -> SubmodelRows:
        """Return the equations of a submodel, with its base parameters from random states."""
        owned = {self.robot.links[k].joint for k in submodel.links}
        joints = [j for j in self._efforts if j in owned]
        wrench = self._torques.wrench_rows.get(submodel.root, ())
        names = [self.robot.joint_names[j] for j in joints]
        inertial = [10 * k + i for k in submodel.links for i in range(10)]
        extras = [
            self.unknowns.n_inertial + k
            for k, extra in enumerate(self.unknowns.extras)
            if extra.of in names
        ]
        rows, columns = np.array([*joints, *wrench], int), np.array([*inertial, *extras])
        order = conditioning_order(len(submodel.links), len(extras))
        base = BaseParameters.of_regressor(
            Y[:, rows][..., columns].reshape(-1, len(columns)), order
        )
        return SubmodelRows(submodel.name, rows, columns, base)


def _triangle(Y: Array) -> Array:
    """Return the triangle of equations (n, n_rows, n_columns) of equal singular values."""
    return np.asarray(np.linalg.qr(Y.reshape(-1, Y.shape[-1]), mode='r'))


def _condition_bound(Y: Array, P: float) -> tuple[float, Array]:
    """Return the logarithm of a smooth bound of the condition number, and its gradient over Y."""
    _, values, right = np.linalg.svd(_triangle(Y))
    values = np.maximum(values, np.finfo(float).tiny)
    up, down = (values / values[0]) ** P, (values[-1] / values) ** P
    bound = np.log(values[0] / values[-1]) + np.log(up.sum() * down.sum()) / P
    of_values = (up / up.sum() - down / down.sum()) / values
    # Of Y = U S V' the slopes are U diag(..) V', and U = Y V / S.
    return float(bound), np.asarray(Y @ ((right.T * (of_values / values)) @ right))
