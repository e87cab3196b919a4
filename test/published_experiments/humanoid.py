# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A humanoid by its base link alone, as in A's Tables I-V and Fig. 3, on synthetic data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.table import Table
from published_experiments import humanoid_identification as identification
from published_experiments.data_sets import read_table
from published_experiments.experiment import Expectation, Finding
from published_experiments.humanoid_experiment import icub_experiment
from published_experiments.humanoid_identification import Score

Array = NDArray[np.float64]

NAME = 'A: Ayusawa and Nakamura 2010, synthetic humanoid of 33 links'
TITLES = (
    'A, Table V (motion used) and Fig. 3 (other motion): rms errors, noise 2 N and 0.5 Nm',
    'A, section V: links',
    "A, Tables I-IV: mass over the humanoid's, centre of mass in the box (-1 to 1), spread",
    'A, section V: number of points, errors over the noise, time',
)
USED, OTHER = 'papers/seed001_table5_rms.csv', 'papers/seed001_fig3_heldout_rms.csv'
FILES = (USED, OTHER)
"""A's errors, below the folder of the data sets."""
LETTERS = {'LSM': 'B', 'proposed': 'A'}
"""Of Table V by the names of Fig. 3."""
FORCES = ('Fx', 'Fy', 'Fz', 'Nx', 'Ny', 'Nz')
MOTIONS = ('seen', 'unseen')
WITH_AND_WITHOUT, WORSE = 0.05, 0.4
"""By so much errors differ with and without prior, and from those of least squares."""


def run(folder: Path) -> Finding:
    """Identify the humanoid."""
    published = _published(folder)
    experiment = icub_experiment()
    scores = identification.compare(experiment)
    over_points = identification.points(experiment)
    tables = identification.tables(experiment, scores, over_points)
    return Finding(
        NAME,
        (
            *(table._replace(title=title) for table, title in zip(tables, TITLES, strict=True)),
            published,
        ),
        tuple(one.note for one in expectations(scores)),
        {
            'methods': [score.as_dict() for score in scores],
            'points': [score.as_dict() for score in over_points],
        },
    )


def expectations(scores: Sequence[Score]) -> tuple[Expectation, ...]:
    """Hold the four methods against A's relations."""
    with_prior, plain, prior, without = scores
    n = len(with_prior.parameters)
    differ = max(float(np.abs(_ratio(with_prior, without, k) - 1).max()) for k in MOTIONS)
    more = max(
        float(_ratio(score, plain, k).max()) - 1
        for score in (with_prior, without)
        for k in MOTIONS
    )
    missed = _ratio(prior, with_prior, 'unseen')
    return (
        Expectation(
            f'errors of (A) and (D) differ by less than {WITH_AND_WITHOUT:.0%}, by {differ:.1%} '
            'at most',
            differ < WITH_AND_WITHOUT,
        ),
        Expectation(
            f'errors of (A) and (D) are larger than those of (B) by less than {WORSE:.0%}, by '
            f'{more:.1%} at most',
            more < WORSE,
        ),
        Expectation(
            f'all links of (A) are consistent ({with_prior.consistent} of {n}) and their centres '
            f'in the boxes ({with_prior.inside} of {n})',
            with_prior.consistent == with_prior.inside == n,
        ),
        Expectation(
            f'not all links of (B) are consistent ({plain.consistent} of {n}), nor their centres '
            f'in the boxes ({plain.inside} of {n})',
            plain.consistent < n and plain.inside < n,
        ),
        Expectation(
            f'(C) misses the vertical force most, {missed[2]:.0f} times as much as (A)',
            missed.argmax() == 2,
        ),
    )


def _ratio(one: Score, other: Score, motion: str) -> Array:
    """Return errors of one method over those of another, shape (6,)."""
    return np.asarray(getattr(one, motion) / getattr(other, motion), dtype=np.float64)


def _published(folder: Path) -> Table:
    """Return A's errors."""
    rows = [
        (f'({LETTERS.get(row["method"], row["method"])})', motion, *(row[name] for name in FORCES))
        for motion, file in (('used', USED), ('other', OTHER))
        for row in read_table(folder / file, ('method', *FORCES))
    ]
    title = 'A, Table V and Fig. 3 as published, of a real humanoid'
    return Table(title, identification.ERROR_COLUMNS, tuple(rows))
