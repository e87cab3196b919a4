# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Checks of identified parameters: against the URDF, between logs, and of what the data determine.

Findings of level ERROR are contradictions that no robot has: units, signs or columns are wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import hypot
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.identification.drive_gains import geared
from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.priors import SMALLEST_MASS
from inertial_estimation.identification.problem import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Term, gain_columns
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.regressor import joints_without_gravity

SCALE_DEVIATIONS = 5.0
"""Standard deviations by which a factor has to be beyond the limit."""
MIN_EXPLAINED, MAX_DEVIATION = 0.6, 0.1
"""Share of a signal that the URDF explains, and relative deviation of a factor that is known."""
IMPOSSIBLE_SCALE, MIN_KINDS = 100.0, 2
"""Factor that no robot has, and kinds of equations that have to agree on it."""
WEAK_SIGNAL, WEAK_LIMIT = 0.25, 1.1
"""Share of the largest signal of its unit below which noise may be all of it, and its limit."""
OWN_FACTOR = 3.0
"""Times the residual of equations fitted by themselves."""
REFUSED_RESIDUAL, REFUSED_OWN = 0.7, 2.0
"""The same of all equations of a unit, from which a fit is refused."""
HARM = 3.0
"""Times the residual of the prior: fits that leave more, and more than the signal, are refused."""
FOREIGN_RESIDUAL, FOREIGN_PREDICTION = 0.98, 0.5
"""Residual and prediction over the signal, from which the data are of another robot."""
MIN_MASS_SHARE, MIN_LINK_SHARE = 0.1, 0.02
"""Share of its URDF mass that a link keeps, if it has more than that share of all mass."""
UNITS = {'force': 'N', 'moment': 'N m', 'effort': 'N m or N'}
"""Of equations, by the beginning of their kinds."""
PASSIVE = (Term.VISCOUS, Term.DRIVE_INERTIA)
"""Terms that cannot be negative."""
MAX_GAIN_DEVIATION, GAIN_SCALE, CURRENT_LIMIT = 0.3, 2.0, 0.3
"""Of gains: relative deviation, torques over those of the URDF, residual over a current."""
LOG_SHARE, LOG_FACTOR = 0.1, 5.0
"""
Share of the signal, and times the residuals of logs fitted one by one, that one fit may leave of a
log. Runs of one real arm stay below 2.1, a wrist whose friction changes comes to 3.5, 10 s with an
unstated payload of a tenth of the arm's weight to 18.
"""
UNSEEN_SHARE, UNSEEN_SMALL, UNSEEN_FACTOR = 0.5, 0.15, 10.0
"""Shares of the signal of logs to predict, and the factor from which the smaller one counts."""


class Figures(NamedTuple):
    """Figures of the equations of one kind of a submodel, root mean squares in their unit."""

    kind: str
    signal: float
    left: float
    """Residual of the fit."""
    before: float
    """Residual of the prior, other unknowns fitted."""
    own: float
    """Residual of these equations fitted by themselves, infinite: not known."""
    predicted: float
    """By the URDF."""
    scale: float
    """Factor of the prediction that fits best, NaN: not known."""
    deviation: float
    """Of the scale."""


