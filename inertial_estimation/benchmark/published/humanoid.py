# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A humanoid by its base link alone, as in A's Tables I-V and Fig. 3, on synthetic data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inertial_estimation.benchmark import humanoid_identification as identification
from inertial_estimation.benchmark.humanoid_experiment import icub_experiment
from inertial_estimation.benchmark.humanoid_identification import Score
from inertial_estimation.benchmark.published.experiment import Expectation, Finding

NAME = 'A: Ayusawa and Nakamura 2010, synthetic humanoid of 33 links'
TITLES = (
    'A, Table V: base link wrench, root mean square errors, noise 2 N and 0.5 Nm',
    'A, section V: links',
    "A, Tables I-IV: mass over the humanoid's, centre of mass in the box (-1 to 1), spread",
    'A, Fig. 3: points per link, mean squared error over that of the noise, time',
)
WITH_AND_WITHOUT = 0.05
"""By so much may errors with and without prior differ."""


def run(_folder: Path) -> Finding:
    """
    Identify the humanoid.

    Parameters
    ----------
    _folder : Path
        Of the data sets; none is needed.

    Returns
    -------
    Finding

    Raises
    ------
    ModelError
        If icub-models is not installed.

    """
    experiment = icub_experiment()
    scores = identification.compare(experiment)
    over_points = identification.points(experiment)
    tables = identification.tables(experiment, scores, over_points)
    return Finding(
        NAME,
        tuple(table._replace(title=title) for table, title in zip(tables, TITLES, strict=True)),
        tuple(one.note for one in expectations(scores)),
        {
            'methods': [score.as_dict() for score in scores],
            'points': [score.as_dict() for score in over_points],
        },
    )


def expectations(scores: Sequence[Score]) -> tuple[Expectation, ...]:
    """
    Hold the four methods against A's relations.

    Parameters
    ----------
    scores : sequence of Score
        From `humanoid_identification.compare`.

    Returns
    -------
    tuple of Expectation

    """
    with_prior, plain, prior, without = scores
    pairs = ((with_prior.seen, without.seen), (with_prior.unseen, without.unseen))
    differ = max(float(np.abs(one / other - 1.0).max()) for one, other in pairs)
    n = len(with_prior.parameters)
    ratio = float(prior.unseen[2] / with_prior.unseen[2])
    return (
        Expectation(
            f'errors of (A) and (D) differ by less than {WITH_AND_WITHOUT:.0%}, '
            f'at most {differ:.1%}',
            differ < WITH_AND_WITHOUT,
        ),
        Expectation(
            f'all links of (A) are consistent ({with_prior.consistent} of {n}) and their centres '
            f'in the boxes ({with_prior.inside} of {n})',
            with_prior.consistent == with_prior.inside == n,
        ),
        Expectation(
            f'not so of (B): {plain.consistent} of {n} are consistent, '
            f'{plain.inside} of {n} in their boxes',
            plain.consistent < n and plain.inside < n,
        ),
        Expectation(
            f'(C) misses the vertical force most, {ratio:.0f} times as much as (A)',
            ratio > float((prior.unseen / with_prior.unseen)[[0, 1, 3, 4, 5]].max()),
        ),
    )
