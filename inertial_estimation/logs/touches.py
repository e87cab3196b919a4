# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimate a log whose contacts change: one table, in which a contact may come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contact_stream import SlowSender
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import SampleBatch

Indices = NDArray[np.intp]
Contacts = tuple[Contact, ...]

FEW = 8
"""Samples for which a batch costs more than as many steps."""


@dataclass(frozen=True, eq=False)
class Touches:
    """What was felt at each sample of a log, as the contacts topic said."""

    sets: tuple[Contacts, ...]
    """The different ones; the first is empty."""
    rows: Indices
    """Which of them each sample has, shape (n,)."""
    problems: Mapping[str, int] = field(default_factory=dict)
    """Messages that could not be used, by reason."""
    slow_senders: tuple[SlowSender, ...] = ()
    """Whose touches end and begin again at their period."""

    @classmethod
    def of(
        cls,
        found: Sequence[Contacts],
        problems: Mapping[str, int],
        slow_senders: tuple[SlowSender, ...] = (),
    ) -> Touches:
        """Return what was felt."""
        numbers: dict[Contacts, int] = {(): 0}
        rows = [numbers.setdefault(contacts, len(numbers)) for contacts in found]
        return cls(tuple(numbers), np.array(rows, dtype=np.intp), dict(problems), slow_senders)

    def take(self, samples: Indices) -> Touches:
        """Return what was felt at some of the samples."""
        return replace(self, rows=self.rows[samples])


def estimate_log(
    estimator: WrenchEstimator, samples: SampleBatch, touches: Touches | None
) -> WrenchEstimate:
    """Estimate every sample with what was felt then."""
    if touches is None or not touches.rows.any():
        return estimator.batch(samples)
    order: list[Indices] = []
    parts: list[WrenchEstimate] = []
    for number in np.unique(touches.rows):
        contacts = estimator.with_touches(touches.sets[number])
        rows = np.flatnonzero(touches.rows == number)
        if len(rows) < FEW:
            for row in rows.tolist():
                order.append(np.array([row], dtype=np.intp))
                parts.append(_lifted(estimator.update(samples[row], contacts)))
        else:
            order.append(rows)
            parts.append(estimator.batch(samples.take(rows), contacts))
    return _joined(estimator, parts, np.argsort(np.concatenate(order)))


def _lifted(estimate: WrenchEstimate) -> WrenchEstimate:
    """Return one instant as a batch of one."""
    arrays = {
        name: np.asarray(getattr(estimate, name))[None]
        for name in WrenchEstimate._fields
        if name != 'contacts'
    }
    return WrenchEstimate(contacts=estimate.contacts, **arrays)


def _joined(
    estimator: WrenchEstimator, parts: Sequence[WrenchEstimate], order: Indices
) -> WrenchEstimate:
    """Put parts with different contacts into one table."""
    columns = {contact.name: contact for contact in estimator.contacts}
    for part in parts:
        for contact in part.contacts:
            columns.setdefault(contact.name, contact.at_origin)
    places = {name: column for column, name in enumerate(columns)}
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in WrenchEstimate._fields
        if name not in ('contacts', 'wrenches', 'contact_quality')
    }
    wrenches = np.full((len(order), len(columns), 6), np.nan)
    quality = np.full((len(order), len(columns)), Quality.ABSENT, dtype=np.uint8)
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part.torques))
        taken = [places[contact.name] for contact in part.contacts]
        wrenches[rows, taken] = part.wrenches
        quality[rows, taken] = part.contact_quality
    return WrenchEstimate(
        contacts=tuple(columns.values()),
        wrenches=wrenches[order],
        contact_quality=quality[order],
        **joined,
    )
