# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Checks of identified parameters: against the URDF, between logs, and of what the data determine.

Findings of level ERROR are contradictions that no robot has: units, signs or columns are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
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
FOREIGN_RESIDUAL, FOREIGN_PREDICTION = 0.98, 0.5
"""Residual and prediction over the signal, from which the data are of another robot."""
MIN_MASS_SHARE, MIN_LINK_SHARE = 0.1, 0.02
"""Share of its URDF mass that a link keeps, if it has more than that share of all mass."""
PASSIVE = (Term.VISCOUS, Term.DRIVE_INERTIA)
"""Terms that cannot be negative."""
MAX_GAIN_DEVIATION, GAIN_SCALE, CURRENT_LIMIT = 0.3, 2.0, 0.3
"""Of gains: relative deviation, torques over those of the URDF, residual over a current."""
GAIN_RESIDUAL, GAIN_OWN = 0.2, 5.0
"""Share of all efforts that a fit with gains may leave, and times what each joint leaves alone."""
LOG_SHARE, LOG_FACTOR, LOG_FACTOR_OF_SEVERAL = 0.1, 5.0, 2.5
"""
Share of the signal, and times the residuals of logs fitted one by one, that one fit may leave of a
log. Runs of one real arm stay below 2.1, a wrist whose friction changes comes to 3.5, 10 s with an
unstated payload of a tenth of the arm's weight to 18. The last one: of two kinds or more.
"""
UNSEEN_SHARE, UNSEEN_SMALL, UNSEEN_FACTOR = 0.5, 0.15, 10.0
"""Shares of the signal of logs to predict, and the factor from which the smaller one counts."""


def fit_findings(found: RobotFit) -> Iterator[Finding]:
    """Yield what is doubtful of an identification."""
    for name in found.widened:
        yield finding(
            'inertia', name, level=Level.INFO,
            what='second moments raised to those of a small ball, for the prior to be consistent',
        )  # fmt: skip
    for name, why in found.undetermined.items():
        yield finding('unexcited', name, what=f'not identified: {why}')
    yield from massless_links(found)
    for block in found.blocks:
        yield from _links(block, found)
        yield from _extras(block)
        yield from _scales(block, found)
        yield from _residuals(block)
        yield from _solver(block)
    for name, parameters in found.payloads.items():
        margin = float(consistency_margin(parameters[None])[0])
        if not margin >= 0.0:
            yield finding('indefinite', name, what='inconsistent inertia', margin=margin)


def _solver(block: BlockFit) -> Iterator[Finding]:
    """Yield notes of the solver, and an answer that is not optimal."""
    answer = block.answer
    for note in answer.notes:
        yield finding('suboptimal', block.name, what=note)
    if answer.grade is not Grade.OPTIMAL:
        what = (
            f'{answer.method} ended {answer.grade.value} after {answer.iterations} steps, '
            f'optimality residual {answer.optimality:.1g}'
        )
        yield finding('suboptimal', block.name, what=what, optimality=answer.optimality)


def _links(block: BlockFit, found: RobotFit) -> Iterator[Finding]:
    """Yield links that no rigid body can be, or that lost most of their mass."""
    answer = block.answer
    before = found.prior[list(block.evidence.block.submodel.links), 0]
    after = answer.parameters[:, 0]
    light = (after < MIN_MASS_SHARE * before) & (before > MIN_LINK_SHARE * before.sum())
    for k, (link, margin) in enumerate(zip(answer.unknowns.links, answer.margins, strict=True)):
        if not margin > 0.0:
            yield finding('indefinite', link, what='inconsistent parameters', margin=float(margin))
        if light[k] and answer.consistent:
            what = f'mass {after[k]:.2g} kg, {before[k]:.3g} kg in the URDF'
            yield finding('indefinite', link, what=what, mass=after[k])


def massless_links(found: RobotFit) -> Iterator[Finding]:
    """Yield links without mass in the URDF that the data depend on."""
    for block in found.blocks:
        links = block.evidence.block.submodel.links
        for k, seen in zip(links, block.links_seen, strict=True):
            if seen and found.robot.parameters[k, 0] < SMALLEST_MASS:
                what = f'mass {found.prior[k, 0]:g} kg in the URDF: the prior keeps it'
                yield finding('inertia', found.robot.link_names[k], what=what)


