# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods beside each other on logs of real arms, which are not part of the package.

Each robot is fitted on one part of its logs and predicted on others, cut where the filter cannot
carry anything across. All methods solve the same rows; errors are in the unit of the rows, and
over the measured efforts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.benchmark import figaroh
from inertial_estimation.benchmark.timing import Progress
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.identification.fit import fit, fitted_extras
from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information, weighted_sum
from inertial_estimation.identification.information.reweighting import noise_levels
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.identification.rows.friction_scales import friction_scales
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import Fill, solve_least_squares
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.logs.identify import reduce_logs
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log_reader import LogReader, open_logs
from inertial_estimation.logs.recording import no_progress
from inertial_estimation.logs.stretch import Stretch
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.table import Table

Array = NDArray[np.float64]

PRIOR, OLS, WLS = 'description, friction refitted', 'least squares', 'weighted least squares'
LMI, LMI_EUCLIDEAN = 'LMI, no prior', 'LMI, Euclidean prior'
LMI_PULLBACK, ENTROPIC = 'LMI, pullback prior', 'entropic prior'
DEFAULT, FIGAROH = 'identify, as it is', 'FIGAROH, consistent fit'
STARTS = 7
"""Places in a log where little data are taken from."""


_INSTALLED = Path('share', 'inertial_estimation', 'config')
CONFIGS = next(
    (
        folder
        for folder in (Path(__file__).parents[2] / 'config', Path(sys.prefix) / _INSTALLED)
        if (folder / 'identify_ur10e.yaml').exists()
    ),
    _INSTALLED,
)
"""Folder of the files that say how logs become rows."""


@dataclass(frozen=True)
class RealRobot:
    """A robot, its logs and how they are split."""

    name: str
    config: str
    """File of the folder ``config``."""
    urdf: str
    """In the folder of the logs; likewise below."""
    fitted: tuple[str, ...]
    predicted: tuple[str, ...]
    without: str = ''
    """Link of the description that was not on the robot, with all that it carries."""
    short: tuple[float, ...] = ()
    """Seconds of the first fitted log for fits to little data."""


ROBOTS = (
    RealRobot(
        'Panda',
        'identify_panda.yaml',
        'models/panda_wrist_ft.urdf',
        ('panda_excitation/log.npz@0:11',),
        ('panda_excitation/log.npz@11:',),
        without='panda_hand',
    ),
    RealRobot(
        'UR10e',
        'identify_ur10e.yaml',
        'ur10e/ur10e.urdf',
        ('ur10e/fourier_30s_12h.npz@6.35:35.1',),
        ('ur10e/fourier_40s_12h.npz@5:44.6', 'ur10e/fourier_20s_8h.npz@3.2:23.1'),
        short=(1.2, 2.4, 4.5, 8.9),
    ),
    RealRobot(
        'TX40',
        'identify_tx40.yaml',
        'staubli_tx40/tx40.urdf',
        ('staubli_tx40/train.npz@0:4',),
        ('staubli_tx40/train.npz@4:',),
        short=(0.8, 1.6),
    ),
    RealRobot(
        'TIAGo',
        'identify_tiago.yaml',
        'tiago/tiago.urdf',
        ('tiago/train.npz@0:26',),
        ('tiago/train.npz@26:',),
        short=(5.2,),
    ),
)


@dataclass(frozen=True, eq=False)
class Scored:
    """One method on one robot."""

    method: str
    fitted: dict[str, float]
    """Root mean square residual of each joint [N, Nm]."""
    predicted: dict[str, float]
    total_fitted: float
    """Root of all squares of residuals over those of efforts."""
    total_predicted: float
    mass: float
    """Sum of all links [kg]."""
    margin: float
    """Least eigenvalue of a pseudo-inertia."""
    rank: int
    """Combinations of unknowns that the rows determine; 0 if the method does not say."""
    time: float
    """Of the solver [s]."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All methods on one robot."""

    robot: RealRobot
    rank: int
    rows: int
    signals: dict[str, float]
    """Root mean square of the predicted efforts of each joint [N, Nm]."""
    scores: tuple[Scored, ...]
    short: dict[float, dict[str, Array]]
    """By seconds and method: held-out errors over the efforts, one for each start."""
    left_out: str = ''
    """Why FIGAROH is missing; empty: it is not."""


