# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations of each submodel, reduced kind by kind, and the combinations that they determine.

Memory does not grow with the length of a log, and several logs are reduced one by one and merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.equations.builder import Block, EquationBuilder, Observed
from inertial_estimation.identification.equations.sparse_equations import SparseEquations
from inertial_estimation.identification.information import Information, absorb
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

    def merge(self, other: Evidence) -> Evidence:
        """Return this together with that of another log."""
        return Evidence(
            self.block,
            {kind: self.kinds[kind].merge(other.kinds[kind]) for kind in self.kinds},
            {kind: self.left_out[kind] + other.left_out[kind] for kind in self.kinds},
            {kind: self.used[kind] + other.used[kind] for kind in self.kinds},
            {
                kind: np.vstack([one.errors[kind] for one in (self, other) if kind in one.errors])
                for kind in dict(self.errors) | dict(other.errors)
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
    scales = {
        extra: payload.scale(extra)
        for payload in evidence.block.payloads
        for extra in payload.extras()
    }
    for extra in evidence.block.unknowns.extras:
        if extra not in scales:
            known = [efforts.get(f'effort {joint}', np.nan) for joint in extra.of.split('+')]
            size = FRICTION_SHARES.get(extra.term, np.nan) * float(np.mean(known))
            scales[extra] = size if size > 0 else np.inf
    found = [scales[extra] for extra in evidence.block.unknowns.extras]
    return np.array(found, dtype=np.float64)


def gather(
    builder: EquationBuilder,
    samples: SampleBatch,
    *,
    external: Mapping[str, Array] | None = None,
    free: Mask | None = None,
    carried: Array | None = None,
    share: float = 1.0,
) -> list[Evidence]:
    """
    Reduce the equations of a log, with the arguments of `EquationBuilder.equations`.

    share: independent equations over all, from 0 to 1.
    """
    if not 0.0 < share <= 1.0:
        raise InertialEstimationError(f'share is {share!r}, expected above 0 and at most 1')
    gathering = Gathering(builder, share)
    observed = Observed(samples, external or {}, free, carried)
    for start in range(0, len(samples), SAMPLES_AT_ONCE):
        gathering.add(observed.take(slice(start, start + SAMPLES_AT_ONCE)))
    return gathering.evidence()


class Gathering:
    """Equations that are reduced part by part, each as a share of one."""

    def __init__(self, builder: EquationBuilder, share: float = 1.0) -> None:
        self._builder = builder
        self._blocks = [
            {kind: _Reduction(base, share) for kind, base in bases.items()}
            for bases in builder.bases
        ]

    def add(self, observed: Observed) -> None:
        """Add the equations of some samples."""
        with one_thread():
            blocks = self._builder.sparse(observed)
            for reductions, (_, kinds) in zip(self._blocks, blocks, strict=True):
                for kind, rows in kinds:
                    reductions[kind].add(rows)

    @one_thread()
    def evidence(self) -> list[Evidence]:
        """Return all equations so far."""
        return [
            Evidence(
                block,
                {kind: one.information() for kind, one in reductions.items()},
                {kind: one.left_out for kind, one in reductions.items()},
                {kind: one.used for kind, one in reductions.items()},
            )
            for block, reductions in zip(self._builder.blocks, self._blocks, strict=True)
        ]


class _Reduction:
    """
    Equations of one kind.

    Only its base parameters are columns, as the others are combinations of them: the triangle is a
    tenth of the size where equations touch few links.
    """

    def __init__(self, base: BaseParameters, share: float) -> None:
        self._base, self._share = base, share
        self._triangle: Array = np.zeros((base.rank + 1, base.rank + 1), order='F')
        self.used = self.left_out = 0

    def add(self, rows: SparseEquations) -> None:
        """Add equations."""
        base = self._base
        system, left_out = rows.system(base.independent, base.grouping.shape[1])
        self.left_out += left_out
        self.used += len(system)
        if self._share < 1.0:
            system *= np.sqrt(self._share)
        self._triangle = absorb(self._triangle, system)

    def information(self) -> Information:
        """Return the information of all unknowns."""
        triangle = self._triangle
        R = np.triu(triangle[:-1, :-1]) @ self._base.grouping
        found = Information.of(R, triangle[:-1, -1])
        energy = found.energy + float(triangle[-1, -1]) ** 2
        return replace(found, energy=energy, count=self._share * self.used)


@dataclass(frozen=True, eq=False)
class Determined:
    """Combinations of one submodel."""

    base: BaseParameters
    """That equations of these kinds can determine [S 29-39]."""
    seen: BaseParameters
    """That these equations do determine; the others are left to the prior."""
    deviations: Array
    """Of those by the equations alone, of unit noise, shape (n_seen,) [S 81-83]."""
    missing: tuple[str, ...]
    """Those that they do not, named by the unknowns that stand for them."""

    @property
    def possible(self) -> int:
        """Number of combinations that equations can determine."""
        return self.base.rank

    @property
    def reached(self) -> int:
        """Number of those that are determined."""
        return self.seen.rank


def determined(block: Block, base: BaseParameters, rows: Information) -> Determined:
    """Return the combinations that some equations determine."""
    unseen = RowSpace.of(rows.R[:, base.independent], EXCITED).invisible()
    # In an order that conditions well, the last ones are expressed by the others.
    seen = BaseParameters.of_null_space(unseen, np.arange(base.rank)).within(base)
    found, names = set(seen.independent.tolist()), block.unknowns.names
    lost = tuple(names[k] for k in base.independent.tolist() if k not in found)
    variances = RowSpace.of(rows.R[:, seen.independent]).variances()
    return Determined(base, seen, np.sqrt(variances), lost)
