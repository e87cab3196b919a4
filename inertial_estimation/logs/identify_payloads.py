# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which logs were recorded with a payload, from the file of ``identify``.

    payloads:
      plate:
        frame: tool0
        mass: 2.805                        # [kg]; unknown where it is left out
        logs: ['*_payload.npz']            # names of files or folders; * stands for anything
        center_of_mass: [0, 0, 0.05]       # in the frame [m]; likewise
        inertia: {ixx: 0.01, iyy: 0.01, izz: 0.01}   # about it, in the frame's axes; likewise
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.setting_values import as_list, as_mapping, as_number, as_numbers

Array = NDArray[np.float64]

KEYS = ('frame', 'logs', 'mass', 'center_of_mass', 'inertia')
TENSOR = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


@dataclass(frozen=True)
class LoggedPayload:
    """A payload, and the logs that it is in."""

    payload: Payload
    logs: tuple[str, ...]
    """Names of files or folders, in which * stands for anything."""

    def is_in(self, log: LogSlice) -> bool:
        """Tell whether the robot carried it while a log was recorded."""
        return any(fnmatchcase(log.path.name, pattern) for pattern in self.logs)


def carried(payloads: Sequence[LoggedPayload], log: LogSlice, n: int) -> Array:
    """
    Return what a robot carried while a log was recorded.

    Returns (n, n_payloads).
    """
    there = np.array([float(one.is_in(log)) for one in payloads])
    return np.tile(there, (n, 1))


def require_logs(payloads: Iterable[LoggedPayload], logs: Iterable[LogSlice]) -> None:
    """Refuse payloads that are in none of the logs."""
    known = list(logs)
    for one in payloads:
        if not any(map(one.is_in, known)):
            names = ', '.join(dict.fromkeys(log.path.name for log in known))
            raise ConfigError(
                f"payload '{one.payload.name}' is in none of the logs ({names}), but in "
                f'{", ".join(one.logs)}: add one of these, or leave the payload out'
            )


def read_payloads(entries: object) -> tuple[LoggedPayload, ...]:
    """Read what stands under ``payloads``."""
    found = as_mapping(entries, 'payloads')
    return tuple(_read(str(name), f'payloads.{name}', value) for name, value in found.items())


def _read(name: str, where: str, entry: object) -> LoggedPayload:
    """Return one of them."""
    body = as_mapping(entry, where, KEYS, KEYS[:2])
    logs = as_list(body['logs'], f'{where}.logs')
    if not logs:
        raise ConfigError(f"'{where}.logs' is empty, expected a list of names of logs")
    mass, center, inertia = (body.get(key) for key in KEYS[2:])
    if inertia is not None:
        entries = as_mapping(inertia, f'{where}.inertia', TENSOR, ('ixx', 'iyy', 'izz'))
        inertia = [entries.get(key, 0.0) for key in TENSOR]
    payload = Payload(
        name,
        str(body['frame']),
        None if mass is None else as_number(mass, f'{where}.mass'),
        None if center is None else _numbers(center, f'{where}.center_of_mass', 3),
        None if inertia is None else _numbers(inertia, f'{where}.inertia', 6),
    )
    return LoggedPayload(payload, tuple(map(str, logs)))


def _numbers(entry: object, where: str, n: int) -> Any:
    """Return a tuple of n numbers."""
    return tuple(as_numbers(entry, where, (n,)).tolist())
