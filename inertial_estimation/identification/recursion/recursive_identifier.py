# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A robot that is identified while it works: stretches of samples in, bodies and offsets out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.information.determined import in_words
from inertial_estimation.identification.information.elimination import wandered
from inertial_estimation.identification.information.evidence import Evidence, gather
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.excitation import Excitation, excitation
from inertial_estimation.identification.recursion.first_motion import FirstMotion
from inertial_estimation.identification.recursion.joint_refit import JointRefit, joint_refit
from inertial_estimation.identification.recursion.knowledge import Knowledge, in_units_of_noise
from inertial_estimation.identification.recursion.offsets_in_use import offsets_in_use
from inertial_estimation.identification.recursion.parameter_roots import parameter_roots
from inertial_estimation.identification.recursion.payload import Payload, PayloadFit
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.watch import Change, Stretch, Verdict, Watch
from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch, SensorState

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SECOND_NS = 1e9
LONGEST_ALONE = 1.0
"""Time that a sample stands for that comes alone, if the one before is as long ago [s]."""
WORSE = 2.0
"""
What was found may leave of new rows so many times what the description does [rms], in the middle
of the newest stretches: what moves for the first time tells offsets anew, and is soon over.
"""
NEWEST = 5
"""Stretches of which that is asked."""


@dataclass(frozen=True)
class Withheld:
    """Rows of a submodel that are left out as they do not agree with what is known."""

    kind: str
    """The kind of row that is off by most times its noise, as in `Evidence.kinds`."""
    left: float
    """What is known leaves of it so much [rms; N, Nm]."""
    noise: float
    """And usually so much [N, Nm]."""
    seconds: float
    """For how long [s]."""


@dataclass(frozen=True, eq=False)
class Refit:
    """What is known of a robot at one time."""

    stamp_ns: int
    """Of the last sample that went in."""
    parameters: Array
    """Inertial parameters of all links, shape (n_links, 10); strictly consistent."""
    offsets: Mapping[str, Array]
    """
    Of FT sensors, shape (6,) each, [force; torque], to be subtracted beside these parameters
    [N, Nm].
    """
    refitted: tuple[str, ...]
    """Submodels whose links are what rows tell; those of the others are the prior."""
    excitation: Mapping[str, Excitation]
    """What the rows of each submodel tell."""
    reasons: Mapping[str, str]
    """Why a submodel was not refitted, by its name."""
    before: Mapping[str, Mapping[str, float]]
    """
    Root mean square of what the description, with all but its bodies fitted, left of the newest
    rows before these were worked in, by submodel and kind [N, Nm].
    """
    after: Mapping[str, Mapping[str, float]]
    """The same of what had been found then."""
    least_margin: float
    """Smallest eigenvalue of a link's pseudo-inertia."""
    parameter_roots: Array
    """
    How sure the parameters are, shape (n_links, 10, r): the rows of the links of a submodel are a
    root F of the covariance F F' of their parameters. Zero for submodels that were not refitted.
    """


