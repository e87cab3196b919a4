# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reference parameters for rejecting equations that an unknown contact disturbs.

A first fit comes from the cleanest half of the time windows, `least_trimmed`, which others
cannot spoil as long as they are fewer. Equations that do not agree with it are rejected, the rest
are fitted anew, and all are compared with that fit, until nothing changes: half of the windows are
too few to determine the parameters well.

With unknown gains of drives, equations are linearised about a guess of the gains, see
`drive_gains`: otherwise gains and parameters of zero fit the logs without a payload best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.identification.drive_gains import (
    linearised,
    linearised_rows,
    settled,
    stepped,
)
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.fit import fitted_at_prior
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import noise_levels, spread
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.outliers import (
    NANOSECONDS,
    WINDOW,
    Reference,
    WindowEquations,
    least_trimmed,
    regimes,
)
from inertial_estimation.identification.priors import entropic_model, widened
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import gain_columns
from inertial_estimation.model.robot import Robot

WEIGHT = 1e-2
"""Of the prior, as in all solvers."""
STIFF = 1e6
"""Weight of the prior that leaves the parameters as they are."""
MAX_NUMBERS = 8_000_000
"""Of equations held at once: as many windows are taken, evenly over the logs."""
SAMPLES_IN_WINDOW = 12
MIN_REJECTED, MAX_REJECTED = limit_of('disturbed'), 0.4
"""Shares of equations from which rejection is reported, and doubted: most may be disturbed."""


def cleanest(
    builder: EquationBuilder, evidence: Sequence[Evidence], logs: Iterable[Observed], n_logs: int
) -> list[Reference | None]:
    """Return the reference of each submodel from the cleanest half of some logs."""
    widths = sum(len(block.kinds) * (len(block.unknowns) + 1) for block in builder.blocks)
    most = max(2, MAX_NUMBERS // (widths * SAMPLES_IN_WINDOW * n_logs))
    with one_thread():
        guesses = [_guess(builder.robot, one) for one in evidence]
    rows: list[dict[str, list[WindowEquations]]] = [{} for _ in builder.blocks]
    n_windows = 0
    for log in logs:
        chosen, window = _windows(log.samples.stamp_ns, most)
        some = log.take(chosen)
        for found, guess, (block, kinds) in zip(rows, guesses, builder.sparse(some), strict=True):
            n, zero = len(block.unknowns), np.zeros(len(block.unknowns))
            gains = gain_columns(block.unknowns)
            for kind, sparse in kinds:
                good = np.isfinite(sparse.residuals(zero))
                system = linearised_rows(sparse.system(np.arange(n), n)[0], guess, gains)
                for name, here in regimes(builder.robot, some.samples, kind):
                    part = WindowEquations(system[here[good]], window[good & here] + n_windows)
                    found.setdefault(name, []).append(part)
        n_windows += most
    with one_thread():
        return [
            _cleanest(builder.robot, one, guess, found, n_windows)
            for one, guess, found in zip(evidence, guesses, rows, strict=True)
        ]


def refitted(
    robot: Robot, evidence: Evidence, left: dict[str, Array], before: Reference | None
) -> Reference | None:
    """Return the reference of a submodel from the equations that agree with the one before."""
    if before is None or not any(part.count for part in evidence.kinds.values()):
        return before
    with one_thread():
        x = _fitted(robot, evidence, before.x)
    noise = {kind: float(spread(some)) for kind, some in left.items()}
    return Reference(x, {kind: level for kind, level in noise.items() if level > 0})


def disturbed_findings(before: Sequence[Evidence], after: Sequence[Evidence]) -> Iterator[Finding]:
    """Yield submodels of whose equations some are rejected."""
    for one, other in zip(before, after, strict=True):
        counts = [sum(part.count for part in some.kinds.values()) for some in (one, other)]
        share = 1.0 - counts[1] / counts[0] if counts[0] else 0.0
        if share > MIN_REJECTED:
            level = Level.WARNING if share > MAX_REJECTED else None
            yield finding('disturbed', one.block.submodel.name, level=level, share=share)


def _guess(robot: Robot, evidence: Evidence) -> Array:
    """Return unknowns to linearise about; zeros where no gain is unknown."""
    unknowns = evidence.block.unknowns
    x = np.zeros(len(unknowns))
    if not len(gain_columns(unknowns)) or not _count(evidence):
        return x
    parameters, _ = widened(robot.link_names, robot.parameters)
    x = fitted_at_prior(evidence, parameters[list(evidence.block.submodel.links)])
    return _fitted(robot, evidence, x)


def _fitted(robot: Robot, evidence: Evidence, x: Array) -> Array:
    """Return the fit to equations with a weak prior, gains from a guess on."""
    unknowns = evidence.block.unknowns
    count, gains = _count(evidence), gain_columns(unknowns)

    def step(x: Array) -> Array:
        prior = _prior(robot, evidence, WEIGHT * count, count, x)
        levels = noise_levels(linearised(evidence.kinds, x, unknowns), prior=prior)
        fitted = levels.information.merge(prior)
        return np.asarray(RowSpace.of(fitted.R).solve(fitted.rho))

    return settled(step, x, gains)[0] if len(gains) else step(x)


def _count(evidence: Evidence) -> float:
    """Return the number of equations."""
    return sum(part.count for part in evidence.kinds.values())


def _cleanest(
    robot: Robot,
    evidence: Evidence,
    guess: Array,
    rows: dict[str, list[WindowEquations]],
    n_windows: int,
) -> Reference | None:
    """Return the reference of a submodel from the cleanest half of the windows."""
    kinds = {
        kind: WindowEquations(
            np.concatenate([part.system for part in parts]),
            np.concatenate([part.window for part in parts]),
        )
        for kind, parts in rows.items()
        if any(len(part.system) for part in parts)
    }
    if not kinds:
        return None
    half = sum(len(one.system) for one in kinds.values()) / 2
    count = sum(evidence.used.values())
    prior, stiff = (_prior(robot, evidence, w * half, count, guess) for w in (WEIGHT, STIFF))
    found = least_trimmed(kinds, n_windows, prior, stiff)
    gains = gain_columns(evidence.block.unknowns)
    found.x[gains] = stepped(guess[gains], found.x[gains])
    return Reference(found.x, found.noise)


def _prior(robot: Robot, evidence: Evidence, weight: float, count: float, x: Array) -> Information:
    """Return the prior: of inertial parameters with a weight, of friction as in a fit."""
    unknowns, links = evidence.block.unknowns, list(evidence.block.submodel.links)
    parameters = widened(robot.link_names, robot.parameters)[0][links]
    known = entropic_model(unknowns, parameters, parameters, None, weight)
    rows = np.zeros((len(unknowns.extras), len(unknowns)))
    scales = friction_scales(evidence, x)
    rows[:, unknowns.n_inertial :] = np.diag(np.sqrt(WEIGHT * count) / scales)
    return known.add(rows, np.zeros(len(rows)))


def _windows(stamps: NDArray[np.int64], most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return samples of some windows, and the window of each."""
    span = round(WINDOW / NANOSECONDS)
    numbers, first, counts = np.unique(
        (stamps - stamps[0]) // span, return_index=True, return_counts=True
    )
    some = np.unique(np.linspace(0, len(numbers) - 1, min(most, len(numbers))).astype(int))
    picked = [
        first[k] + np.unique(np.linspace(0, counts[k] - 1, SAMPLES_IN_WINDOW).astype(int))
        for k in some
    ]
    window = np.repeat(np.arange(len(some)), [len(one) for one in picked])
    return np.concatenate(picked).astype(np.intp), window
