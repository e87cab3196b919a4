# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A log, or a part of it: ``run.npz@2.5:30``, in seconds after its first sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError, LogError

NANOSECONDS = 1e-9
MARK = '@'


@dataclass(frozen=True)
class Stretch:
    """Which part of which log."""

    path: Path
    start: float = 0.0
    """[s] after the first sample."""
    stop: float = np.inf
    """[s] after the first sample, which it does not include."""

    def __str__(self) -> str:
        """Return it as it is written."""
        if (self.start, self.stop) == (0.0, np.inf):
            return str(self.path)
        stop = '' if np.isinf(self.stop) else f'{self.stop:g}'
        return f'{self.path}{MARK}{self.start:g}:{stop}'

    @classmethod
    def parse(cls, said: str | Path) -> Stretch:
        """Read what names a log or a part of it."""
        text = str(said)
        path, mark, times = text.rpartition(MARK)
        if not mark or Path(text).exists():
            return cls(Path(text))
        if ':' not in times:
            _refuse_one_time(text, path, times)
            return cls(Path(text))
        start, _, stop = times.partition(':')
        found = cls(Path(path), _seconds(start, 0.0, text), _seconds(stop, np.inf, text))
        if not 0 <= found.start < found.stop:
            raise CallError(f"'{text}' is no part of a log: FROM must be before TO, from 0 on")
        return found

    def rows(self, stamps: NDArray[np.int64]) -> slice:
        """
        Return the samples of the part.

        stamps (n,) [ns].
        """
        if (self.start, self.stop) == (0.0, np.inf) or not len(stamps):
            return slice(None)
        t = (stamps - stamps[0]) * NANOSECONDS
        first, last = np.searchsorted(t, [self.start, self.stop])
        if last - first < 2:
            ends = f'the log ends {t[-1]:.3f} s after its first sample'
            if self.start > t[-1]:
                raise LogError(f"'{self}' is empty: {ends}")
            raise LogError(
                f"'{self}' holds {'one sample' if last > first else 'no sample'}, expected two "
                f'at least: choose FROM and TO further apart; {ends}'
            )
        return slice(int(first), int(last))

    def overlaps(self, other: Stretch) -> bool:
        """Tell whether both hold the same samples."""
        same = self.path.resolve() == other.path.resolve()
        return same and self.start < other.stop and other.start < self.stop


def _refuse_one_time(text: str, path: str, times: str) -> None:
    """Raise if what follows the mark is one number, and what is before it a log."""
    try:
        float(times)
    except ValueError:
        return
    if Path(path).exists():
        raise CallError(
            f"'{text}' names one time and no part of a log: write {path}{MARK}{times}: for what "
            f'is from there on, {path}{MARK}:{times} for what is before'
        )


def _seconds(said: str, default: float, text: str) -> float:
    """Return a time; nothing means the default."""
    try:
        value = float(said) if said.strip() else default
    except ValueError:
        value = np.nan
    if np.isnan(value):
        raise CallError(f"'{text}' is no part of a log: write LOG@FROM:TO, in seconds")
    return value
