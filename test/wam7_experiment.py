# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Section 5.2 of S on simulated torques: four estimates, their errors, their mass matrices.

``python wam7_experiment.py`` prints all with the mass matrix at 10 000 poses.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import wam7

from inertial_estimation.identification.feasibility.feasibility import check_base_parameters
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.solvers.cones import Consistency
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.robot import Robot

Array = np.ndarray

COLUMNS = ('OLS', 'BPFC', 'FBPE', 'FBPE with bounds')
NOISE = 0.065
"""Torque noise as a share of the torques' root mean square, so that errors are as in Table 8."""
EVERY = 5
"""Of the reference samples, one in so many is used: 20 Hz."""


class Data(NamedTuple):
    """Torques of one trajectory."""

    W: Array
    """All rows over all 98 unknowns."""
    torques: Array


class Estimates(NamedTuple):
    """What is found from the first trajectory."""

    base: BaseParameters
    information: Information
    """Of all 98 unknowns."""
    x: dict[str, Array]
    """Unknowns of each column of Table 8; of OLS those of least norm."""
    infeasible: bool
    """Whether the test says so of OLS."""


def truth() -> Array:
    """Return CAD bodies, and friction and drive inertia of Table 6, as unknowns."""
    table = {row['combination']: row for row in wam7.rows('table6_estimates.csv')}
    x = np.concatenate([wam7.cad_parameters().reshape(-1), np.zeros(28)])
    for k, symbol in enumerate(wam7.symbols()):
        if symbol in table and k >= 70:
            x[k] = float(table[symbol]['fbpe_ols_extra'])
    # The drives of the first two joints are grouped with inertias: what CAD does not explain.
    for joint, index in ((0, 1), (1, 8)):
        row = next(row for row in table.values() if row['index'] == str(index))
        x[70 + 4 * joint] = float(row['fbpe_ols_extra']) - float(row['cad_without_Ia'])
    return x


def bounds(everything: bool) -> Bounds:
    """Return that friction and drive inertia are not negative, and what Table 7 adds."""
    signed = np.array([[0.0, np.inf]] * 3 + [[-np.inf, np.inf]])
    extras = np.tile(signed, (7, 1))
    if not everything:
        return Bounds(extras=extras)
    model = wam7.model()
    boxes = np.array([[box['lower'], box['upper']] for box in model['com_bounds']])
    total = np.array([0.0, model['total_mass_upper']])
    return Bounds(extras=extras, center_of_mass=boxes, total_mass=total)


def simulate(number: int, rng: np.random.Generator) -> Data:
    """Return what the robot would report on a reference trajectory."""
    motion = (part[::EVERY] for part in wam7.trajectory(number))
    W = wam7.regressor(wam7.robot(), *motion).reshape(-1, 98)
    torques = W @ truth()
    torques += rng.normal(0.0, NOISE * np.sqrt(np.mean(torques**2)), len(torques))
    return Data(W, torques)


def estimate(data: Data, consistency: Consistency) -> Estimates:
    """Return the four estimates."""
    base, unknowns, cad = wam7.table3(), wam7.unknowns(), wam7.cad_parameters()
    information = Information.of(data.W, data.torques)
    ols, *_ = np.linalg.lstsq(data.W[:, base.independent], data.torques)
    checked = check_base_parameters(
        base, ols, unknowns, consistency=consistency, bounds=bounds(False)
    )
    found = {'OLS': base.standard(ols, np.zeros(98)), 'BPFC': checked.x}
    for column, everything in (('FBPE', False), ('FBPE with bounds', True)):
        problem = Problem.of(unknowns, information, cad, bounds=bounds(everything))
        found[column] = solve_semidefinite(
            problem, prior=PriorTerm.NONE, consistency=consistency
        ).x
    return Estimates(base, information, found, checked.certificate is not None)


def relative_error(data: Data, x: Array) -> float:
    """Return the error of torques in per cent [S 84]."""
    missed = np.linalg.norm(data.torques - data.W @ x)
    return float(100 * missed / np.linalg.norm(data.torques))


def smallest_mass_matrix_eigenvalues(x: Array, n: int, seed: int = 0) -> Array:
    """Return the smallest eigenvalue of the mass matrix at random poses, shape (n,)."""
    rng = np.random.default_rng(seed)
    weightless = Robot.from_urdf(wam7.urdf(), fixed_link='link_0', gravity=(0.0, 0.0, 0.0))
    found = []
    for start in range(0, n, 500):
        q = rng.uniform(-np.pi, np.pi, (min(500, n - start), 7))
        columns = []
        for unit in np.eye(7):
            ddq = np.broadcast_to(unit, q.shape)
            columns.append(wam7.regressor(weightless, q, np.zeros_like(q), ddq) @ x)
        M = np.stack(columns, axis=-1) - _offsets(x)
        found.append(np.linalg.eigvalsh(M)[:, 0])
    return np.concatenate(found)


def _offsets(x: Array) -> Array:
    """Return the constant efforts, which are not of the mass matrix, shape (7, 1)."""
    return x[73::4][:, None]


def main() -> None:
    """Print Table 8 for both cones."""
    rng = np.random.default_rng(52)
    sets = [simulate(number, rng) for number in range(1, 5)]
    for consistency in Consistency:
        found = estimate(sets[0], consistency)
        lines = [f'{consistency.value}: OLS infeasible {found.infeasible}']
        for column in COLUMNS:
            errors = ' '.join(f'{relative_error(data, found.x[column]):8.4f}' for data in sets)
            least = smallest_mass_matrix_eigenvalues(found.x[column], 10_000)
            lines.append(
                f'{column:18s} {errors}   mass matrix positive definite at '
                f'{100 * np.mean(least > 0):.2f} % of 10000 poses'
            )
        sys.stdout.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
