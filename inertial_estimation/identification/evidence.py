# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations of each submodel, reduced kind by kind, and the combinations that they determine.

Memory does not grow with the length of a log, and several logs are reduced one by one and merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.equations.builder import Block, EquationBuilder, Observed
from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.information import Information, absorb
from inertial_estimation.identification.matrix_errors import matrix_columns
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Term, gain_columns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.sample import SampleBatch

SAMPLES_AT_ONCE = 1500
"""Samples whose equations are built together: fast, and small in memory."""
FRICTION_SHARES = {
    Term.VISCOUS: 1.0, Term.COULOMB: 1.0, Term.OFFSET: 0.05, Term.DRIVE_INERTIA: 0.2
}  # fmt: skip
"""
Standard deviations of the prior of friction, over the effort of the joint, at a velocity or an
acceleration of one. A second of data hardly distinguishes friction, offset and drive inertia.
"""
EXCITED = 1e-6
"""
Singular value of scaled equations of a log over the largest from which a combination is
determined: filters and stamps leave more than round-off.
"""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Equations of one submodel."""

    block: Block
    kinds: Mapping[str, Information]
    """Equations of each kind, in its unit."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Samples of each kind without an equation."""
    used: Mapping[str, int] = field(default_factory=dict)
    """Samples of each kind with one; correlated ones count less in `kinds`."""
    errors: Mapping[str, Array] = field(default_factory=dict)
    """Errors of the state in equations of each kind, [dY dy] of shape (m, n + 1)."""
    matrices: Mapping[str, Array] = field(default_factory=dict)
    """Products [Y y M]'M of each kind, see `matrix_covariances`; empty: no unknown offsets."""

    def merge(self, other: Evidence) -> Evidence:
        """Return this together with that of another log."""
        return Evidence(
            self.block,
            {kind: part.merge(other.kinds[kind]) for kind, part in self.kinds.items()},
            {kind: count + other.left_out[kind] for kind, count in self.left_out.items()},
            {kind: count + other.used[kind] for kind, count in self.used.items()},
            {
                kind: np.vstack([one.errors[kind] for one in (self, other) if kind in one.errors])
                for kind in dict(self.errors) | dict(other.errors)
            },
            {
                kind: np.sum(
                    [m.matrices[kind] for m in (self, other) if kind in m.matrices], axis=0
                )
                for kind in dict(self.matrices) | dict(other.matrices)
            },
        )

    @property
    def count(self) -> float:
        """Number of equations of all kinds."""
        return sum(part.count for part in self.kinds.values())

    def residuals(self, x: Array) -> dict[str, float]:
        """Return the root mean square residual of each kind for some unknowns, (n_unknowns,)."""
        return {
            kind: float(np.sqrt(part.squared_residual(x) / part.count)) if part.count else np.nan
            for kind, part in self.kinds.items()
        }

    def signals(self, x: Array | None = None) -> dict[str, float]:
        """Return the root mean square of what was measured, by kind; x: unknowns with gains."""
        measured = np.zeros(len(self.block.unknowns))
        if x is not None:
            gains = gain_columns(self.block.unknowns)
            measured[gains] = x[gains]
        return self.residuals(measured)


def friction_scales(evidence: Evidence, x: Array | None = None) -> Array:
    """Return the standard deviation of the prior of each extra unknown, (n_extras,)."""
    efforts = evidence.signals(x)
    payloads = {payload.name: payload for payload in evidence.block.payloads}

    def scale(of: str, term: Term) -> float:
        if of in payloads:
            return payloads[of].scale(term)
        known = [efforts.get(f'{EFFORT}{joint}', np.nan) for joint in of.split('+')]
        size = FRICTION_SHARES.get(term, np.nan) * float(np.mean(known))
        return size if size > 0 else np.inf

    extras = evidence.block.unknowns.extras
    return np.array([scale(one.of, one.term) for one in extras], dtype=np.float64)