class RecursiveIdentifier:
    """
    Rows of submodels in free air come in, and bodies are refitted when asked for.

    Parameters
    ----------
    robot : Robot
        Whose parameters are the prior.
    settings : RecursionSettings
        How it remembers.
    calibration : FtCalibration, optional
        Of the FT sensors; offsets that are found come on top. Default: readings are wrenches.

    Attributes
    ----------
    known : tuple of Knowledge
        What is known of each submodel.
    stamp_ns : int
        Of the last sample that went in; 0: none did.
    prior : ndarray, shape (n_links, 10)
        The robot's parameters, points and sticks widened.
    widened : tuple of str
        Links whose prior had to be.

    Raises
    ------
    ModelError
        If the prior of a link is impossible.
    ConfigError, NameNotFound
        If the rows that are asked for cannot be built, or a link that is to carry payloads does
        not exist or is not the only one of its submodel.

    """

    def __init__(
        self, robot: Robot, settings: RecursionSettings, calibration: FtCalibration | None = None
    ) -> None:
        self.robot, self.settings, self.calibration = robot, settings, calibration
        self.builder = RowBuilder(robot, settings.rows, calibration)
        self.prior, self.widened = widened(robot.link_names, robot.parameters)
        _check_carriers(robot, settings.payload_links)
        for joint in settings.effort_gains:
            if joint not in robot.joint_names:
                raise NameNotFound('joint', joint, robot.joint_names, 'a gain of efforts is given')
        gains = [settings.effort_gains.get(joint, 1.0) for joint in robot.joint_names]
        self._gains = np.array(gains, dtype=np.float64)
        self.reset()

    @property
    def found(self) -> dict[str, Array]:
        """All unknowns of the submodels that were refitted last, shape (n_unknowns,) each."""
        return {name: x for name, (_, x) in self._found.items()}

    def bodies(self) -> dict[str, Array]:
        """
        Return the bodies that were fitted last, told or not.

        Returns
        -------
        dict of str to ndarray, shape (n_links, 10)
            Inertial parameters of the links of each submodel that has rows.

        """
        sizes = {
            one.block.submodel.name: one.block.unknowns.n_inertial for one in self.known
        }  # fmt: skip
        return {name: x[: sizes[name]].reshape(-1, 10) for name, x in self.found.items()}

    def reset(self) -> None:
        """Forget all rows."""
        self.known = tuple(
            Knowledge(block, self.prior[list(block.submodel.links)], self.settings)
            for block in self.builder.blocks
        )
        self.stamp_ns = 0
        self._assumed = np.zeros(0, dtype=np.intp)
        self._watches: dict[str, Watch] = {}
        self._first_motions = {
            one.block.submodel.name: FirstMotion(one, self.settings) for one in self.known
        }
        self._start: dict[str, Array] = {}
        self._found: dict[str, tuple[Array, Array]] = {}
        self._payloads: dict[str, PayloadFit] = {}
        self._errors: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
        self._worse: dict[str, deque[float]] = {}
        self._withheld: dict[str, Withheld] = {}

    def add(
        self,
        samples: SampleBatch,
        *,
        free: Mask | None = None,
        external: Mapping[str, Array] | None = None,
    ) -> list[tuple[str, Change]]:
        """
        Work a stretch of samples in.

        Parameters
        ----------
        samples : SampleBatch
            In order, say of one second. What rests on a joint whose position is assumed gives no
            rows.
        free, external : optional
            As for `RowBuilder.rows`.

        Returns
        -------
        list of tuple of str and Change
            What has just happened to which submodel.

        """
        if not len(samples):
            return []
        first, last = int(samples.stamp_ns[0]), int(samples.stamp_ns[-1])
        # Nothing was before the first stretch, or time was set back.
        since = self.stamp_ns if 0 < self.stamp_ns < first else first
        elapsed, self.stamp_ns = (last - since) / SECOND_NS, last
        # Of a time without samples offsets wander, rows do not fade.
        span = min(elapsed, _spanned(samples))
        changes = []
        samples = self._without_assumed(samples)
        if samples.efforts is not None and self.settings.effort_gains:
            samples = replace(samples, efforts=samples.efforts * self._gains)
        evidence = gather(self.builder, samples, external=external, free=free)
        for one, new in zip(self.known, evidence, strict=True):
            one.wait(elapsed)
            if one.block.submodel.name in self._payloads:
                steps = one.walks(elapsed)
                self._payloads[one.block.submodel.name].wait(one.offsets, steps)
            count = max((part.count for part in new.kinds.values()), default=0.0)
            seconds = span * count / len(samples)
            if count and one.information is None:
                one.warm_up(new, seconds)
            elif count and (change := self._take(one, new, seconds)) is not None:
                changes.append((one.block.submodel.name, change))
        for name, change in changes:
            if change is Change.OFFSET:
                self._let_go(name, evidence)
        return changes

    def _without_assumed(self, samples: SampleBatch) -> SampleBatch:
        """Return samples without the positions that nobody has measured."""
        if samples.joint_states is None:
            return samples
        assumed = samples.joint_states == SensorState.ASSUMED
        self._assumed = np.flatnonzero(assumed.any(axis=0))
        if not len(self._assumed):
            return samples
        return replace(samples, positions=np.where(assumed, np.nan, samples.positions))

    def _take(self, one: Knowledge, new: Evidence, seconds: float) -> Change | None:
        """Work rows in, unless they are suspect; return what has changed."""
        rows, name = in_units_of_noise(new, one.noise), one.block.submodel.name
        if rows is None:
            one.hear(new)
            self._follow(one, new, seconds)
            return None
        before = one.information
        one.hear(new)
        verdict = self._judged(one, Stretch(rows, seconds))
        self._note_withheld(one, new, seconds)
        if self._begun(one, new, seconds):
            return Change.BEGUN
        if verdict.change is not None:
            self._worse.pop(name, None)
        if verdict.change is Change.BODY and before is not None:
            self._payloads[name] = self._payload(one, before)
        for stretch in verdict.accepted:
            one.absorb(*stretch)
            if name in self._payloads:
                self._payloads[name].add(*stretch)
        # What was found before a change leaves the change, which is no noise.
        if not verdict.left_out and verdict.change is None:
            self._follow(one, new, seconds)
        return verdict.change

    def _follow(self, one: Knowledge, new: Evidence, seconds: float) -> None:
        """Note what was found before leaves of rows, and let their noise follow it."""
        name = one.block.submodel.name
        if name in self._found:
            described, found = (new.residuals(x) for x in self._found[name])
            self._errors[name] = described, found
            losses = [_loss(left, one.noise) for left in (described, found)]
            worse = float(np.sqrt(losses[1] / losses[0])) if losses[0] > 0.0 else 1.0
            self._worse.setdefault(name, deque(maxlen=NEWEST)).append(worse)
            one.adapt(found, seconds)

    def _begun(self, one: Knowledge, new: Evidence, seconds: float) -> bool:
        """Return whether rows that disagree are the first real motion, and all that is known."""
        name = one.block.submodel.name
        watch, first = self._watches.get(name), self._first_motions[name]
        if watch is None or not watch.touched:
            first.clear()
            return False
        if not first.add(new, seconds):
            return False
        for forgotten in (
            self._watches, self._found, self._payloads, self._errors, self._worse, self._withheld
        ):  # fmt: skip
            forgotten.pop(name, None)
        return True

    def withheld(self) -> dict[str, Withheld]:
        """
        Return whose rows are left out now, as something unknown acts on them or has changed.

        Returns
        -------
        dict of str to Withheld
            By submodel.

        """
        return dict(self._withheld)

    def _note_withheld(self, one: Knowledge, new: Evidence, seconds: float) -> None:
        """Note which rows are off, and by how much, if they are left out."""
        name = one.block.submodel.name
        watch = self._watches.get(name)
        if watch is None or not watch.touched:
            self._withheld.pop(name, None)
            return
        x = self._found[name][1] if name in self._found else one.described()
        left = {kind: level for kind, level in new.residuals(x).items() if kind in one.noise}
        known = {kind: level for kind, level in left.items() if np.isfinite(level)}
        if not known:
            return
        worst = max(known, key=lambda kind: known[kind] / one.noise[kind])
        before = self._withheld[name].seconds if name in self._withheld else 0.0
        self._withheld[name] = Withheld(worst, known[worst], one.noise[worst], before + seconds)

    def _let_go(self, name: str, evidence: Sequence[Evidence]) -> None:
        """Let neighbours go of offsets that have changed, but where their rows say otherwise."""
        changed = next(one for one in self.known if one.block.submodel.name == name)
        for one, new in zip(self.known, evidence, strict=True):
            watch = self._watches.get(one.block.submodel.name)
            has_rows = any(part.count for part in new.kinds.values())
            if one.information is None or (has_rows and watch is not None and not watch.touched):
                continue
            shared = [known in changed.offset_names for known in one.offset_names]
            columns = one.offsets[shared]
            one.information = wandered(one.information, columns, np.full(len(columns), np.inf))

    def _judged(self, one: Knowledge, stretch: Stretch) -> Verdict:
        """Return what is to be done with rows."""
        if not self.settings.gate:
            return Verdict((stretch,), 0, None)
        name = one.block.submodel.name
        if name not in self._watches:
            self._watches[name] = Watch(one, self._carrier(one), self.settings.gate)
        return self._watches[name].judge(stretch)

    def payloads(self) -> dict[str, Payload]:
        """
        Return what submodels carry since they last picked something up.

        Returns
        -------
        dict of str to Payload
            By submodel.

        """
        found = {name: fit.payload() for name, fit in self._payloads.items()}
        return {name: payload for name, payload in found.items() if payload is not None}

    def _payload(self, one: Knowledge, before: Information) -> PayloadFit:
        """Return what is to tell how a submodel has changed since rows told so much of it."""
        link = self._carrier(one)
        columns = np.arange(10 * link, 10 * link + 10)
        return PayloadFit(one.block.unknowns.links[link], columns, before.merge(one.loose_prior()))

    def _carrier(self, one: Knowledge) -> int:
        """Return which link of a submodel carries what it picks up."""
        links = one.block.unknowns.links
        named = [k for k, link in enumerate(links) if link in self.settings.payload_links]
        return named[0] if named else len(links) - 1

    def refit(self) -> Refit | None:
        """
        Return what the rows so far tell.

        Returns
        -------
        Refit or None
            None: no submodel has rows whose noise is known.

        """
        ready = [one for one in self.known if one.information is not None]
        if not ready:
            return None
        found = joint_refit(ready, self.settings.weight, self._start, self.settings.method)
        named = {one.knowledge.block.submodel.name: one for one in found.bodies}
        self._start = {name: one.parameters for name, one in named.items()}
        self._found = {name: (one.knowledge.described(), one.x) for name, one in named.items()}
        return self._report(found)

    def _report(self, found: JointRefit) -> Refit:
        """Return what a refit found; submodels that rows do not tell enough of stay."""
        # Who takes them over asks for bodies, which a description need not have everywhere.
        parameters = self.prior.copy()
        seen, reasons, refitted = {}, self._waiting(), []
        for bodies in found.bodies:
            name = bodies.knowledge.block.submodel.name
            seen[name] = excitation(bodies.knowledge, self.settings.weight)
            bodies.knowledge.learned |= seen[name].told >= self.settings.excited
            if seen[name].told < self.settings.excited:
                reasons[name] = (
                    f'rows tell {seen[name].told} combinations of parameters better than the '
                    f'description does, {self.settings.excited} are asked for: move it more; '
                    "a smaller 'prior_weight' lets rows tell more beside the description"
                )
                continue
            if (worse := self._times_worse(name)) > WORSE:
                reasons[name] = (
                    f'what was found leaves {worse:.1f} times as much of new rows as the '
                    'description does: something acts on it that nobody reports, or its rows do '
                    'not say what they should'
                )
                continue
            refitted.append(name)
            parameters[list(bodies.knowledge.block.submodel.links)] = bodies.parameters
        margins = consistency_margin(parameters)
        ready = [bodies.knowledge for bodies in found.bodies]
        return Refit(
            self.stamp_ns,
            parameters,
            _by_sensor(offsets_in_use(ready, refitted, found.offsets)),
            tuple(refitted),
            seen,
            reasons,
            {name: before for name, (before, _) in self._errors.items()},
            {name: after for name, (_, after) in self._errors.items()},
            float(margins.min()),
            self._roots(found, refitted),
        )

    def _times_worse(self, name: str) -> float:
        """Return what was found leaves of new rows, over what the description leaves [rms]."""
        return float(np.median(self._worse.get(name, 1.0)))

    def _roots(self, found: JointRefit, refitted: Sequence[str]) -> Array:
        """Return how sure the parameters of all links are, shape (n_links, 10, r)."""
        roots = parameter_roots(found, self.settings.weight)
        size = max((roots[name].shape[1] for name in refitted), default=0)
        placed = np.zeros((len(self.robot.links), 10, size))
        for submodel in self.robot.submodels:
            if submodel.name in refitted:
                root = roots[submodel.name]
                own = root.reshape(-1, 10, root.shape[1])
                placed[list(submodel.links), :, : root.shape[1]] = own
        return placed

    def _waiting(self) -> dict[str, str]:
        """Return why submodels have no rows in units of their noise."""
        reasons = {}
        for one in self.known:
            name = one.block.submodel.name
            if not one.block.kinds:
                reasons[name] = 'gives no rows: an unknown wrench holds it'
            elif not one.seconds and len(self._assumed):
                joints = in_words([self.robot.joint_names[k] for k in self._assumed])
                reasons[name] = f'no rows yet; what rests on assumed joints gives none: {joints}'
            elif one.information is None:
                reasons[name] = f'{one.seconds:.1f} s with rows, too few to tell their noise'
        return reasons


