# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
T section 5.4: matrices of two sensors of a leg from four data sets, judged on four others.

Of all sensors whose matrices are at hand, each at both places; tables as T Tables 5.1 to 5.3 of
the two that are in a leg of a robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.calibration.leg_robot import (
    CALIBRATION,
    FOOT,
    LEG,
    VALIDATION,
    Experiment,
    simulate,
)
from bench.calibration.leg_tables import (
    Score,
    Validation,
    axes_table,
    centre_table,
    mass_table,
    summary,
)
from bench.published.experiment import Expectation, Finding
from inertial_estimation.calibration.added_masses import (
    MatrixCalibration,
    matrix_from_added_masses,
)
from inertial_estimation.calibration.offset_in_situ import LENGTH_SCALE, offset_in_situ
from inertial_estimation.calibration.weighing import semiaxes, weigh
from inertial_estimation.errors import ConfigError

Array = NDArray[np.float64]

NAME = 'T section 5.4: synthetic leg, real matrices of 32 sensors (insitu-ft-analysis)'
FILE = 'iit_ftsens_matrices/matrices.npz'
SHOWN = {'foot': 'SN229', 'leg': 'SN217'}
"""Sensors of the left leg of iCubGenova02."""
WITHIN = 0.05
"""Of the masses that were added, what found ones may be off by [kg]."""
SEED = 5


def read_matrices(path: Path) -> dict[str, Array]:
    """
    Read the matrices of the sensors.

    Returns (6, 6) [N, Nm per count].
    """
    try:
        with np.load(path) as file:
            return dict(zip(map(str, file['serial']), file['C'].astype(float), strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from None


def run(folder: Path, serials: Sequence[str] | None = None) -> Finding:
    """Calibrate all sensors at both places."""
    matrices = read_matrices(folder / FILE)
    chosen = list(matrices) if serials is None else list(serials)
    scores = []
    for k, serial in enumerate(chosen):
        for of_place, place in enumerate((FOOT, LEG)):
            rng = np.random.default_rng((SEED, k, of_place))
            scores.append(score(serial, simulate(place, matrices[serial], rng)))
    shown = [one for one in scores if SHOWN[one.place.name] == one.serial]
    return Finding(
        NAME,
        (axes_table(shown), mass_table(shown), centre_table(shown), summary(scores)),
        tuple(one.note for one in expectations(scores)),
        {'sensors': [_as_dict(one) for one in scores]},
    )


def score(serial: str, experiment: Experiment) -> Score:
    """Calibrate a sensor and judge the result."""
    sets, true, workshop = experiment.data_sets, experiment.matrix, experiment.workshop
    found = matrix_from_added_masses([sets[k] for k in CALIBRATION], workshop=workshop)
    inverse, scale = np.linalg.inv(true), np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)
    errors = [
        np.abs(scale[:, None] * (C @ inverse - np.eye(6)) / scale).max()
        for C in (found.matrix, workshop)
    ]
    normalised = (found.matrix - true) / found.deviations
    return Score(
        serial,
        experiment.place,
        float(errors[0]),
        float(errors[1]),
        float(np.sqrt((normalised**2).mean())),
        found.body.mass - experiment.place.mass,
        tuple(validate(found, experiment, k) for k in VALIDATION),
    )


def validate(found: MatrixCalibration, experiment: Experiment, k: int) -> Validation:
    """Weigh what is added in a data set with the matrix that was found and with the workshop's."""
    one = experiment.data_sets[k]
    workshop = experiment.workshop
    offset = offset_in_situ(one.raw, one.accelerations, matrix=workshop, what=one.name)
    slopes = [found.wrench_slopes(offset, C) for C in (found.matrix, workshop)]
    weighed = [weigh(H, found.gram(offset)).less(found.body) for H in slopes]
    return Validation(
        one.name,
        one.mass,
        np.asarray(one.centre),
        np.array([semiaxes(H, offset.gravity) for H in slopes]),
        np.array([body.mass for body in weighed]),
        np.array([body.centre for body in weighed]),
    )


def expectations(scores: Sequence[Score]) -> tuple[Expectation, ...]:
    """Hold the scores against what the thesis reaches."""
    errors = np.abs(np.array([one.mass_errors for one in scores]))
    worst, workshop = (float(errors[..., k].max()) for k in (0, 1))
    centres = np.array([np.median(one.centre_errors, axis=0) for one in scores])
    better = int((centres[:, 0] < centres[:, 1]).sum())
    return (
        Expectation(
            f'masses that were added are recovered within {WITHIN:g} kg: off by {worst:.3f} kg at '
            f'most, by {workshop:.3f} kg with the matrices of the workshop',
            worst <= WITHIN,
        ),
        Expectation(
            f'centres of these masses come out nearer than with the matrices of the workshop: '
            f'of {better} of {len(scores)} sensors',
            better == len(scores),
        ),
    )


def _as_dict(one: Score) -> dict[str, Any]:
    """Return a score for a machine."""
    return {
        'serial': one.serial,
        'place': one.place.name,
        'matrix_error': one.error,
        'workshop_error': one.workshop_error,
        'matrix_error_over_deviations': one.normalised,
        'body_mass_error': one.body_error,
        'validation': [
            {
                'data_set': v.data_set,
                'added_mass': v.added,
                'centre': v.centre.tolist(),
                'semiaxes': v.semiaxes.tolist(),
                'masses': v.masses.tolist(),
                'centres': v.centres.tolist(),
            }
            for v in one.validations
        ],
    }
