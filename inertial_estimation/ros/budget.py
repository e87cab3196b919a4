# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Work beside the cycles takes no more than a share of their time, however long it is."""

SHARE = 0.2
"""Of the time that the cycles take."""


class Budget:
    """Adds up the time of cycles until the last piece of work is paid for."""

    def __init__(self) -> None:
        self._busy = self._owed = 0.0

    @property
    def allows(self) -> bool:
        """Whether the next piece of work may begin."""
        return self._busy >= self._owed

    def earn(self, duration: float) -> None:
        """
        Add a cycle.

        duration [s].
        """
        self._busy += duration

    def spend(self, duration: float) -> None:
        """
        Add a piece of work, when it is done.

        duration [s].
        """
        self._busy, self._owed = 0.0, duration / SHARE