def _check_carriers(robot: Robot, names: Sequence[str]) -> None:
    """Raise unless there are such links, one in a submodel at most."""
    for name in names:
        if name not in robot.link_names:
            raise NameNotFound('link', name, robot.link_names)
    for submodel in robot.submodels:
        named = [robot.link_names[k] for k in submodel.links if robot.link_names[k] in names]
        if len(named) > 1:
            raise ConfigError(
                f"payload_links has {' and '.join(named)} of submodel '{submodel.name}': which "
                'of its links picks something up cannot be told, name one of them'
            )


def _spanned(samples: SampleBatch) -> float:
    """Return the time that samples stand for, each as long as it is to the next one [s]."""
    n = len(samples)
    if n == 1:
        return LONGEST_ALONE
    return float(samples.stamp_ns[-1] - samples.stamp_ns[0]) / SECOND_NS * n / (n - 1)


def _by_sensor(offsets: Mapping[str, float]) -> dict[str, Array]:
    """Return offsets of sensors from those of columns."""
    sensors = dict.fromkeys(name.rpartition('.')[0] for name in offsets)
    return {
        sensor: np.array([offsets[f'{sensor}.{part}'] for part in COMPONENTS])
        for sensor in sensors
    }


def equal_parts(samples: SampleBatch, seconds: float) -> Sequence[SampleBatch]:
    """
    Return a log as the stretches that a working robot would give.

    Parameters
    ----------
    samples : SampleBatch
        In order.
    seconds : float
        Length of a stretch [s].

    Returns
    -------
    list of SampleBatch

    """
    times = (samples.stamp_ns - samples.stamp_ns[0]) / SECOND_NS
    edges = np.flatnonzero(np.diff(np.floor(times / seconds)) > 0) + 1
    starts, stops = [0, *edges.tolist()], [*edges.tolist(), len(samples)]
    return [samples.take(slice(a, b)) for a, b in zip(starts, stops, strict=True)]


def _loss(left: Mapping[str, float], noise: Mapping[str, float]) -> float:
    """Return the mean square of what is left of rows, over their noise."""
    known = [
        left[kind] / noise[kind] for kind in left if kind in noise and np.isfinite(left[kind])
    ]
    return float(np.mean(np.square(known))) if known else 0.0