class _Arm:
    """A robot with what its logs say."""

    def __init__(self, robot: RealRobot, data: Path, configs: Path) -> None:
        self.robot = robot
        self.settings = IdentifySettings.from_yaml(configs / robot.config)
        urdf = (data / robot.urdf).read_text(encoding='utf-8')
        urdf = _without(urdf, robot.without) if robot.without else urdf
        self._data = data
        first = self.stretch(robot.fitted[0])
        self.reader: LogReader = open_logs(urdf, self.settings, (), first, no_progress)
        self._builder = RowBuilder(self.reader.robot, self.settings.choice(self.reader.robot))
        (self.block,) = self._builder.blocks
        links = list(self.block.submodel.links)
        self.prior = widened(self.block.unknowns.links, self.reader.robot.parameters[links])[0]

    def stretch(self, said: str) -> Stretch:
        """Return a part of a log of the data."""
        return Stretch.parse(self._data / said)

    def evidence(self, stretches: Sequence[Stretch]) -> Evidence:
        """Return what logs say."""
        (found,) = reduce_logs(stretches, self.reader, self._builder, self.settings).evidence
        return found

    def methods(self, seen: Evidence, noise: Mapping[str, float]) -> Methods:
        """Return what gives unknowns and rank, by method; the noise of each kind is known."""
        unknowns, scales = self.block.unknowns, friction_scales(seen)
        kinds = {kind: rows for kind, rows in seen.kinds.items() if rows.count}
        rows = weighted_sum(kinds.values(), [1.0 / noise[kind] for kind in kinds])
        weighted = Problem.of(unknowns, rows, self.prior, extra_scales=scales)
        plain = Problem.of(unknowns, weighted_sum(kinds.values(), [1.0] * len(kinds)), self.prior)

        def squares(problem: Problem) -> Callable[[], Found]:
            return lambda: _found(solve_least_squares(problem, fill=Fill.MINIMUM_NORM))

        def cones(prior: PriorTerm) -> Callable[[], Found]:
            return lambda: _found(solve_semidefinite(weighted, prior=prior))

        return {
            PRIOR: lambda: Found(fitted_extras(weighted), 0, 0.0),
            OLS: squares(plain),
            WLS: squares(weighted),
            LMI: cones(PriorTerm.NONE),
            LMI_EUCLIDEAN: cones(PriorTerm.EUCLIDEAN),
            LMI_PULLBACK: cones(PriorTerm.PULLBACK),
            ENTROPIC: lambda: _found(solve_entropic(weighted)),
            DEFAULT: lambda: _found(fit(self.reader.robot, [seen]).blocks[0].answer),
        }

    def figaroh(self, rows: Information, python: str) -> Found:
        """Return what FIGAROH finds."""
        answer = figaroh.solve(Problem.of(self.block.unknowns, rows, self.prior), python)
        return Found(answer.x, 0, answer.time)


def data_files(data: Path) -> list[Path]:
    """
    Return what is read of the folder of the logs, and how logs become rows.

    Parameters
    ----------
    data : Path
        Folder of the logs.

    Returns
    -------
    list of Path
        Some of which may not be there.

    """
    found = []
    for robot in ROBOTS:
        logs = [Stretch.parse(data / said).path for said in (*robot.fitted, *robot.predicted)]
        found += [CONFIGS / robot.config, data / robot.urdf, *logs]
    return found