def _extras(block: BlockFit) -> Iterator[Finding]:
    """Yield negative friction and drive inertia, and gains that the payload hardly determines."""
    unknowns, answer = block.answer.unknowns, block.answer
    for k, extra in enumerate(unknowns.extras, start=unknowns.n_inertial):
        value, deviation = float(answer.x[k]), float(answer.deviations[k])
        about = f'{value:.3g} +- {deviation:.2g}'
        figures: dict[str, Any] = {'value': value, 'deviation': deviation}
        if extra.term in PASSIVE and '+' not in extra.of and value < -np.nan_to_num(deviation):
            yield finding('indefinite', str(extra), what=f'negative, {about}', **figures)
        if extra.term is Term.DRIVE_GAIN and (
            value <= 0.0 or deviation > MAX_GAIN_DEVIATION * value
        ):
            yield finding('unexcited', unknowns.names[k], what=f'gain {about}', **figures)


def _scales(block: BlockFit, found: RobotFit) -> Iterator[Finding]:
    """Yield equations whose measured side is many times the predicted one, or against it."""
    if len(gain_columns(block.answer.unknowns)):
        size, what = torque_ratio(found, block), 'torques of the identified parameters'
        if not 1.0 / GAIN_SCALE <= size <= GAIN_SCALE:
            yield finding('scale', block.name, what=what, factor=size)
        return
    limit = limit_of('scale')
    for kind in block.kinds:
        value, deviation = known_scale(block, kind)
        size = abs(value)
        gap = size - limit if size > limit else 1.0 / limit - value
        if not 1.0 / limit <= value <= limit and gap > SCALE_DEVIATIONS * deviation:
            yield finding('scale', block.name, what=kind, factor=value)


def known_scale(block: BlockFit, kind: str) -> tuple[float, float]:
    """Return the factor of the prediction that fits best and its deviation, NaN: not known."""
    rows, n = block.evidence.kinds[kind], block.answer.unknowns.n_inertial
    others = rows.R[:, n:]
    size = np.linalg.norm(others, axis=0)
    Q = np.linalg.qr(others[:, size > 0] / size[size > 0])[0]
    predicted, rest = (v - Q @ (Q.T @ v) for v in (rows.R[:, :n] @ block.before[:n], rows.rho))
    length = float(predicted @ predicted)
    if not rows.count or not length > 0.0:
        return np.nan, np.nan
    value = float(predicted @ rest) / length
    left = float(np.sum((rest - value * predicted) ** 2)) + rows.energy
    total = float(rest @ rest) + rows.energy
    explained = float(np.sqrt(max(1.0 - left / total, 0.0))) if total > 0.0 else 0.0
    deviation = float(np.sqrt(left / rows.count / length))
    known = explained >= MIN_EXPLAINED and deviation <= MAX_DEVIATION * abs(value)
    return (value, deviation) if known else (np.nan, np.nan)