def figures(block: BlockFit) -> Iterator[Figures]:
    """Yield the figures of each kind of equations that was fitted."""
    x, n, evidence = block.answer.x, block.answer.unknowns.n_inertial, block.evidence
    signals, left, before = (
        evidence.signals(x),
        evidence.residuals(x),
        evidence.residuals(block.before),
    )
    for kind in block.noise.deviations:
        rows = evidence.kinds[kind]
        predicted = rows.R[:, :n] @ block.before[:n]
        size = float(np.linalg.norm(predicted) / np.sqrt(rows.count))
        if _has_gains(block):
            yield Figures(
                kind, signals[kind], left[kind], before[kind], np.inf, size, np.nan, np.nan
            )
            continue
        free = rows.count - RowSpace.of(rows.R).rank
        own = float(np.sqrt(rows.energy / free)) if free > 0.5 * rows.count else np.inf
        # What friction and offsets explain determines no scale.
        others = RowSpace.of(rows.R[:, n:]).left
        predicted, rest = (v - others @ (others.T @ v) for v in (predicted, rows.rho))
        length, total = float(predicted @ predicted), float(rest @ rest) + rows.energy
        scale = deviation = np.nan
        if length > 0.0 and total > 0.0:
            value = float(predicted @ rest) / length
            unexplained = float(np.sum((rest - value * predicted) ** 2)) + rows.energy
            spread = float(np.sqrt(unexplained / rows.count / length))
            if 1.0 - unexplained / total >= MIN_EXPLAINED**2 and (
                spread <= MAX_DEVIATION * abs(value)
            ):
                scale, deviation = value, spread
        yield Figures(kind, signals[kind], left[kind], before[kind], own, size, scale, deviation)


def _has_gains(block: BlockFit) -> bool:
    """Return true if efforts of a submodel are currents with unknown gains."""
    return bool(len(gain_columns(block.answer.unknowns)))


def fit_findings(found: RobotFit) -> Iterator[Finding]:
    """Yield what is doubtful of an identification, and what no robot has: level ERROR."""
    raised = 'second moments raised to those of a small ball, for the prior to be consistent'
    for name in found.widened:
        yield finding('inertia', name, level=Level.INFO, what=raised)
    for name, why in found.undetermined.items():
        yield finding('unexcited', name, what=f'not identified: {why}')
    # With the sign of gravity turned, joints that it does not load keep theirs.
    unloaded = {EFFORT + joint for joint in joints_without_gravity(found.robot)}
    for block in found.blocks:
        answer, known = block.answer, list(figures(block))
        masses = found.robot.parameters[list(block.evidence.block.submodel.links), 0]
        # Without masses a URDF predicts nothing.
        stated = bool((masses[block.links_seen] >= SMALLEST_MASS).all())
        yield from _impossible(block, known, unloaded, stated=stated)
        yield from _equations(block, known)
        yield from _links(block, found)
        yield from _extras(block)
        if _has_gains(block):
            yield from _torques(block, masses)
        for name, value in block.held.items():
            what = f'the answer is at its bound, {name} {value:.4g}'
            yield finding('suboptimal', block.name, what=what, limit=value)
        for note in answer.notes:
            yield finding('suboptimal', block.name, what=note)
        if answer.grade is not Grade.OPTIMAL:
            steps = f' after {answer.iterations} steps' if answer.iterations > 1 else ''
            what = (
                f'{answer.method} ended {answer.grade.value}{steps}, optimality residual '
                f'{answer.optimality:.1g}'
            )
            yield finding('suboptimal', block.name, what=what)
    for name, parameters in found.payloads.items():
        margin = float(consistency_margin(parameters[None])[0])
        if not margin >= 0.0:
            what = 'inconsistent inertia: only those of links are kept consistent'
            yield finding('indefinite', name, what=what, margin=margin)


def _links(block: BlockFit, found: RobotFit) -> Iterator[Finding]:
    """Yield links that no rigid body can be, that lost their mass, or had none in the URDF."""
    answer, links = block.answer, list(block.evidence.block.submodel.links)
    before, after = found.prior[links, 0], answer.parameters[:, 0]
    stated = found.robot.parameters[links, 0]
    light = (after < MIN_MASS_SHARE * before) & (before > MIN_LINK_SHARE * before.sum())
    for k, (link, margin) in enumerate(zip(answer.unknowns.links, answer.margins, strict=True)):
        if block.links_seen[k] and stated[k] < SMALLEST_MASS:
            what = f'mass {before[k]:g} kg in the URDF: the prior keeps it'
            yield finding('inertia', link, what=what)
        if not margin > 0.0:
            yield finding('indefinite', link, what='inconsistent parameters', margin=float(margin))
        if light[k] and answer.consistent:
            what = f'mass {after[k]:.2g} kg, {before[k]:.3g} kg in the URDF'
            yield finding('indefinite', link, what=what)


