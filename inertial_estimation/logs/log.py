# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs: samples of a robot with their times, touches, known wrenches and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import CallError, LogError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.sender_rates import SlowSender
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.stream_statistics import AssemblerStatistics, StreamRates

Progress = Callable[[str, float], None]
"""Called with the stage of a job, and the share of it that is done, from 0 to 1."""
MARK = '@'


def no_progress(stage: str, done: float) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class TimeRange:
    """Times strictly between two times, in seconds after the first FT message."""

    start: float = -np.inf
    stop: float = np.inf

    def __post_init__(self) -> None:
        """Check the order."""
        if not self.start < self.stop:
            text = f'time range {self.start:g} s to {self.stop:g} s'
            raise CallError(f'{text}, expected two numbers in order')

    def mask(self, times: Array) -> Mask:
        """Return a mask of the times (n,) that are inside."""
        return (times > self.start) & (times < self.stop)


@dataclass(frozen=True)
class LogSlice:
    """A log or a part of it: ``run.npz@2.5:30``, in seconds after its first sample."""

    path: Path
    start: float = 0.0
    stop: float = np.inf
    """The sample at this time is not included."""

    def __str__(self) -> str:
        """Return it as it is written."""
        if self.is_whole:
            return str(self.path)
        stop = '' if np.isinf(self.stop) else f'{self.stop:g}'
        return f'{self.path}{MARK}{self.start:g}:{stop}'

    def require(self) -> LogSlice:
        """Return it, or raise if there is no such log."""
        if not self.path.exists():
            raise LogError(f"there is no log '{self.path}'")
        return self

    @property
    def is_whole(self) -> bool:
        """True if it is the whole log."""
        return (self.start, self.stop) == (0.0, np.inf)

    @classmethod
    def parse(cls, text: str | Path) -> LogSlice:
        """Read the name of a log, or of a part of it."""
        path, mark, times = str(text).rpartition(MARK)
        start, colon, stop = times.partition(':')
        try:
            numbers = [float(start.strip() or 0.0), float(stop.strip() or np.inf)]
        except ValueError:
            numbers = [np.nan, np.nan]
        if not mark or Path(text).exists() or not (colon or Path(path).exists()):
            return cls(Path(text))
        if not (colon and 0.0 <= numbers[0] < numbers[1]):
            raise CallError(f"'{text}' is no part of a log, expected LOG@FROM:TO, FROM before TO")
        return cls(Path(path), *numbers)

    def rows(self, stamps: NDArray[np.int64]) -> Indices:
        """Return the samples of the part, also where stamps go back, stamps (n,) [ns]."""
        t = (stamps - stamps[:1]) * 1e-9
        rows = np.flatnonzero((t >= self.start) & (t < self.stop) | self.is_whole)
        if len(rows) < 2 and len(t) and not self.is_whole:
            end = f'the log ends {t[-1]:.3f} s after its first sample'
            raise LogError(f"'{self}' holds fewer than two samples: {end}")
        return rows

    def overlaps(self, other: LogSlice) -> bool:
        """Return true if both hold the same samples."""
        same = self.path.resolve() == other.path.resolve()
        return same and self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, eq=False)
class Touches:
    """Contacts of the contacts topic at each sample."""

    sets: tuple[tuple[Contact, ...], ...]
    """Different sets of contacts; the first is empty."""
    rows: NDArray[np.intp]
    """Index of the set of each sample, shape (n,)."""
    problems: Mapping[str, int] = field(default_factory=dict)
    """Messages that could not be used, by reason."""
    slow_senders: tuple[SlowSender, ...] = ()

    @classmethod
    def of(
        cls, found: Sequence[tuple[Contact, ...]], stream: ContactStream | None = None
    ) -> Touches:
        """Return the touches of contacts at each sample, and the problems of their stream."""
        numbers: dict[tuple[Contact, ...], int] = {(): 0}
        rows = [numbers.setdefault(contacts, len(numbers)) for contacts in found]
        problems = {} if stream is None else dict(stream.problems)
        if stream is not None and (dropped := stream.statistics().dropped):
            problems['more contacts at a time than allowed'] = dropped
        slow = () if stream is None else stream.senders.ever_slow
        return cls(tuple(numbers), np.array(rows, dtype=np.intp), problems, slow)

    @classmethod
    def joined(cls, parts: Sequence[Touches]) -> Touches:
        """Return the touches of pieces of a log, each with the problems up to its end."""
        numbers: dict[tuple[Contact, ...], int] = {(): 0}
        rows = [
            np.array([numbers.setdefault(one, len(numbers)) for one in part.sets])[part.rows]
            for part in parts
        ]
        return replace(parts[-1], sets=tuple(numbers), rows=np.concatenate(rows))


