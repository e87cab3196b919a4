# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of an identifier as a file, which is replaced as a whole."""

import os
from itertools import chain, count
from pathlib import Path
from time import monotonic

from inertial_estimation.config.files import check_own, check_writable, read_text, write_own
from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.state import from_text, recognises, to_text

SAVE_PERIOD = 60.0
"""Time between two writings [s]."""
ASIDE = '.refused'
"""Added to the name of a state that cannot be used."""


class StateFile:
    """File that is written every `SAVE_PERIOD`, when it is behind."""

    def __init__(self, path: str, period: float = SAVE_PERIOD) -> None:
        self.path = Path(path).expanduser()
        self._period = period
        self._saved_ns, self._due = 0, monotonic() + period
        check_own(self.path, recognises)
        check_writable(self.path)

    def save(self, identifier: RecursiveIdentifier) -> str:
        """Write the state."""
        known = sum(one.information is not None for one in identifier.memories)
        if not known:
            raise ModelError('no equations yet')
        self._due = monotonic() + self._period
        write_own(self.path, to_text(identifier), recognises)
        self._saved_ns = identifier.stamp_ns
        return f"saved {known} submodels in '{self.path}'"

    def is_behind(self, identifier: RecursiveIdentifier) -> bool:
        """Return whether the file is older than the state."""
        known = any(one.information is not None for one in identifier.memories)
        return known and identifier.stamp_ns != self._saved_ns

    def is_due(self) -> bool:
        """Return whether the last attempt to write is a period ago."""
        return monotonic() >= self._due

    def restore(self, identifier: RecursiveIdentifier) -> str:
        """Read the state; one that cannot be used is renamed."""
        text = read_text(self.path)
        if not recognises(text):
            raise ConfigError(f"'{self.path}' is no state of an identifier")
        try:
            names = from_text(identifier, text)
        except ModelError as error:
            raise ModelError(f"'{self.path}' is refused: {error}; {self._set_aside()}") from error
        self._saved_ns = identifier.stamp_ns
        return f"restored {', '.join(names)} from '{self.path}'"

    def _set_aside(self) -> str:
        """Rename the file to a name that is free; return the result as text."""
        ends = chain([''], map('.{}'.format, count(2)))
        names = (self.path.with_name(f'{self.path.name}{ASIDE}{end}') for end in ends)
        aside = next(name for name in names if not os.path.lexists(name))
        try:
            self.path.replace(aside)
        except OSError as error:
            return f'it cannot be renamed either ({error.strerror}), and will be written over'
        return f"it is '{aside}' now"
