# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters in use, and their change by updates.

A change is spread over some time in steps, each a weighted mean of the parameters before and
after, which stays physically consistent [W]. FT offsets that belong to parameters go with them: at
rest a weight and an offset have the same effect.

An update stays on probation: it is used as long as it does not explain the newest samples worse
than the URDF, or the set that was restored instead, and than the one that it replaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import limit_of
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.sample import Sample

URDF, UPDATE, FILE = 'URDF', 'update', 'file'
"""Origins of a set of parameters."""
STEP_NS = 10_000_000
"""Least time between two steps of a change, each of which costs as much as a cycle [ns]."""
TRIAL_NS = 1_000_000_000
"""Between two trials of the set in use, if no update comes [ns]."""
MAX_PARTS = 4
"""Number of roots and offsets that are kept: they may come before their update."""
TRIAL_SAMPLES, LEAST_SAMPLES = 16, 4
SAMPLE_PERIOD_NS = 250_000_000
"""Between two samples: together they show four seconds of motion, as payloads take to be found."""
NOISE_PART = 0.003
"""Of the weight of the robot, s: 1 N for a humanoid of 33 kg, noise and errors of the motion."""
LENGTH = 0.1
"""Moment noise over force noise of FT sensors [m]."""
MARGIN = limit_of('update_rejected')
"""Of losses: good updates lose up to 0.8 more than the URDF, the first of a stream rarely up to 2,
those after a wrong start of the identifier 4 to 30."""
CAUTION, CAUTION_NS = 0.1, 60_000_000_000
"""Share of it that may be lost for a time after one that lost more: such a stream fades slowly."""


