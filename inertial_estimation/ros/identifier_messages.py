# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters, progress and payloads of the identifier as labelled arrays."""

from collections.abc import Mapping, Sequence

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from inertial_estimation.identification.recursion.base_values import BaseValues
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
)
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.update_policy import Refit

SEPARATOR = '; '
"""Between the labels of rows: combinations contain blanks."""
GROUPS = {'force': '[N]', 'moment': '[Nm]', 'effort': '[Nm or N]'}
"""Beginning of the name of a kind of equation, and its unit."""
PROGRESS = (
    'seconds', 'rows', 'told', 'rank', 'base_parameters',
    *(f'{group}_{when}' for group in GROUPS for when in ('before', 'after')),
)  # fmt: skip
"""Columns of the progress."""
PAYLOAD = ('mass', 'x', 'y', 'z', *(f'{name}_deviation' for name in ('mass', 'x', 'y', 'z')))
"""Columns of the payloads [kg, m]."""


def base_message(values: Sequence[BaseValues]) -> Float64MultiArray:
    """Return base parameters as a message."""
    labels = [f'{one.submodel}: {name}' for one in values for name in one.names]
    rows = [row for one in values for row in zip(one.values, one.deviations)]
    return _message(labels, ('value', 'standard_deviation'), rows)


def progress_message(
    identifier: RecursiveIdentifier, refit: Refit | None, values: Sequence[BaseValues]
) -> Float64MultiArray:
    """Return the progress of each submodel."""
    named = {one.submodel: one for one in values}
    rows, labels = [], []
    for known in identifier.memories:
        name = known.block.submodel.name
        labels.append(name)
        seen = refit.excitation.get(name) if refit else None
        base = named.get(name)
        row = [known.seconds, seen.equations if seen else 0.0, seen.determined if seen else 0]
        row += [base.rank, len(base.names)] if base else [0, np.nan]
        for group in GROUPS:
            row += errors(refit, name, group)
        rows.append(row)
    return _message(labels, PROGRESS, rows)


def payloads_message(payloads: Mapping[str, Payload]) -> Float64MultiArray:
    """Return the payloads."""
    labels = [f'{name}: {one.link}' for name, one in payloads.items()]
    rows = [
        [one.mass, *one.center, one.mass_deviation, *one.center_deviation]
        for one in payloads.values()
    ]
    return _message(labels, PAYLOAD, rows)


def errors(refit: Refit | None, submodel: str, group: str) -> tuple[float, float]:
    """Return the residuals of one group of the newest equations, before and after (rms)."""
    if refit is None:
        return np.nan, np.nan
    both = refit.prior_residuals, refit.residuals
    before, after = (_rms(each.get(submodel, {}), group) for each in both)
    return before, after


def _rms(kinds: Mapping[str, float], group: str) -> float:
    """Return the root mean square of the kinds of a group."""
    squares = [level**2 for kind, level in kinds.items() if kind.startswith(group)]
    return float(np.sqrt(np.mean(squares))) if squares else np.nan


def _message(
    labels: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[float]]
) -> Float64MultiArray:
    """Return labelled rows."""
    message = Float64MultiArray()
    n, width = len(labels), len(columns)
    message.layout.dim = [
        MultiArrayDimension(label=SEPARATOR.join(labels), size=n, stride=n * width),
        MultiArrayDimension(label=' '.join(columns), size=width, stride=width),
    ]
    message.data = [float(number) for row in rows for number in row]
    return message
