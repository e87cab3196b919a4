# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of an identification that tables and files share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit
from inertial_estimation.identification.outliers import EFFORT
from inertial_estimation.identification.unknowns import Extra
from inertial_estimation.logs.identify import IdentifyReport


def extra_values(report: IdentifyReport) -> Iterator[tuple[str, Extra, float, float]]:
    """Yield friction and the like, each once."""
    found: dict[Extra, list[tuple[str, float, float]]] = {}
    for block in report.fit.blocks:
        unknowns = block.answer.unknowns
        n = unknowns.n_inertial
        values, spread = block.answer.x[n:].tolist(), block.answer.deviations[n:].tolist()
        for extra, value, deviation in zip(unknowns.extras, values, spread, strict=True):
            found.setdefault(extra, []).append((block.name, value, deviation))
    for extra, told in found.items():
        names = ', '.join(name for name, _, _ in told)
        _, value, deviation = min(told, key=lambda one: (np.isnan(one[2]), one[2]))
        yield names, extra, value, deviation


def unseen_evidence(report: IdentifyReport) -> dict[str, Evidence]:
    """Return the evidence that was not fitted."""
    return {one.block.submodel.name: one for one in report.validation}


class KindErrors(NamedTuple):
    """Root mean squares of one kind of row [N, Nm]; NaN where there are no rows."""

    kind: str
    counted: bool
    """Whether these rows were fitted; those whose noise nothing tells were not."""
    signal: float
    before: float
    """What is left with the description's bodies."""
    fitted: float
    unseen: float
    """Signal of the validation."""
    before_unseen: float
    """What is left of it with the description's bodies."""
    predicted: float


def residuals(block: BlockFit, validation: Evidence | None) -> Iterator[KindErrors]:
    """Yield root mean squares of each kind of row."""
    evidence = block.evidence
    signals = evidence.signals(block.answer.x)
    before, after = evidence.residuals(block.before), evidence.residuals(block.answer.x)
    unseen: Sequence[Mapping[str, float]] = ({}, {}, {})
    if validation is not None:
        unseen = (
            validation.signals(block.answer.x),
            validation.residuals(block.before),
            validation.residuals(block.answer.x),
        )
    for kind in evidence.kinds:
        others = (values.get(kind, np.nan) for values in unseen)
        counted = kind in block.kinds
        yield KindErrors(kind, counted, signals[kind], before[kind], after[kind], *others)


class AllEfforts(NamedTuple):
    """The same of the efforts of all joints together."""

    signal: float
    before: float
    fitted: float
    unseen: float
    before_unseen: float
    predicted: float


def all_efforts(report: IdentifyReport) -> AllEfforts | None:
    """Return what is left of the efforts of all joints together, in all submodels."""
    validation = unseen_evidence(report)
    # Count, then count times mean square; of what was fitted, and of what was not.
    sums, unseen_sums = np.zeros(4), np.zeros(4)
    for block in report.fit.blocks:
        other = validation.get(block.name)
        for kind, _, *errors in residuals(block, other):
            if not kind.startswith(EFFORT) or np.isnan(errors[0]):
                continue
            sums += block.evidence.kinds[kind].count * np.square([1.0, *errors[:3]])
            if other is not None and not np.isnan(errors[3]):
                unseen_sums += other.kinds[kind].count * np.square([1.0, *errors[3:]])
    if not sums[0]:
        return None
    with np.errstate(invalid='ignore'):
        found, others = (np.sqrt(one[1:] / one[0]) for one in (sums, unseen_sums))
    return AllEfforts(*found.tolist(), *others.tolist())