class ModelInUse:
    """
    Sets the inertial parameters of an estimator, and keeps their origin.

    seconds: of a change [s]; followers take parameters; `subtracted`: called when offsets changed.
    """

    def __init__(
        self,
        estimator: WrenchEstimator,
        seconds: float,
        followers: Iterable[Callable[[Array], None]] = (),
        subtracted: Callable[[], None] = lambda: None,
    ) -> None:
        self._estimator, self._span_ns = estimator, 1e9 * seconds
        self._followers, self._subtracted = tuple(followers), subtracted
        self._calibration = estimator.calibration
        self._added: Array = np.zeros_like(estimator.calibration.offsets)
        """Subtracted at present beyond the calibration."""
        self._reported = self._added
        self._urdf = estimator.robot.parameters
        self._used, self.source = ParameterUpdate(self._urdf), URDF
        """The set in use, during a change the one that it leads to, and its origin."""
        self._trusted = self._used, URDF
        """The set that is gone back to, and its origin."""
        self._trial, self._tried_ns, self._refused_ns = ModelTrial(estimator), 0, 0
        self._offered: ParameterUpdate | None = None
        self._tried: ParameterUpdate | None = None
        """The newest update that waits to be tried, and the one that is being tried."""
        self._losses: Iterator[Array | None] | None = None
        self.taken, self.worse, self.refusal = 0, 0, ''
        """Numbers of updates that were used and that fit worse; why the last one did."""
        self.held = False
        self.waiting: ParameterUpdate | None = None
        """The newest update that was kept aside."""
        self._parts: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MAX_PARTS)
        self._start: Array | None = None
        """Numbers from which a change is going on."""
        self._last_ns: int | None = None
        self._gone_ns = self._stepped_ns = 0
        self.progress = 1.0
        """Part of the last change that is done."""

    @property
    def goal(self) -> Array:
        """The set in use, shape (n_links, 10); during a change the one that it leads to."""
        return self._used.parameters

    @property
    def roots(self) -> Array | None:
        """Root of its covariance, shape (n_links, 10, r)."""
        return self._used.roots

    @property
    def offsets(self) -> Array:
        """Offsets that belong to it, on top of the calibration, shape (n_fts, 6) [N, Nm]."""
        offsets = self._used.offsets
        return np.zeros_like(self._added) if offsets is None else offsets

    def offer_roots(self, of: str, roots: Array) -> None:
        """Take the root of the covariance of an update, by its fingerprint, (n_links, 10, r)."""
        self._parts.append((of, {'roots': roots}))
        self._complete(of, self._parts[-1][1])

    def offer_offsets(self, of: str, on: str, offsets: Array) -> None:
        """Take the offsets of an update, (n_fts, 6) [N, Nm]; on: calibration's fingerprint."""
        self._parts.append((of, {'offsets': offsets, 'calibration': on}))
        if on == calibration_fingerprint(self._calibration):
            self._complete(of, self._parts[-1][1])
            if self.source == UPDATE and self._used.fingerprint == of:
                self._begin()

    def offer(self, update: ParameterUpdate) -> bool:
        """Use an update, with what came for it; return False if updates are held."""
        for of, parts in self._parts:
            if of == update.fingerprint:
                update = replace(update, **parts)
        on = calibration_fingerprint(self._calibration)
        if update.offsets is not None and update.calibration != on:
            raise ModelError('offsets of the update belong to another calibration than is in use')
        if self.held:
            self.waiting = update
        else:
            self._offer(update)
        return not self.held

    def judge(self, sample: Sample) -> None:
        """Try updates on the newest samples, and the set in use now and then; call each cycle."""
        trial = self._trial
        trial.add(sample)
        if self._losses is None:
            again = abs(sample.stamp_ns - self._tried_ns) >= TRIAL_NS and self.source == UPDATE
            if not trial.is_informed or not (again or self._offered):
                return
            self._tried, self._offered, self._tried_ns = self._offered, None, sample.stamp_ns
            sets = filter(None, (self._trusted[0], self._used, self._tried))
            self._losses = trial.losses(
                [(one.parameters, self._calibrated(one.offsets)) for one in sets]
            )
        losses = next(self._losses)
        if losses is None:
            return
        tried, self._tried, self._losses = self._tried, None, None
        trusted, used, *_ = totals = losses.sum(axis=1)
        best = int(used < trusted)
        is_wary = self.worse and abs(sample.stamp_ns - self._refused_ns) < CAUTION_NS
        margin = CAUTION * MARGIN if is_wary else MARGIN
        if totals[-1] <= totals[best] + margin:
            if tried is not None:
                self._take(tried)
            return
        self.worse += 1
        if totals[-1] > totals[best] + MARGIN:
            self._refused_ns = sample.stamp_ns
        self.refusal = 'the update fits worse: ' + trial.describe(losses[[-1, best]])
        if self.source == UPDATE and used > trusted + MARGIN:
            self._begin(*self._trusted)

    def set_calibration(self, calibration: FtCalibration) -> None:
        """Use another calibration at once; offsets of sensors that it changes are dropped."""
        n = len(self._added)
        is_new = np.zeros((n, 1), dtype=bool)
        for name in ('matrices', 'offsets', 'temperature_coefficients', 'reference_temperatures'):
            pair = (getattr(c, name).reshape(n, -1) for c in (self._calibration, calibration))
            is_new |= np.not_equal(*pair).any(axis=1, keepdims=True)
        self._calibration = calibration
        self._subtract(np.where(is_new, 0.0, self._added))
        self._stop_trial()
        for name in ('_used', 'waiting', '_offered'):
            update = getattr(self, name)
            if update is not None and update.offsets is not None:
                offsets = np.where(is_new, 0.0, update.offsets)
                setattr(self, name, replace(update, offsets=offsets))
        if self._start is not None:
            self._begin()

    def hold(self) -> None:
        """Keep updates aside from now on; a change that has begun is finished."""
        self.held = True

    def release(self) -> bool:
        """Take updates over again."""
        update, self.waiting, self.held = self.waiting, None, False
        if update is not None:
            self._offer(update)
        return update is not None

    def revert(self) -> None:
        """Go back to the URDF; hold updates, so that the next one does not undo that."""
        self.restore(self._urdf, URDF)

    def restore(self, parameters: Array, source: str = FILE) -> None:
        """Go on with a saved set, (n_links, 10); hold updates likewise."""
        self._stop_trial()
        self.held, self.waiting, self._offered = True, None, None
        self._trusted, self.refusal = (ParameterUpdate(parameters), source), ''
        self._begin(*self._trusted)

    def step(self, stamp_ns: int) -> None:
        """Give the estimator the parameters of a cycle, if a change is going on."""
        if self._start is None:
            return
        if self._last_ns is not None:
            self._gone_ns += max(0, stamp_ns - self._last_ns)
        self._last_ns = stamp_ns
        if self._gone_ns >= self._span_ns:
            self._finish()
        elif self._gone_ns - self._stepped_ns >= STEP_NS:
            self._stepped_ns, self.progress = self._gone_ns, self._gone_ns / self._span_ns
            change = _joined(self.goal, self.offsets) - self._start
            self._use(self._start + self.progress * change)

    def finish(self) -> None:
        """Complete a change at once, as when the node is not active."""
        self._stop_trial()
        if self._offered is not None:
            self._take(self._offered)
            self._offered = None
        self._finish()

    def _finish(self) -> None:
        if self._start is not None:
            self._start, self.progress = None, 1.0
            self._use(_joined(self.goal, self.offsets))
            if not np.array_equal(self._reported, self._added):
                self._subtracted()
            self._reported = self._added

    def _complete(self, of: str, parts: dict[str, Any]) -> None:
        """Add parts to the update in use and to those that wait, if they are the right one."""
        if self._tried is not None and self._tried.fingerprint == of:
            self._stop_trial()
        for name in ('waiting', '_offered', '_used')[: 2 + (self.source == UPDATE)]:
            update = getattr(self, name)
            if update is not None and update.fingerprint == of:
                setattr(self, name, replace(update, **parts))

    def _offer(self, update: ParameterUpdate) -> None:
        """Let an update be tried, or use it at once if there is nothing to try it on."""
        if self._trial.is_informed:
            self._offered = update
        else:
            self._take(update)

    def _take(self, update: ParameterUpdate) -> None:
        self.taken, self.refusal = self.taken + 1, ''
        self._begin(update, UPDATE)

    def _stop_trial(self) -> None:
        """Let the update that is being tried wait again, unless there is a newer one."""
        self._offered, self._tried, self._losses = self._offered or self._tried, None, None

    def _begin(self, update: ParameterUpdate | None = None, source: str = '') -> None:
        """Begin a change from the present parameters; default: to the update in use."""
        if update is not None:
            self._used, self.source = update, source
        self._start = _joined(self._estimator.robot.parameters, self._added)
        self._gone_ns = self._stepped_ns = 0
        self._last_ns, self.progress = None, 0.0

    def _use(self, numbers: Array) -> None:
        """Set parameters and offsets of the estimator and its followers."""
        n_offsets = self._added.size
        parameters = numbers[: len(numbers) - n_offsets].reshape(-1, 10)
        self._estimator.set_parameters(parameters)
        offsets = numbers[len(numbers) - n_offsets :].reshape(-1, 6)
        if not np.array_equal(offsets, self._added):
            self._subtract(offsets)
        for follow in self._followers:
            follow(self._estimator.robot.parameters)

    def _subtract(self, offsets: Array) -> None:
        """Set the offsets that the estimator subtracts beyond its calibration, (n_fts, 6)."""
        self._added = offsets
        self._estimator.set_calibration(self._calibrated(offsets))

    def _calibrated(self, added: Array | None) -> FtCalibration:
        """Return the calibration with offsets on top of it, (n_fts, 6)."""
        if added is None:
            return self._calibration
        return self._calibration.with_offsets(self._calibration.offsets + added)