def _extras(block: BlockFit) -> Iterator[Finding]:
    """Yield negative friction, drive inertia and gains, and gains that are hardly determined."""
    answer = block.answer
    for k, extra in enumerate(answer.unknowns.extras, start=answer.unknowns.n_inertial):
        value, deviation = answer.x[k], answer.deviations[k]
        about = f'{value:.3g} +- {deviation:.2g}'
        if extra.term is Term.DRIVE_GAIN:
            if value < -SCALE_DEVIATIONS * deviation:
                what = f'negative gain {about}: wrong mass of a payload, logs or signs'
                yield finding('indefinite', str(extra), level=Level.ERROR, what=what)
            elif value <= 0.0 or deviation > MAX_GAIN_DEVIATION * value:
                yield finding('unexcited', str(extra), what=f'gain {about}')
        elif extra.term in PASSIVE and '+' not in extra.of and value < -np.nan_to_num(deviation):
            yield finding('indefinite', str(extra), what=f'negative, {about}')


def _torques(block: BlockFit, masses: Array) -> Iterator[Finding]:
    """Yield torques by unknown gains that are many times those of the URDF; masses (n,) [kg]."""
    n = block.answer.unknowns.n_inertial
    rows = np.vstack([part.R[:, :n] for part in block.evidence.kinds.values()])
    new, old = (float(np.linalg.norm(rows @ x[:n])) for x in (block.answer.x, block.before))
    if (masses < SMALLEST_MASS).all() or not old > 0.0:
        return
    factor, what = new / old, 'torques of the identified parameters'
    for limit, level in (IMPOSSIBLE_SCALE, Level.ERROR), (GAIN_SCALE, Level.WARNING):
        if not 1.0 / limit <= factor <= limit:
            yield finding('scale', block.name, level=level, what=what, factor=factor)
            return


def _equations(block: BlockFit, known: Sequence[Figures]) -> Iterator[Finding]:
    """Yield equations whose measured side is off by a factor, or of which a fit leaves most."""
    limit = limit_of('scale')
    with_gain = {EFFORT + joint for joint in geared(block.answer.unknowns)}
    for one in known:
        gap = abs(one.scale) - limit if abs(one.scale) > limit else 1.0 / limit - one.scale
        if gap > SCALE_DEVIATIONS * one.deviation:
            yield finding('scale', block.name, what=one.kind, factor=one.scale)
        share = one.left / one.signal if one.signal > 0.0 else 0.0
        largest = max(other.signal for other in known if other.kind[:6] == one.kind[:6])
        if share > (CURRENT_LIMIT if one.kind in with_gain else limit_of('residual')) and (
            one.signal > WEAK_SIGNAL * largest
            or share > WEAK_LIMIT
            or one.left > OWN_FACTOR * one.own
        ):
            harmed = one.left > max(one.signal, HARM * one.before)
            level = Level.ERROR if harmed and one.signal > WEAK_SIGNAL * largest else None
            yield finding('residual', block.name, level=level, what=one.kind, share=share)


def _impossible(
    block: BlockFit, known: Sequence[Figures], unloaded: Collection[str], *, stated: bool
) -> Iterator[Finding]:
    """
    Yield findings of level ERROR: all equations of a unit are off, the logs are of another robot.

    unloaded: kinds that keep their sign when that of gravity turns; stated: the URDF has masses.
    """
    for kind, unit in UNITS.items():
        of_unit = [one for one in known if one.kind.startswith(kind) and one.signal > 0.0]
        what = f'all {kind} equations [{unit}]'
        scaled = [one for one in of_unit if np.isfinite(one.scale)]
        scales = np.array([one.scale for one in scaled])
        loaded = np.array([one.scale for one in scaled if one.kind not in unloaded])
        large = stated and (scales > IMPOSSIBLE_SCALE).all()
        small = (np.abs(scales) * IMPOSSIBLE_SCALE < 1.0).all()
        against = len(loaded) >= MIN_KINDS and (loaded < 0.0).all()
        # A wrong scale leaves residuals as well.
        if against or (len(scales) >= MIN_KINDS and ((scales < 0.0).all() or small or large)):
            factor = float(np.median(scales))
            yield finding('scale', block.name, level=Level.ERROR, what=what, factor=factor)
            continue
        signal, left, own, predicted = (
            hypot(*(getattr(one, name) for one in of_unit))
            for name in ('signal', 'left', 'own', 'predicted')
        )
        if (left > REFUSED_RESIDUAL * signal and left > REFUSED_OWN * own) or (
            left > FOREIGN_RESIDUAL * signal and predicted > FOREIGN_PREDICTION * signal
        ):
            share = left / signal
            yield finding('residual', block.name, level=Level.ERROR, what=what, share=share)


