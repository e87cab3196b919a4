# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Section 5.2 of S on simulated torques: four estimates, their errors, their mass matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.feasibility import check_base_parameters
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from published_experiments.wam_arm import N_UNKNOWNS, WamArm

Array = NDArray[np.float64]

COLUMNS = ('OLS', 'BPFC', 'FBPE', 'FBPE with bounds')
"""Of Table 8."""
NOISE = 0.065
"""Torque noise as a share of the torques' root mean square, so that errors are as in Table 8."""
SEED = 52
EVERY = 5
"""Of the reference samples, one in so many is used: 20 Hz."""
AT_ONCE = 500
"""Poses whose regressors are in memory at a time."""


class Data(NamedTuple):
    """Torques of one trajectory."""

    W: Array
    """All rows over all 98 unknowns, shape (n, 98)."""
    torques: Array
    """Shape (n,) [Nm]."""


class Estimates(NamedTuple):
    """What is found from one trajectory."""

    x: dict[str, Array]
    """Unknowns of each column of Table 8, shape (98,); of OLS those of least norm."""
    infeasible: bool
    """Whether the test says so of OLS."""


def truth(arm: WamArm) -> Array:
    """
    Return CAD bodies, and friction and drive inertia of Table 6, as unknowns.

    Returns (98,).
    """
    table = {row['combination']: row for row in arm.table6}
    x = np.concatenate([arm.cad_parameters.reshape(-1), np.zeros(28)])
    for k, symbol in enumerate(arm.symbols):
        if symbol in table and k >= 70:
            x[k] = float(table[symbol]['fbpe_ols_extra'])
    # The drives of the first two joints are grouped with inertias: what CAD does not explain.
    for joint, index in ((0, 1), (1, 8)):
        row = next(row for row in table.values() if row['index'] == str(index))
        x[70 + 4 * joint] = float(row['fbpe_ols_extra']) - float(row['cad_without_Ia'])
    return x


def bounds(arm: WamArm, everything: bool) -> Bounds:
    """Return that friction and drive inertia are not negative, and what Table 7 adds."""
    signed = np.array([[0.0, np.inf]] * 3 + [[-np.inf, np.inf]])
    extras = np.tile(signed, (7, 1))
    if not everything:
        return Bounds(extras=extras)
    boxes = np.array([[box['lower'], box['upper']] for box in arm.model['com_bounds']])
    total = np.array([0.0, arm.model['total_mass_upper']])
    return Bounds(extras=extras, center_of_mass=boxes, total_mass=total)


def rows(arm: WamArm, number: int, every: int = EVERY) -> Array:
    """
    Return torque rows of a reference trajectory.

    Returns (n, 98).
    """
    q, dq, ddq = (part[::every] for part in arm.trajectory(number))
    return arm.regressor(q, dq, ddq).reshape(-1, N_UNKNOWNS)


def simulate(arm: WamArm, number: int, rng: np.random.Generator) -> Data:
    """Return what the robot would report on a reference trajectory."""
    W = rows(arm, number)
    torques = W @ truth(arm)
    torques += rng.normal(0.0, NOISE * np.sqrt(np.mean(torques**2)), len(torques))
    return Data(W, torques)


def estimate(arm: WamArm, data: Data, consistency: Consistency) -> Estimates:
    """Return the four estimates."""
    base, cad = arm.table3, arm.cad_parameters
    fitted, *_ = np.linalg.lstsq(data.W[:, base.independent], data.torques, rcond=None)
    ols = np.asarray(fitted, dtype=np.float64)
    checked = check_base_parameters(
        base, ols, arm.unknowns, consistency=consistency, bounds=bounds(arm, False)
    )
    found = {'OLS': base.standard(ols, np.zeros(N_UNKNOWNS)), 'BPFC': checked.x}
    information = Information.of(data.W, data.torques)
    for column, everything in (('FBPE', False), ('FBPE with bounds', True)):
        problem = Problem.of(arm.unknowns, information, cad, bounds=bounds(arm, everything))
        found[column] = solve_semidefinite(
            problem, prior=PriorTerm.NONE, consistency=consistency
        ).x
    return Estimates(found, checked.certificate is not None)


def relative_error(data: Data, x: Array) -> float:
    """
    Return the error of torques in per cent [S 84].

    x (98,).
    """
    missed = np.linalg.norm(data.torques - data.W @ x)
    return float(100 * missed / np.linalg.norm(data.torques))


def smallest_mass_matrix_eigenvalues(arm: WamArm, x: Array, n: int, seed: int = 0) -> Array:
    """
    Return the smallest eigenvalue of the mass matrix at random poses.

    x (..., 98); returns (..., n) [kg m^2].
    """
    rng = np.random.default_rng(seed)
    found = []
    for start in range(0, n, AT_ONCE):
        q = rng.uniform(-np.pi, np.pi, (min(AT_ONCE, n - start), 7))
        found.append(np.linalg.eigvalsh(_mass_matrices(arm, x, q))[..., 0])
    return np.concatenate(found, axis=-1)


def _mass_matrices(arm: WamArm, x: Array, q: Array) -> Array:
    """Return the mass matrix of each estimate at each pose, shape (..., n, 7, 7)."""
    at_rest, columns = np.zeros_like(q), []
    for unit in np.eye(7):
        rows = arm.regressor(q, at_rest, np.broadcast_to(unit, q.shape), gravity=False)
        columns.append(np.einsum('nju,...u->...nj', rows, x, optimize=True))
    # Constant efforts are not of the mass matrix.
    offsets = x[..., 73::4]
    return np.stack(columns, axis=-1) - offsets[..., None, :, None]
