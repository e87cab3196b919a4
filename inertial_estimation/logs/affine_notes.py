# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What speaks against a matrix from the model, and what else is to be known of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_types import AffineFit, AffineSettings
from inertial_estimation.calibration.lasting_steps import Step

Array = NDArray[np.float64]

DEAF, LOUD = 0.5, 2.0
"""
Gains beyond which a matrix is doubtful: what authors corrected in workshop matrices is a third.
"""
FAR = 1.0
"""Share of the former matrix by which one may differ from it along some direction."""
UNEXPLAINED = 0.5
"""Of the spread of the load, what the best matrix may leave."""
OWN = 0.5
"""Share of the data from which on a direction is theirs and not the prior's."""


def doubts_of(fit: AffineFit, wanted: Array, settings: AffineSettings) -> tuple[str, ...]:
    """
    Return why nobody should use a fit, which holds for the loads of the log at best.

    wanted (n, 6) [N, Nm].
    """
    units = settings.units
    load = float(np.linalg.norm(wanted.std(axis=0) / units))
    left = float(np.linalg.norm(fit.rms / units))
    beside = f'its load spreads by {load:.2g} N, of which {left:.2g} N are left'
    said = []
    far = float(np.linalg.norm(fit.correction / np.outer(units, 1.0 / units) - np.eye(6), 2))
    if fit.gains[-1] < DEAF or fit.gains[0] > LOUD:
        said.append(
            f'lets {fit.gains[-1]:.2g} to {fit.gains[0]:.2g} of what came through pass, by '
            f'direction ({beside}): at best right for loads like those of the log, and wrong for '
            'pushes along others'
        )
    elif far > FAR:
        said.append(
            f'differs from the matrix there was by {far:.2g} times that one along some direction '
            f'({beside})'
        )
    told = (fit.shares >= OWN).any()
    if left > UNEXPLAINED * load and (told or left > settings.least_touch):
        said.append(
            f'{beside}, moments over {settings.length_scale:g} m: the readings do not follow what '
            'the model says with the support as the only contact'
        )
    return tuple(said)


def notes_of(fit: AffineFit, assumed: bool) -> tuple[str, ...]:
    """Return what else whoever uses a fit must know."""
    said = []
    if np.isinf(fit.weight):
        said.append('no matrix predicts held-out parts of the log better than the one there was')
    kept = int((fit.shares < OWN).sum())
    if kept:
        said.append(
            f'along {kept} of 6 directions the load hardly changed: the matrix there is the one '
            'there was'
        )
    if assumed:
        said.append('rests on joints that nobody reports')
    return tuple(said)


def in_words(step: Step) -> str:
    """Return what a touch that does not end means for a fit."""
    forces, moments = (
        ' '.join(f'{x:.{digits}f}' for x in part)
        for part, digits in ((step.change[:3], 1), (step.change[3:], 2))
    )
    return (
        f'from {step.start:.1f} s to {step.stop:.1f} s readings less predictions change by '
        f'{forces} N and {moments} Nm, and stay: by {step.size:.0f} N in all where the load '
        f'changes by {step.load:.0f} N, which no matrix near the one there was explains. '
        'Something that the model does not know, as a cover or a cable, bears on this side before '
        'or after: name a part of the log on one side of it'
    )