def _joined(parameters: Array, offsets: Array) -> Array:
    return np.concatenate([parameters.reshape(-1), offsets.reshape(-1)])


class ModelTrial:
    """
    Compares sets of parameters by what the newest samples contradict.

    The loss of parameters and FT offsets is the sum over submodels, without that of a fixed link,
    of the mean of log(1 + |r|^2 / s^2) over the samples. r is the external wrench of the submodel
    [T 4.18], moments over 0.1 m: right ones leave noise where nothing touches. By the heavy tails
    (Cauchy's) what every set leaves, under a foot or of a push, hardly changes differences of
    losses.
    """

    def __init__(self, estimator: WrenchEstimator) -> None:
        self._robot = robot = estimator.robot
        self._estimator = WrenchEstimator(robot, acceleration_arrays=estimator.motion.arrays)
        self._noise = NOISE_PART * robot.mass * float(np.linalg.norm(robot.gravity))
        held = {robot.frame(robot.fixed_frame)[0]} if robot.fixed_frame else set()
        self._counts = np.array([held.isdisjoint(one.links) for one in robot.submodels])
        self._samples: deque[Sample] = deque(maxlen=TRIAL_SAMPLES)

    @property
    def is_informed(self) -> bool:
        """True if there are samples enough."""
        return len(self._samples) >= LEAST_SAMPLES

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is due."""
        if self._samples:
            step = sample.stamp_ns - self._samples[-1].stamp_ns
            if 0 <= step < SAMPLE_PERIOD_NS:
                return
            # Time was set back, or the last ones are long ago.
            if not 0 < step <= TRIAL_SAMPLES * SAMPLE_PERIOD_NS:
                self._samples.clear()
        self._samples.append(sample)

    def losses(self, sets: Sequence[tuple[Array, FtCalibration]]) -> Iterator[Array | None]:
        """Yield None after each estimate but the last, then the losses (n_sets, n_submodels)."""
        samples, rows = tuple(self._samples), []
        noises = self._noise * np.repeat([1.0, LENGTH], 3)
        for parameters, calibration in sets:
            self._estimator.set_parameters(parameters)
            self._estimator.set_calibration(calibration)
            for sample in samples:
                r = self._estimator.update(sample).residuals
                # NaN are submodels that merged or whose motion is not known, with every set.
                rows.append(np.log1p(np.nan_to_num((r / noises) ** 2).sum(axis=1)))
                if len(rows) < len(sets) * len(samples):
                    yield None
        yield np.reshape(rows, (len(sets), len(samples), -1)).mean(axis=1) * self._counts

    def describe(self, losses: Array) -> str:
        """Return the submodel that speaks most against the first of two sets, with its figures."""
        worst = int(np.argmax(losses[0] - losses[1]))
        with_it, without = self._noise * np.sqrt(np.expm1(losses[:, worst]))
        name = self._robot.submodels[worst].name
        return f'{with_it:.3g} N unexplained at {name}, {without:.3g} N without it'