def compare_all(
    data: Path, figaroh_python: str | None = None, progress: Progress | None = None
) -> tuple[Comparison, ...]:
    """
    Compare the methods on all robots whose logs are there.

    Parameters
    ----------
    data : Path
        Folder of the logs.
    figaroh_python : str, optional
        An interpreter that has FIGAROH. Default: without it.
    progress : callable, optional
        Is told the share that is done, from 0 to 1.

    Returns
    -------
    tuple of Comparison

    Raises
    ------
    ConfigError
        If no log is there.
    InertialEstimationError
        If a log is not what the files say.

    """
    there = [robot for robot in ROBOTS if (data / robot.urdf).exists()]
    if not there:
        raise ConfigError(f"'{data}' holds none of {', '.join(robot.urdf for robot in ROBOTS)}")
    found = []
    for done, robot in enumerate(there):
        if progress is not None:
            progress(done / len(there))
        found.append(compare(robot, data, CONFIGS, figaroh_python))
    return tuple(found)


def tables(found: Sequence[Comparison]) -> list[Table]:
    """
    Return one table for each robot, and one of little data.

    Parameters
    ----------
    found : sequence of Comparison
        Of robots.

    Returns
    -------
    list of Table

    """
    spans = [(one, seconds) for one in found for seconds in one.short]
    methods = dict.fromkeys(method for one, seconds in spans for method in one.short[seconds])
    rows = tuple(
        (method, *(_median_and_worst(one.short[seconds][method]) for one, seconds in spans))
        for method in methods
    )
    columns = ('method', *(f'{one.robot.name} {seconds:g} s' for one, seconds in spans))
    title = f'Held-out error after little data, median and worst of {STARTS} starts [%]'
    return [*map(_table, found), Table(title, columns, rows)]


def notes(found: Sequence[Comparison]) -> list[str]:
    """
    Return where FIGAROH is missing, and why.

    Parameters
    ----------
    found : sequence of Comparison
        Of robots.

    Returns
    -------
    list of str

    """
    return [f'{one.robot.name} without FIGAROH: {one.left_out}' for one in found if one.left_out]


def as_dict(found: Sequence[Comparison]) -> dict[str, Any]:
    """
    Return all figures for a machine.

    Parameters
    ----------
    found : sequence of Comparison
        Of robots.

    Returns
    -------
    dict
        By robot; errors over efforts are shares, those of joints in N or Nm.

    """
    return {
        one.robot.name: {
            'fitted': one.robot.fitted,
            'predicted': one.robot.predicted,
            'rank': one.rank,
            'rows': one.rows,
            'signals': one.signals,
            'methods': {score.method: vars(score) for score in one.scores},
            'little_data': {
                f'{seconds:g}': {method: values.tolist() for method, values in errors.items()}
                for seconds, errors in one.short.items()
            },
            'figaroh': one.left_out or 'ran',
        }
        for one in found
    }


def _table(found: Comparison) -> Table:
    """Return all methods on one robot."""
    robot = found.robot
    joints = [str(k + 1) for k in range(len(found.signals))]
    rows = [('measured', '', '', *(f'{v:.3g}' for v in found.signals.values()), '', '', '')]
    for score in found.scores:
        totals = (100 * score.total_fitted, 100 * score.total_predicted)
        rows.append(
            (
                score.method,
                *(f'{total:.2f}' for total in totals),
                *(f'{score.predicted[kind]:.3g}' for kind in found.signals),
                f'{score.mass:.4g}',
                f'{score.margin:.1g}',
                f'{1e3 * score.time:.1f}',
            )
        )
    title = (
        f'{robot.name}: {found.rows} rows, {found.rank} combinations determined; '
        f'{", ".join(robot.fitted)} fitted, {", ".join(robot.predicted)} predicted; '
        'joints 1 to n: predicted rms [N, Nm]'
    )
    columns = ('method', 'fit [%]', 'predicted [%]', *joints, 'mass [kg]', 'margin', '[ms]')
    return Table(title, columns, tuple(rows))


def _median_and_worst(errors: Array) -> str:
    """Return errors in percent."""
    return f'{100 * np.median(errors):.1f} ({100 * np.max(errors):.1f})'