@one_thread()
def gather(
    builder: EquationBuilder,
    observed: SampleBatch | Observed,
    share: float = 1.0,
    *,
    about: Array | None = None,
    **known: Any,
) -> list[Evidence]:
    """
    Reduce the equations of a log; known: see `Observed`.

    share: independent equations over all, from 0 to 1; about: loads of the FT sensors, about which
    errors of matrices change no offset, one for all logs, shape (n_fts, 6) [N, Nm].
    """
    if not 0.0 < share <= 1.0:
        raise InertialEstimationError(f'share is {share!r}, expected above 0 and at most 1')
    if isinstance(observed, SampleBatch):
        observed = Observed(observed, **known)
    n, all_bases = len(observed.samples), [one.of_kinds for one in builder.bases]
    # Only base parameters are columns, as the others are combinations of them: it costs half.
    triangles = [
        {kind: np.zeros((base.rank + 1,) * 2, order='F') for kind, base in bases.items()}
        for bases in all_bases
    ]
    left_out = [dict.fromkeys(bases, 0) for bases in all_bases]
    products: list[dict[str, Any]] = [{} for _ in all_bases]
    loads, names = None, [sensor.name for sensor in builder.robot.ft_sensors]
    if about is not None and builder.choice.offsets:
        loads = builder.wrenches(observed.samples) - about
        # Rows that need an unknown reading are left out; others have zeros as factors of it.
        loads = np.where(np.isfinite(loads), loads, 0.0)
    for start in range(0, n, SAMPLES_AT_ONCE):
        some = slice(start, start + SAMPLES_AT_ONCE)
        blocks = builder.sparse(observed.take(some))
        for bases, own, left, sums, (block, kinds) in zip(
            all_bases, triangles, left_out, products, blocks, strict=True
        ):
            for kind, rows in kinds:
                base = bases[kind]
                system, good = rows.system(base.independent)
                if loads is not None:
                    M = matrix_columns(rows, block.unknowns, names, loads[some])[:, good].T
                    parts = base.grouping.T @ (system[:, :-1].T @ M), system[:, -1:].T @ M, M.T @ M
                    sums[kind] = sums.get(kind, 0.0) + share * np.vstack(parts)
                own[kind] = absorb(own[kind], system)
                left[kind] += int(np.sum(~good))
    found = []
    for block, bases, own, left, sums in zip(
        builder.blocks, all_bases, triangles, left_out, products, strict=True
    ):
        used, reduced = {kind: n - lacking for kind, lacking in left.items()}, {}
        for kind, triangle in own.items():
            system = np.triu(triangle)
            part = Information.of(system[:, :-1] @ bases[kind].grouping, system[:, -1])
            reduced[kind] = replace(part, count=float(used[kind])).forget(share)
        found.append(Evidence(block, reduced, left, used, matrices=sums))
    return found


@dataclass(frozen=True, eq=False)
class Determined:
    """Combinations of one submodel."""

    seen: BaseParameters
    """That equations do determine; the others are left to the prior."""
    deviations: Array
    """Of those by the equations, of unit noise, and by FT matrices, shape (n_seen,) [S 81-83]."""
    possible: int
    """Number of combinations that equations of these kinds can determine [S 29-39]."""
    missing: tuple[str, ...]
    """Those that they do not, named by the unknowns that stand for them."""


def determined(
    block: Block, base: BaseParameters, rows: Information, by_matrices: Array | float = 0.0
) -> Determined:
    """Return the combinations that some equations determine; by_matrices: see `BlockFit`."""
    unseen = RowSpace.of(rows.R[:, base.independent], EXCITED).invisible()
    # In an order that conditions well, the last ones are expressed by the others.
    seen = BaseParameters.of_null_space(unseen, np.arange(base.rank)).within(base)
    lost = [k for k in base.independent.tolist() if k not in set(seen.independent.tolist())]
    variances = RowSpace.of(rows.R[:, seen.independent]).variances()
    missing = tuple(block.unknowns.names[k] for k in lost)
    if np.ndim(by_matrices):
        variances = variances + np.sum((seen.grouping @ by_matrices) ** 2, axis=1)
    return Determined(seen, np.sqrt(variances), base.rank, missing)