def contradictions(
    found: RobotFit, of_logs: Mapping[str, Sequence[Evidence]]
) -> Iterator[Finding]:
    """
    Yield fitted logs that contradict the others.

    Equations of one kind are fitted by any parameters, once for each log and once for all logs.
    """
    for block in found.blocks:
        gains = gain_columns(block.answer.unknowns)
        for kind in block.noise.deviations:
            logs = {
                log: one.kinds[kind]
                for log, evidence in of_logs.items()
                for one in evidence
                if one.block.submodel.name == block.name and one.kinds[kind].count
            }
            systems = [_sides(rows, gains) for rows in logs.values()]
            counts = [rows.count for rows in logs.values()]
            alone = [_rest(*one) for one in systems]
            free = sum(max(n - rank, 0.0) for n, (_, rank) in zip(counts, alone, strict=True))
            if len(systems) < 2 or not free > 0.0:
                continue
            noise = np.sqrt(sum(float(rest @ rest) for rest, _ in alone) / free)
            together, _ = _rest(*map(np.concatenate, zip(*systems, strict=True)))
            parts = np.split(together, len(systems))
            for log, (_, target), count, rest in zip(logs, systems, counts, parts, strict=True):
                left, signal = (float(np.linalg.norm(v) / np.sqrt(count)) for v in (rest, target))
                if left > LOG_SHARE * signal > 0.0 and left > LOG_FACTOR * noise > 0.0:
                    what, share = f'{block.name} {kind}', left / signal
                    yield finding(
                        'logs_disagree', log, what=what, share=share, factor=left / noise
                    )  # fmt: skip


def _sides(rows: Information, gains: Indices) -> tuple[Array, Array]:
    """Return all that may explain the measured side of equations of one kind, and that side."""
    system = rows.system
    own = gains[rows.R[:, gains].any(axis=0)]
    measured = own[0] if len(own) else rows.n  # equations of one kind hold one gain or none
    return np.delete(system, measured, axis=1), system[:, measured]


def _rest(columns: Array, target: Array) -> tuple[Array, int]:
    """Return the part of the target that no unknowns explain, and their rank."""
    space = RowSpace.of(columns)
    return target - space.left @ (space.left.T @ target), space.rank


def predictions(log: str, found: RobotFit, unseen: Sequence[Evidence]) -> Iterator[Finding]:
    """Yield equations of a log to predict of which much is left though the fit leaves little."""
    limit = limit_of('logs_disagree')
    for block in found.blocks:
        other = next(one for one in unseen if one.block.submodel.name == block.name)
        (signals, left), (fitted, own) = (
            (one.signals(block.answer.x), one.residuals(block.answer.x))
            for one in (other, block.evidence)
        )
        for kind, signal in signals.items():
            if signal > 0.0 and fitted[kind] > 0.0 and left[kind] > limit * own[kind]:
                share, usual = left[kind] / signal, own[kind] / fitted[kind]
                if (share > UNSEEN_SHARE and share > limit * usual) or (
                    share > UNSEEN_SMALL and share > UNSEEN_FACTOR * usual
                ):
                    what, factor = f'{block.name} {kind}', share / usual
                    yield finding('logs_disagree', log, what=what, share=share, factor=factor)
