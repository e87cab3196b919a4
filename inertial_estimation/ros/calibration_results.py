# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a calibration session found: written, handed over, and told as tables and figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.executors import Executor
from rclpy.node import Node

from inertial_estimation.calibration import in_situ_tables as tables
from inertial_estimation.calibration.calibration_file import as_entry, write
from inertial_estimation.calibration.former_matrix import change, prior_matrix
from inertial_estimation.calibration.in_situ_steps import IN_ACCELEROMETER_AXES, ROTATION_FREE
from inertial_estimation.calibration.matrix_doubts import OPPOSITE
from inertial_estimation.calibration.session import Outcome, Session
from inertial_estimation.calibration.wrench_axes import SENSOR
from inertial_estimation.ros.calibration_handover import Handover, hand_over
from inertial_estimation.ros.calibration_setup import Setup
from inertial_estimation.table import Table

UNCHECKED = (
    'nothing checks units and the direction of the readings, as no former matrix is known: give '
    'the one of the workshop with --calibration if there is any'
)
TURNED = "centres about the sensor's origin in its own axes"
"""What else changes once the rotation is told."""


@dataclass(frozen=True)
class Found:
    """What goes to whoever started the session."""

    stopped: bool = False
    """Whether it is to go on later."""
    tables: tuple[Table, ...] = ()
    said: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ''
    """Why what was found is not written; empty: it is, if a file was named."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What JSON can hold."""

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            'stopped': self.stopped,
            'tables': [list(one) for one in self.tables],
            'said': list(self.said),
            'warnings': list(self.warnings),
            'refused': self.refused,
            'figures': dict(self.figures),
        }


def finish(
    node: Node, executor: Executor, job: Mapping[str, Any], setup: Setup, session: Session,
    date: str,
) -> Found:  # fmt: skip
    """Find out what a session tells, write it and hand it to the estimator."""
    given = job['temperature']
    outcome = session.outcome(date, setup.feed.temperature if given is None else given)
    said, told, refused = [], None, ''
    if outcome.doubts:
        what = 'the matrix cannot be used'
        if setup.output is not None:
            what = f"'{setup.output}' is not written"
        refused = f'{what}, as {"; ".join(outcome.doubts)}: {_remedy(outcome, job)}'
    elif setup.output is not None:
        write(setup.output, setup.robot, {job['sensor']: outcome.calibration})
        said.append(f"wrote {job['sensor']} to '{setup.output}'")
        if job['estimator']:
            told = _handed_over(node, executor, job, setup.output, outcome)
            said.append(told.said)
    warnings = (*outcome.warnings, *setup.warnings)
    counts = {
        load.name: one.counts()
        for load, one in zip(session.plan.loads, session.collections, strict=True)
    }
    figures = {
        'sensor': job['sensor'],
        'date': date,
        'gravity': session.plan.gravity,
        'warnings': list(warnings),
        'doubts': list(outcome.doubts),
        'readings': counts,
        'output': None if setup.output is None or refused else str(setup.output),
        'estimator': None if told is None else {'taken_over': told.done, 'said': told.said},
        'calibration': as_entry(outcome.calibration),
        **_figures(outcome, session),
    }
    return Found(
        tables=(*_tables(outcome, session), _readings(counts)),
        said=(*_notes(outcome, session), *said),
        warnings=warnings,
        refused=refused,
        figures=figures,
    )


def _handed_over(
    node: Node, executor: Executor, job: Mapping[str, Any], path: Path, outcome: Outcome
) -> Handover:
    """Hand a file to the estimator, unless its wrenches are not in the sensor's axes."""
    if outcome.calibration.axes == SENSOR:
        return hand_over(node, executor, job['estimator'], path)
    if outcome.matrix is None:
        how = 'find a matrix in those first'
    else:
        how = f'tell the rotation with --imu-rpy and {TURNED}, {_again(job)}'
    return Handover(
        False, f"not handed over: '{job['estimator']}' takes wrenches in the sensor's axes; {how}"
    )


def _notes(outcome: Outcome, session: Session) -> list[str]:
    """Return what to know of any such offset or matrix."""
    if outcome.matrix is None:
        return [f'the offset holds {ROTATION_FREE}']
    notes = [IN_ACCELEROMETER_AXES] * (not outcome.matrix.in_sensor_axes)
    prior = _prior(outcome, session)
    if prior is None:
        return [*notes, UNCHECKED]
    by = change(outcome.matrix, prior, turned=_turned(session)).in_words()
    return [*notes, f'the matrix differs from the former one by {by}']


def _remedy(outcome: Outcome, job: Mapping[str, Any]) -> str:
    """Return what helps against a matrix that cannot be."""
    if any(OPPOSITE in doubt for doubt in outcome.doubts):
        return (
            'state the other --direction, of a robot that of its description, or a --calibration '
            f'of this side, {_again(job)}'
        )
    axes = outcome.calibration.axes
    return (
        f'check masses and centres of the loads, in the axes of the {axes}; state those that hung '
        f'there, or a --calibration of this sensor, {_again(job)}'
    )


def _again(job: Mapping[str, Any]) -> str:
    """Say how to go on with the readings, if they are kept."""
    if job['session']:
        return f"in the same call with --restate: the readings are in '{job['session']}'"
    return 'and collect anew: without --session the readings are in no file'


def _figures(outcome: Outcome, session: Session) -> dict[str, Any]:
    """Return the figures of offset or matrix."""
    if outcome.matrix is not None:
        return tables.matrix_dict(
            outcome.matrix, (), _prior(outcome, session), turned=_turned(session)
        )
    assert outcome.offset is not None
    return tables.offset_dict(outcome.offset, session.plan.matrix)


def _prior(outcome: Outcome, session: Session) -> np.ndarray | None:
    """Return what a matrix is held against; None: nobody knows."""
    before = session.plan.before
    assert outcome.matrix is not None
    return prior_matrix(outcome.matrix, None if before is None else before.matrix)


def _turned(session: Session) -> bool:
    """Tell whether the former matrix is in the axes of an accelerometer."""
    before = session.plan.before
    return before is not None and before.axes != SENSOR


def _tables(outcome: Outcome, session: Session) -> tuple[Table, ...]:
    """Return the tables of offset or matrix."""
    found = outcome.matrix
    if found is None:
        offset, matrix = outcome.offset, session.plan.matrix
        assert offset is not None
        return (
            tables.offset_table(offset, matrix),
            tables.subspace_table({session.load.name: offset}),
        )
    fitted = list(zip(found.data_sets, found.found, strict=True))
    before = session.plan.before
    compared = (
        None if before is None or np.array_equal(before.matrix, np.eye(6)) else before.matrix
    )
    return (
        tables.matrix_table(found),
        tables.body_table(found),
        tables.offsets_table(found),
        tables.subspace_table({one.name: offset for one, offset in fitted}),
        tables.weighing_table(found, fitted, compared, 'masses of the data sets'),
    )


def _readings(counts: Mapping[str, Mapping[str, int]]) -> Table:
    """Return what became of the readings."""
    reasons = list(dict.fromkeys(why for one in counts.values() for why in one))
    rows = tuple(
        (name, *(str(one.get(why, 0)) for why in reasons)) for name, one in counts.items()
    )
    return Table('readings that are kept, and left out by reason', ('data set', *reasons), rows)
