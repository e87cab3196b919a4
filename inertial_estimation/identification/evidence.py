# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What logs say of each submodel: rows of any number, reduced kind by kind.

Memory does not grow with the length of a log, and several logs are reduced one by one and merged.

How large friction, offset and drive inertia of a joint may well be: a weak prior for short logs.

A second of data hardly tells the friction of a joint from its offset and its drive inertia, and
such unknowns grow without bounds where nothing draws them to zero. Friction may well take the
whole effort of a joint at a velocity of one, its drive no more than a fifth of it at an
acceleration of one, and its offset, which gravity is easily taken for, a twentieth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.equations.builder import Block, EquationBuilder
from inertial_estimation.identification.equations.sparse_equations import SparseEquations
from inertial_estimation.identification.information import Information, absorb
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.unknowns import Extra, Term, gain_columns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SAMPLES_AT_ONCE = 1500
"""Samples whose rows are built together: enough to be fast, few enough to stay small."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows of one block."""

    block: Block
    kinds: Mapping[str, Information]
    """Rows of each kind, as they were measured: not weighted."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Instants of each kind that gave no row."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Instants of each kind that gave one; correlated ones count less in `kinds`."""
    errors: Mapping[str, Array] = field(default_factory=dict)
    """What errors of the state add to rows of each kind, [dY dy] of shape (m, n + 1); or none."""

    def merge(self, other: Evidence) -> Evidence:
        """Return this together with what another log says."""
        return Evidence(
            self.block,
            {kind: self.kinds[kind].merge(other.kinds[kind]) for kind in self.kinds},
            {kind: self.left_out[kind] + other.left_out[kind] for kind in self.kinds},
            {kind: self.rows[kind] + other.rows[kind] for kind in self.kinds},
            {
                kind: np.vstack([one.errors[kind] for one in (self, other) if kind in one.errors])
                for kind in dict(self.errors) | dict(other.errors)
            },
        )

    def residuals(self, x: Array) -> dict[str, float]:
        """
        Return the root mean square residual of each kind of row.

        x (n_unknowns,).
        """
        return {
            kind: float(np.sqrt(part.squared_residual(x) / part.count)) if part.count else np.nan
            for kind, part in self.kinds.items()
        }

    def signals(self, x: Array | None = None) -> dict[str, float]:
        """
        Return the root mean square of what was measured of each kind of row.

        x (n_unknowns,).
        """
        measured = np.zeros(len(self.block.unknowns))
        if x is not None:
            gains = gain_columns(self.block.unknowns)
            measured[gains] = x[gains]
        return self.residuals(measured)


def gather(
    builder: EquationBuilder,
    samples: SampleBatch,
    *,
    external: Mapping[str, Array] | None = None,
    free: Mask | None = None,
    carried: Array | None = None,
    share: float = 1.0,
) -> list[Evidence]:
    """Reduce the rows of a log."""
    gathering = Gathering(builder)
    gathering.add(samples, external=external, free=free, carried=carried, share=share)
    return gathering.evidence()


class Gathering:
    """Evidence that grows: while a robot works, or log by log."""

    def __init__(self, builder: EquationBuilder) -> None:
        self._builder = builder
        self._blocks = [
            {kind: _Reduction.empty(base) for kind, base in bases.items()}
            for bases in builder.bases
        ]

    def add(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
        carried: Array | None = None,
        share: float = 1.0,
    ) -> None:
        """Work the rows of some samples in."""
        if not 0.0 < share <= 1.0:
            raise InertialEstimationError(f'share is {share!r}, expected above 0 and at most 1')
        for start in range(0, len(samples), SAMPLES_AT_ONCE):
            part = slice(start, start + SAMPLES_AT_ONCE)
            pushes = {name: wrench[part] for name, wrench in (external or {}).items()}
            blocks = self._builder.sparse(
                samples.take(part),
                external=pushes,
                free=None if free is None else free[part],
                carried=None if carried is None else carried[part],
            )
            with one_thread():
                for reductions, (_, kinds) in zip(self._blocks, blocks, strict=True):
                    for kind, rows in kinds:
                        reductions[kind].add(rows, share)

    def evidence(self) -> list[Evidence]:
        """Return what all rows so far say."""
        with one_thread():
            return self._evidence()

    def _evidence(self) -> list[Evidence]:
        return [
            Evidence(
                block,
                {kind: one.information() for kind, one in reductions.items()},
                {kind: one.left_out for kind, one in reductions.items()},
                {kind: one.rows for kind, one in reductions.items()},
            )
            for block, reductions in zip(self._builder.blocks, self._blocks, strict=True)
        ]


@dataclass(eq=False)
class _Reduction:
    """
    Rows of one kind while they come in.

    Only the base parameters of the kind are columns: the others are combinations of these, and the
    triangle is a tenth of the size where rows touch few links.
    """

    base: BaseParameters
    triangle: Array
    """Of [Y y], shape (n_base + 1, n_base + 1), in the order of LAPACK."""
    count: float = 0.0
    rows: int = 0
    left_out: int = 0

    @classmethod
    def empty(cls, base: BaseParameters) -> _Reduction:
        """Return what is known before the first row."""
        return cls(base, np.zeros((base.rank + 1, base.rank + 1), order='F'))

    def add(self, rows: SparseEquations, share: float) -> None:
        """Work rows into the triangle, each as a share of one."""
        system, left_out = rows.system(self.base.independent, self.base.grouping.shape[1])
        self.left_out += left_out
        self.rows += len(system)
        self.count += share * len(system)
        if share < 1.0:
            system *= np.sqrt(share)
        self.triangle = absorb(self.triangle, system)

    def information(self) -> Information:
        """Return the information of all unknowns."""
        energy = float(self.triangle[-1, -1]) ** 2
        R = np.triu(self.triangle[:-1, :-1]) @ self.base.grouping
        found = Information.of(R, self.triangle[:-1, -1])
        return replace(found, energy=found.energy + energy, count=self.count)


FRICTION_SHARES = {
    Term.VISCOUS: 1.0,
    Term.COULOMB: 1.0,
    Term.OFFSET: 0.05,
    Term.DRIVE_INERTIA: 0.2,
}
"""Of the effort of a joint, at a velocity or an acceleration of one in SI units."""


def friction_scales(evidence: Evidence, x: Array | None = None) -> Array:
    """
    Return for each unknown beside inertial parameters how far from zero it may well be.

    x (n_unknowns,); returns (n_extras,).
    """
    efforts = evidence.signals(x)
    extras = evidence.block.unknowns.extras
    of_payloads = {
        extra: payload.scale(extra)
        for payload in evidence.block.payloads
        for extra in payload.extras()
    }
    scales = [of_payloads.get(extra, _friction_scale(extra, efforts)) for extra in extras]
    return np.array(scales, dtype=np.float64)


def _friction_scale(extra: Extra, efforts: dict[str, float]) -> float:
    """Return the scale of one unknown."""
    known = [efforts.get(f'effort {joint}', np.nan) for joint in extra.of.split('+')]
    if extra.term not in FRICTION_SHARES:
        return np.inf
    size = FRICTION_SHARES[extra.term] * float(np.mean(known))
    return size if size > 0 else np.inf
