# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of an identifier as a file, which is replaced as a whole."""

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from inertial_estimation.config.files import check_own, check_writable, read_text, write_own
from inertial_estimation.errors import ConfigError, InertialEstimationError, ModelError
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.state import from_text, recognises, to_text

SAVE_PERIOD = 60.0
"""Time between two writings [s]."""
ASIDE = '.refused'
"""Added to the name of a state that cannot be used."""


class StateFile:
    """The file of an identifier; empty path: none."""

    def __init__(self, path: str, identifier: RecursiveIdentifier) -> None:
        self.path, self._identifier = Path(path).expanduser() if path else None, identifier
        self._saved_ns, self._due = 0, monotonic() + SAVE_PERIOD
        self.failure = ''
        """Reason for which it was not read or written by itself."""
        if self.path is not None:
            check_own(self.path, recognises)
            check_writable(self.path)

    def save(self) -> str:
        """Write the state."""
        known = sum(one.information is not None for one in self._identifier.memories)
        if self.path is None:
            raise ConfigError("'state_file' is empty")
        if not known:
            raise ModelError('no equations yet')
        self._due = monotonic() + SAVE_PERIOD
        write_own(self.path, to_text(self._identifier), recognises)
        self._saved_ns, self.failure = self._identifier.stamp_ns, ''
        return f"saved {known} submodels in '{self.path}'"

    def restore(self) -> str:
        """Read the state; one that cannot be used is renamed."""
        if self.path is None:
            raise ConfigError("'state_file' is empty")
        text = read_text(self.path)
        if not recognises(text):
            raise ConfigError(f"'{self.path}' is no state of an identifier")
        try:
            names = from_text(self._identifier, text)
        except ModelError as error:
            aside, count = self.path.with_name(self.path.name + ASIDE), 1
            while os.path.lexists(aside):
                aside, count = aside.with_suffix(f'{ASIDE}{count}'), count + 1
            self.path.replace(aside)
            raise ModelError(f"'{self.path}' is refused: {error}; it is '{aside}' now") from error
        self._saved_ns, self.failure = self._identifier.stamp_ns, ''
        return f"restored {', '.join(names)} from '{self.path}'"

    def begin(self) -> str:
        """Read the state if there is one."""
        is_there = self.path is not None and self.path.exists()
        return self._noting(self.restore) if is_there else ''

    def keep(self, now: bool = True) -> None:
        """Write the state if the file is older; not now: if the last time is a period ago."""
        known = any(one.information is not None for one in self._identifier.memories)
        is_behind = known and self._identifier.stamp_ns != self._saved_ns
        if self.path is not None and is_behind and (now or monotonic() >= self._due):
            self._noting(self.save)

    def _noting(self, work: Callable[[], str]) -> str:
        try:
            return work()
        except InertialEstimationError as error:
            self.failure = str(error)
            return ''
