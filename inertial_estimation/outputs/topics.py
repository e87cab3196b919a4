# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Table of the published quantities: topic, message type, rate, and function of the results.

It serves the node and the bag that a replay writes. A new quantity is one row here: of robot,
sample and estimate, or of deviations or offsets at their pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.contacts import Contact, ContactKind, row_names
from inertial_estimation.estimation.estimate import (
    WrenchEstimate,
    centers_of_pressure,
    result_names,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample
from inertial_estimation.signals.cdr import NANOSECONDS
from inertial_estimation.signals.messages import JOINT_STATE, MULTI_DOF_JOINT_STATE, POINT, WRENCH
from inertial_estimation.uncertainty.deviations import Deviations

LABELLED = JOINT_STATE, MULTI_DOF_JOINT_STATE
"""Types of messages that hold all rows with their names, NaN where they are not known."""


class Pace(Enum):
    """Rate at which a quantity is published."""

    CYCLE = 'cycle'
    """With every estimate."""
    WRENCH = 'wrench'
    """At `wrench_rate`, while there is a subscriber."""
    INSIDE = 'inside'
    """Likewise, but in a share of the time: internal wrenches take more of it than others."""
    DEVIATIONS = 'deviations'
    """At `deviations_rate`, while there is a subscriber."""
    CHANGE = 'change'
    """Latched, when it changes."""


class RateLimiter:
    """Lets work begin at a rate."""

    def __init__(self, rate: float) -> None:
        self._period_ns = round(NANOSECONDS / rate) if rate else 0
        self._next_ns = 0

    def is_due(self, stamp_ns: int) -> bool:
        """Tell whether work may begin; its next time is a period later."""
        late = stamp_ns - self._next_ns
        # Time may have been set back since.
        if -self._period_ns <= late < 0:
            return False
        # Stamps that jitter, or that no period divides, keep the rate on average.
        begun_ns = self._next_ns if 0 <= late < self._period_ns else stamp_ns
        self._next_ns = begun_ns + self._period_ns
        return True


class Results(NamedTuple):
    """Results of which the outputs are functions."""

    estimate: WrenchEstimate | None = None
    deviations: Deviations | None = None
    internal_wrenches: Array | None = None
    """Shape (n_internal, 6) [N, Nm]."""
    net_wrenches: Array | None = None
    """Shape (n_net, 6) [N, Nm]."""
    ft_offsets: Array | None = None
    """Subtracted from the readings, shape (n_fts, 6) [N, Nm]."""
    sample: Sample | None = None
    robot: Robot | None = None
    """With the inertial parameters in use."""
    surfaces: Sequence[int] = ()
    """As in the layout."""


class Layout(NamedTuple):
    """Names and frames of the rows of the outputs."""

    robot: Robot
    contacts: tuple[Contact, ...]
    internal: tuple[tuple[str, str], ...] = ()
    """Joints, and the frames of their wrenches."""
    links: tuple[str, ...] = ()
    """Links of the net wrenches."""

    @property
    def surfaces(self) -> Sequence[int]:
        """The contacts with a centre of pressure."""
        return [k for k, c in enumerate(self.contacts) if c.kind is ContactKind.SURFACE]


class Output(NamedTuple):
    """A topic, or a topic for each row: where rows have names, and the type is not `LABELLED`."""

    topic: str
    type: str
    pace: Pace
    values: Callable[[Any], Any]
    """Function of `Results`: the rows, or the numbers of the message; None: not known."""
    names: Callable[[Layout], Sequence[str]] | None = None
    """Names of the rows."""
    frames: Callable[[Layout], Sequence[str]] = lambda _: ('',)
    """Frame of each topic."""
    names_contacts: bool = False
    """True if the rows are the contacts of an estimate, which change at run time."""


def _joints(layout: Layout) -> Sequence[str]:
    return layout.robot.joint_names


def _base(layout: Layout) -> Sequence[str]:
    return (layout.robot.base_frame,)


def _contacts(layout: Layout) -> Sequence[str]:
    return row_names(layout.contacts)


def _submodels(layout: Layout) -> Sequence[str]:
    return [submodel.name for submodel in layout.robot.submodels]


_joint_state = partial(Output, type=JOINT_STATE)
_wrenches = partial(Output, type=MULTI_DOF_JOINT_STATE)
_wrench = partial(Output, type=WRENCH)
FT_OFFSET = _wrench(
    'ft_offset', pace=Pace.CHANGE, values=lambda r: r.ft_offsets,
    names=lambda layout: [ft.name for ft in layout.robot.ft_sensors],
    frames=lambda layout: layout.robot.ft_frames,
)  # fmt: skip
OUTPUTS: tuple[Output, ...] = (
    _wrenches('external_wrenches', pace=Pace.CYCLE, values=lambda r: r.estimate.wrenches,
              names=_contacts, names_contacts=True),
    # Torques are about no frame, but rviz ignores messages without one.
    _joint_state('joint_torques', pace=Pace.CYCLE, values=lambda r: r.estimate.torques,
                 names=_joints, frames=lambda layout: (layout.robot.links[0].name,)),
    _joint_state('external_joint_torques', pace=Pace.CYCLE,
                 values=lambda r: r.estimate.external_torques, names=_joints, frames=_base),
    _joint_state('quality', pace=Pace.CYCLE, values=lambda r: r.estimate.quality,
                 names=lambda layout: result_names(layout.robot, layout.contacts),
                 names_contacts=True),
    _wrench('external_wrench', pace=Pace.WRENCH, values=lambda r: r.estimate.wrenches,
            names=lambda layout: [contact.name for contact in layout.contacts],
            frames=lambda layout: [contact.frame for contact in layout.contacts]),
    Output('center_of_pressure', POINT, Pace.WRENCH,
           lambda r: centers_of_pressure(r.estimate, r.surfaces),
           names=lambda layout: [layout.contacts[k].name for k in layout.surfaces],
           frames=lambda layout: [layout.contacts[k].frame for k in layout.surfaces]),
    _wrench('residual', pace=Pace.WRENCH, values=lambda r: r.estimate.residuals,
            names=_submodels, frames=_submodels),
    _wrench('internal_wrench', pace=Pace.INSIDE, values=lambda r: r.internal_wrenches,
            names=lambda layout: [joint for joint, _ in layout.internal],
            frames=lambda layout: [frame for _, frame in layout.internal]),
    _wrench('net_wrench', pace=Pace.INSIDE, values=lambda r: r.net_wrenches,
            names=lambda layout: layout.links, frames=lambda layout: layout.links),
    _wrenches('external_wrench_deviations', pace=Pace.DEVIATIONS,
              values=lambda r: r.deviations.wrenches, names=_contacts, names_contacts=True),
    _joint_state('joint_torque_deviations', pace=Pace.DEVIATIONS,
                 values=lambda r: r.deviations.torques, names=_joints),
    _joint_state('external_joint_torque_deviations', pace=Pace.DEVIATIONS,
                 values=lambda r: r.deviations.external_torques, names=_joints, frames=_base),
    _wrenches('residual_deviations', pace=Pace.DEVIATIONS,
              values=lambda r: r.deviations.residuals, names=_submodels),
    FT_OFFSET,
)  # fmt: skip


def messages(output: Output, results: Results, wanted: Iterable[int]) -> list[tuple[int, Array]]:
    """Return the numbers of those of the wanted topics that have a message, and its values."""
    values = output.values(results)
    if values is None:
        return []
    if output.type in LABELLED:
        return [(0, values)]
    rows = values if values.ndim == 2 else values[None]
    # rviz blanks a display whose message holds NaN.
    known = np.isfinite(rows).all(axis=1).tolist()
    return [(row, rows[row]) for row in wanted if known[row]]