def compare(
    robot: RealRobot, data: Path, configs: Path, figaroh_python: str | None = None
) -> Comparison:
    """
    Compare the methods on one robot.

    Parameters
    ----------
    robot : RealRobot
        Which.
    data : Path
        Folder of the logs.
    configs : Path
        Folder of the files that say how they become rows.
    figaroh_python : str, optional
        An interpreter that has FIGAROH. Default: without it.

    Returns
    -------
    Comparison

    Raises
    ------
    InertialEstimationError
        If a log is not what the files say.

    """
    arm = _Arm(robot, data, configs)
    seen = arm.evidence([arm.stretch(said) for said in robot.fitted])
    unseen = arm.evidence([arm.stretch(said) for said in robot.predicted])
    noise = noise_levels(seen.kinds)
    scores, missing = [], ''
    for method, solve in arm.methods(seen, noise.deviations).items():
        found = solve()
        scores.append(_scored(method, found, seen, unseen))
    try:
        if figaroh_python is None:
            raise ConfigError('no interpreter that has it was named')
        found = arm.figaroh(noise.information, figaroh_python)
        scores.append(_scored(FIGAROH, found, seen, unseen))
    except InertialEstimationError as error:
        missing = str(error)
    short = {seconds: _short(arm, seconds, noise.deviations, unseen) for seconds in robot.short}
    rank = max(score.rank for score in scores)
    rows = sum(seen.rows.values())
    return Comparison(robot, rank, rows, unseen.signals(), tuple(scores), short, missing)


class Found(NamedTuple):
    """What a method gives."""

    x: Array
    rank: int
    time: float
    """[s]."""


Methods = dict[str, Callable[[], Found]]


def _found(answer: Identification) -> Found:
    """Return what is compared of an identification."""
    return Found(answer.x, answer.rank, answer.solve_time)


def _scored(method: str, found: Found, seen: Evidence, unseen: Evidence) -> Scored:
    """Return how well unknowns do."""
    parameters = seen.block.unknowns.split(found.x)[0]
    return Scored(
        method,
        seen.residuals(found.x),
        unseen.residuals(found.x),
        _total(seen, found.x),
        _total(unseen, found.x),
        float(parameters[:, 0].sum()),
        float(consistency_margin(parameters).min()),
        found.rank,
        found.time,
    )


def _total(evidence: Evidence, x: Array) -> float:
    """Return residuals over efforts, of all rows together."""
    zero = np.zeros_like(x)
    parts = [part for part in evidence.kinds.values() if part.count]
    squares = [sum(part.squared_residual(at) for part in parts) for at in (x, zero)]
    return float(np.sqrt(squares[0] / squares[1]))


def _short(
    arm: _Arm, seconds: float, noise: Mapping[str, float], unseen: Evidence
) -> dict[str, Array]:
    """Return held-out errors of fits to rows of some seconds, from several starts."""
    first = arm.stretch(arm.robot.fitted[0])
    # What the filter takes at the edges is recorded beyond these seconds.
    edge = arm.settings.preparation.edges
    errors: dict[str, list[float]] = {}
    for start in np.linspace(first.start, first.stop - seconds - 2 * edge, STARTS):
        part = Stretch(first.path, start, start + seconds + 2 * edge)
        for method, solve in arm.methods(arm.evidence([part]), noise).items():
            errors.setdefault(method, []).append(_total(unseen, solve().x))
    return {method: np.array(values) for method, values in errors.items()}


def _without(urdf: str, link: str) -> str:
    """Return a description without a link and all that it carries."""
    root = ElementTree.fromstring(urdf)
    gone = {link}
    joints = root.findall('joint')
    for _ in joints:
        for joint in joints:
            ends = [joint.find(end) for end in ('parent', 'child')]
            parent, child = ('' if end is None else end.get('link', '') for end in ends)
            if parent in gone:
                gone.add(child)
    for element in list(root):
        # Links by their names; joints, sensors and the rest by the links that they name.
        named = [element.get('name')] if element.tag == 'link' else [element.get('reference')]
        named += [end.get('link') for tag in ('parent', 'child') for end in element.findall(tag)]
        if not gone.isdisjoint(named):
            root.remove(element)
    return ElementTree.tostring(root, encoding='unicode')