def _residuals(block: BlockFit) -> Iterator[Finding]:
    """Yield equations of which a fit leaves most."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    with_gain = {EFFORT + joint for joint in geared(block.answer.unknowns)}
    for kind in block.kinds:
        share = left[kind] / signals[kind] if signals[kind] > 0.0 else 0.0
        largest = max(value for name, value in signals.items() if _unit(name) == _unit(kind))
        if share > (CURRENT_LIMIT if kind in with_gain else limit_of('residual')) and (
            signals[kind] > WEAK_SIGNAL * largest
            or share > WEAK_LIMIT
            or left[kind] > OWN_FACTOR * own_residual(block, kind)
        ):
            yield finding('residual', block.name, what=kind, share=share)


def own_residual(block: BlockFit, kind: str) -> float:
    """Return the residual of equations that are fitted by themselves."""
    rows = block.evidence.kinds[kind]
    free = rows.count - len(RowSpace.of(rows.R).strengths)
    if len(gain_columns(block.answer.unknowns)) or not free > 0.5 * rows.count:
        return np.inf
    return float(np.sqrt(rows.energy / free))


def _unit(kind: str) -> str:
    """Return force_, moment or effort."""
    return kind[: len('effort')]


def impossible(found: RobotFit) -> Iterator[Finding]:
    """Yield findings of level ERROR: the logs are not of the robot of the URDF."""
    for block in found.blocks:
        if len(gain_columns(block.answer.unknowns)):
            yield from _impossible_gains(block, found)
        else:
            for name in dict.fromkeys(map(_unit, block.kinds)):
                evidence, signals = block.evidence, block.evidence.signals(block.answer.x)
                kinds = [
                    kind
                    for kind in block.kinds
                    if _unit(kind) == name and evidence.kinds[kind].count and signals[kind]
                ]
                what = f'all {name.strip("_")} equations'
                yield from _impossible_residual(block, kinds, what)
                yield from _impossible_scale(block, found, kinds, what)


def _impossible_residual(block: BlockFit, kinds: Sequence[str], what: str) -> Iterator[Finding]:
    """Yield all equations of a unit that no parameters explain."""
    n, evidence = block.answer.unknowns.n_inertial, block.evidence
    signals, left = evidence.signals(block.answer.x), evidence.residuals(block.answer.x)
    signal, rest, own, prediction = np.linalg.norm(
        [
            [
                signals[kind],
                left[kind],
                own_residual(block, kind),
                np.linalg.norm(evidence.kinds[kind].R[:, :n] @ block.before[:n])
                / np.sqrt(evidence.kinds[kind].count),
            ]
            for kind in kinds
        ]
        or [[0.0] * 4],
        axis=0,
    ).tolist()
    contradicts = rest > REFUSED_RESIDUAL * signal and rest > REFUSED_OWN * own
    foreign = rest > FOREIGN_RESIDUAL * signal and prediction > FOREIGN_PREDICTION * signal
    if contradicts or foreign:
        yield finding('residual', block.name, level=Level.ERROR, what=what, share=rest / signal)


def _impossible_scale(
    block: BlockFit, found: RobotFit, kinds: Sequence[str], what: str
) -> Iterator[Finding]:
    """Yield all equations of a unit that are against the prediction, or far from it."""
    scales = {kind: known_scale(block, kind)[0] for kind in kinds}
    scales = {kind: value for kind, value in scales.items() if np.isfinite(value)}
    # With the sign of gravity turned, joints that it does not load keep theirs.
    unloaded = {EFFORT + joint for joint in joints_without_gravity(found.robot)}
    loaded = np.array([value for kind, value in scales.items() if kind not in unloaded])
    known = np.array(list(scales.values()))
    masses = found.robot.parameters[list(block.evidence.block.submodel.links), 0]
    # Without masses a URDF predicts nothing.
    stated = (masses[block.links_seen] >= SMALLEST_MASS).all()
    large = stated and (known > IMPOSSIBLE_SCALE).all()
    small = (np.abs(known) * IMPOSSIBLE_SCALE < 1.0).all()
    against = len(loaded) >= MIN_KINDS and (loaded < 0.0).all()
    if against or (len(known) >= MIN_KINDS and ((known < 0.0).all() or small or large)):
        factor = float(np.median(known))
        yield finding('scale', block.name, level=Level.ERROR, what=what, factor=factor)


def _impossible_gains(block: BlockFit, found: RobotFit) -> Iterator[Finding]:
    """Yield gains that no drive has: wrong payload mass, logs or signs."""
    columns, answer, evidence = gain_columns(block.answer.unknowns), block.answer, block.evidence
    for k in columns[answer.x[columns] < -SCALE_DEVIATIONS * answer.deviations[columns]]:
        name, value = answer.unknowns.names[k], float(answer.x[k])
        what = f'negative gain {value:.4g}'
        yield finding('indefinite', name, level=Level.ERROR, what=what, value=value)
    # Of all efforts: signal, residual, and residual joint by joint.
    signals, left = evidence.signals(answer.x), evidence.residuals(answer.x)
    squares = np.zeros(3)
    for kind, rows in evidence.kinds.items():
        if rows.count and rows.R[:, columns].any() and signals[kind] > 0.0:
            one = _system(rows, columns)
            share = np.linalg.norm(_rest(one.columns, one.target)[0]) / np.linalg.norm(one.target)
            squares += np.square([signals[kind], left[kind], float(share) * signals[kind]])
    signal, rest, own = np.sqrt(squares).tolist()
    if rest > GAIN_RESIDUAL * signal and rest > GAIN_OWN * own:
        what, share = 'all effort equations', rest / signal
        yield finding('residual', block.name, level=Level.ERROR, what=what, share=share)
    size, what = torque_ratio(found, block), 'torques of the identified parameters'
    if not 1.0 / IMPOSSIBLE_SCALE <= size <= IMPOSSIBLE_SCALE:
        yield finding('scale', block.name, level=Level.ERROR, what=what, factor=size)


def torque_ratio(found: RobotFit, block: BlockFit) -> float:
    """Return the torques of the identified parameters over those of the URDF."""
    masses = found.robot.parameters[list(block.evidence.block.submodel.links), 0]
    if not (masses >= SMALLEST_MASS).any():
        return 1.0
    n = block.answer.unknowns.n_inertial
    rows = np.vstack([part.R[:, :n] for part in block.evidence.kinds.values()])
    new, old = (float(np.linalg.norm(rows @ x[:n])) for x in (block.answer.x, block.before))
    return new / old if old > 0.0 else 1.0


class _System(NamedTuple):
    """Equations of one kind of one log, up to an orthogonal transform."""

    columns: Array
    target: Array
    weight: float


def contradictions(
    found: RobotFit, of_logs: Mapping[str, Sequence[Evidence]]
) -> Iterator[Finding]:
    """
    Yield fitted logs that contradict the others.

    Equations of one kind are fitted by any parameters, once for each log and once for all logs.
    """
    for block in found.blocks:
        gains = gain_columns(block.answer.unknowns)
        logs = {
            log: next(one for one in evidence if one.block.submodel.name == block.name)
            for log, evidence in of_logs.items()
        }
        odd = [
            (factor, log, kind, share)
            for kind in block.kinds
            for log, share, factor in _compared(
                {log: _system(one.kinds[kind], gains) for log, one in logs.items()}
            )
            if share > LOG_SHARE and factor > LOG_FACTOR_OF_SEVERAL
        ]
        several = len({kind for _, _, kind, _ in odd}) > 1
        for factor, log, kind, share in sorted(odd, key=lambda one: -one[0]):
            if several or factor > LOG_FACTOR:
                what = f'{block.name} {kind}'
                yield finding('logs_disagree', log, what=what, share=share, factor=factor)


def _compared(logs: Mapping[str, _System]) -> Iterator[tuple[str, float, float]]:
    """Yield the residual of one fit for all logs, over the signal and over fits of each."""
    logs = {log: one for log, one in logs.items() if one.weight}
    systems = list(logs.values())
    alone = [_rest(one.columns, one.target) for one in systems]
    free = [max(one.weight - rank, 0.0) for one, (_, rank) in zip(systems, alone, strict=True)]
    if len(systems) < 2 or not sum(free) > 0.0:
        return
    noise = np.sqrt(sum(float(rest @ rest) for rest, _ in alone) / sum(free))
    together, _ = _rest(
        np.vstack([one.columns for one in systems]),
        np.concatenate([one.target for one in systems]),
    )
    ends = np.cumsum([len(one.target) for one in systems])[:-1]
    for log, one, rest in zip(logs, systems, np.split(together, ends), strict=True):
        left, signal = (np.linalg.norm(v) / np.sqrt(one.weight) for v in (rest, one.target))
        if signal > 0.0 and noise > 0.0:
            yield log, float(left / signal), float(left / noise)


def _system(rows: Information, gains: NDArray[np.intp]) -> _System:
    """Return equations as the measured side and all that may explain it."""
    n = rows.n
    system = np.zeros((n + 1, n + 1))
    system[:n, :n], system[:n, n], system[n, n] = rows.R, rows.rho, np.sqrt(rows.energy)
    own = gains[np.linalg.norm(rows.R[:, gains], axis=0) > 0.0]
    measured = own[0] if len(own) else n  # equations of one kind hold one gain or none
    return _System(np.delete(system, measured, axis=1), system[:, measured], rows.count)


def _rest(columns: Array, target: Array) -> tuple[Array, int]:
    """Return the part of the target that no unknowns explain, and their rank."""
    space = RowSpace.of(columns)
    return target - space.left @ (space.left.T @ target), len(space.strengths)


def predictions(log: str, found: RobotFit, unseen: Sequence[Evidence]) -> Iterator[Finding]:
    """Yield equations of a log to predict of which much is left though the fit leaves little."""
    of_block = {one.block.submodel.name: one for one in unseen}
    limit = limit_of('logs_disagree')
    for block in found.blocks:
        other, x = of_block[block.name], block.answer.x
        signals, left = other.signals(x), other.residuals(x)
        fitted, own = block.evidence.signals(x), block.evidence.residuals(x)
        for kind, signal in signals.items():
            if not (signal > 0.0 and fitted[kind] > 0.0 and left[kind] > limit * own[kind]):
                continue
            share, usual = left[kind] / signal, own[kind] / fitted[kind]
            worse = share > UNSEEN_SHARE and share > limit * usual
            if worse or (share > UNSEEN_SMALL and share > UNSEEN_FACTOR * usual):
                what, factor = f'{block.name} {kind}', share / usual
                yield finding('logs_disagree', log, what=what, share=share, factor=factor)
