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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.logs.log import LogSlice

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


def read_payloads(said: object) -> tuple[LoggedPayload, ...]:
    """Read what stands under ``payloads``."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"'payloads' is {said!r}, expected names and what they stand for")
    return tuple(_read(str(name), value) for name, value in said.items())


def _read(name: str, said: object) -> LoggedPayload:
    """Return one of them."""
    where = f'payloads.{name}'
    if not isinstance(said, Mapping):
        raise ConfigError(f"'{where}' is {said!r}, expected frame, logs and what is known")
    for key in said:
        if key not in KEYS:
            raise NameNotFound(f"setting of '{where}'", str(key), KEYS)
    for key in KEYS[:2]:
        if key not in said:
            raise ConfigError(f"'{where}' has no '{key}'")
    logs = said['logs']
    if isinstance(logs, str) or not isinstance(logs, Sequence) or not logs:
        raise ConfigError(f"'{where}.logs' is {logs!r}, expected a list of names of logs")
    mass = said.get('mass')
    center = said.get('center_of_mass')
    inertia = said.get('inertia')
    payload = Payload(
        name,
        str(said['frame']),
        None if mass is None else _numbers([mass], f'{where}.mass', 1)[0],
        None if center is None else _numbers(center, f'{where}.center_of_mass', 3),  # type: ignore[arg-type]
        None if inertia is None else _tensor(inertia, f'{where}.inertia'),  # type: ignore[arg-type]
    )
    return LoggedPayload(payload, tuple(map(str, logs)))


def _tensor(said: Any, where: str) -> tuple[float, ...]:
    """Return the six entries of a tensor; products that are not said are zero."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"'{where}' is {said!r}, expected {', '.join(TENSOR)}")
    for key in said:
        if key not in TENSOR:
            raise NameNotFound(f"setting of '{where}'", str(key), TENSOR)
    for key in ('ixx', 'iyy', 'izz'):
        if key not in said:
            raise ConfigError(f"'{where}' has no '{key}'")
    return _numbers([said.get(key, 0.0) for key in TENSOR], where, len(TENSOR))


def _numbers(said: object, where: str, n: int) -> tuple[float, ...]:
    """Return what must be finite numbers."""
    values = [] if isinstance(said, str) or not isinstance(said, Sequence) else list(said)
    good = [isinstance(v, int | float) and not isinstance(v, bool) for v in values]
    if len(values) != n or not all(good) or not np.isfinite(values).all():
        one = values[0] if n == 1 and values else said
        raise ConfigError(
            f"'{where}' is {one!r}, expected {'a number' if n == 1 else f'{n} numbers'}"
        )
    return tuple(map(float, values))