@dataclass(frozen=True, eq=False)
class Log:
    """Samples of a robot."""

    samples: SampleBatch
    """In the order of their stamps."""
    origin_ns: int
    """Stamp that times are counted from: that of the first FT message [ns]."""
    statistics: AssemblerStatistics | None = None
    """Of the streams; None for tables of numbers."""
    touches: Touches | None = None
    """Contacts of the contacts topic at each sample."""
    rates: StreamRates | None = None
    """Mean rates of the streams."""
    problems: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Messages with problems, by source and problem."""
    late: Mapping[str, float] = field(default_factory=dict)
    """Share of the messages of a source that came after the joint state of their stamp."""
    external: Mapping[str, Array] = field(default_factory=dict)
    """Known wrenches by frame, about its origin in its axes, NaN: unknown, (n, 6) [N, Nm]."""

    @property
    def times(self) -> Array:
        """Times of the samples, shape (n,) [s]."""
        return (self.samples.stamp_ns - self.origin_ns) / 1e9

    @classmethod
    def joined(cls, pieces: Sequence[Log]) -> Log:
        """Return the log of all samples of its pieces, each with the figures up to its end."""
        touches = None
        if all(one.touches is not None for one in pieces):
            touches = Touches.joined([one.touches for one in pieces if one.touches])
        external = {
            frame: np.concatenate([one.external[frame] for one in pieces])
            for frame in pieces[0].external
        }
        columns = {name: [getattr(one.samples, name) for one in pieces] for name in Sample._fields}
        known = {k: np.concatenate(v) for k, v in columns.items() if all(x is not None for x in v)}
        samples = SampleBatch(**known)
        origin_ns = pieces[0].origin_ns
        return replace(
            pieces[-1], samples=samples, origin_ns=origin_ns, touches=touches, external=external
        )

    def within(self, range_: TimeRange) -> Log:
        """Return the samples of a time range."""
        times = self.times
        inside = range_.mask(times)
        if inside.all():
            return self
        rows = np.flatnonzero(inside)
        if not len(rows):
            spans = f'the log spans {times[0]:.2f} s to {times[-1]:.2f} s'
            raise LogError(f'no sample lies in {range_.start} s to {range_.stop} s: {spans}')
        return self.take(rows)

    def thinned(self, most: int) -> Log:
        """Return at most a number of samples, evenly spread."""
        return self.take(spread(len(self.samples), most))

    def take(self, rows: slice | NDArray[np.intp]) -> Log:
        """Return some of the samples."""
        touches = None
        if self.touches is not None:
            touches = replace(self.touches, rows=self.touches.rows[rows])
        external = {frame: wrench[rows] for frame, wrench in self.external.items()}
        samples = self.samples.take(rows)
        return replace(self, samples=samples, touches=touches, external=external)

    def without_frozen(self) -> SampleBatch:
        """Return the samples without the readings of frozen intervals, in hindsight."""
        readings = self.samples.ft_readings.copy()
        readings[self.frozen] = np.nan
        return replace(self.samples, ft_readings=readings)

    @property
    def frozen(self) -> Mask:
        """Samples in which FT sensors repeat themselves, (n, n_fts), in hindsight."""
        stamps = self.samples.stamp_ns
        found = np.zeros(self.samples.ft_readings.shape[:2], dtype=bool)
        if self.statistics is not None:
            for k, stream in enumerate(self.statistics.fts.values()):
                for interval in stream.frozen_intervals:
                    inside = (stamps >= interval.repeated_ns) & (stamps <= interval.last_ns)
                    found[inside, k] = True
        return found

    def require_derivatives(self) -> None:
        """Raise if a stream never had derivatives."""
        if self.statistics is None:
            return
        for streams in (self.statistics.joints, self.statistics.imus, self.statistics.fts):
            for name, one in streams.items():
                if one.unfiltered and not one.used and one.filter_lack:
                    raise LogError(f'no derivatives of {name}: {one.filter_lack}')


def spread(n: int, most: int) -> Indices:
    """Return at most a number of the rows of n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))
