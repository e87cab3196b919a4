# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A synthetic leg with two FT sensors and a beam for masses, as of T section 5.4.

Real matrices of real sensors turn wrenches into counts; what the workshop says of a sensor is off
by what its owners found on a robot. Hips move as there: 70 degrees to and fro, 90 degrees
sideways, 2 degrees a second at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.added_masses import AddedMass
from inertial_estimation.calibration.quiet_samples import GRAVITY
from inertial_estimation.calibration.weighing import weight_matrix

Array = NDArray[np.float64]

RATE = 10.0
"""Of the samples [Hz]; T has 100, smoothed."""
DURATION = 300.0
"""Of each data set [s]."""
SPEED = np.deg2rad(2.0)
"""Largest of each hip joint [rad/s]."""
RANGES = np.deg2rad([70.0, 90.0])
"""Of the hip's front-back and lateral joint [rad]."""
FORCE_NOISE, MOMENT_NOISE = (0.1, 0.2), (0.003, 0.011)
"""Smallest and largest standard deviation of a channel [N], [Nm]."""
ACCELEROMETER_NOISE, ACCELEROMETER_BIAS = 0.02, 0.02
"""Standard deviations [m/s^2]."""
OFFSETS = np.repeat([30.0, 2.0], 3)
"""Standard deviations of offsets [N, Nm]."""
DRIFTS = np.repeat([0.5, 0.02], 3)
"""The same from one data set to the next."""
COUPLING = 3.4
"""Largest force for a moment in the corrections that were found on a robot [N/Nm]."""
ADDED = 0.51
"""Mass that is added, as weighed in T Table 5.2 [kg]."""


class Place(NamedTuple):
    """A sensor of the leg."""

    name: str
    mass: float
    """Of what is beyond it [kg]."""
    centre: tuple[float, float, float]
    """[m]"""
    masses: tuple[tuple[float, float, float] | None, ...]
    """
    Centres of the masses that are added in data sets 1 to 8; None: no mass [m]. 5 to 8 are those
    of T Table 5.3; the others are not printed.
    """
    correction: tuple[float, ...]
    """Gains that were off on a robot, of a left leg and of a right one."""


FOOT = Place(
    'foot', 0.8, (0.03, 0.005, 0.04),
    (None, (0.30, -0.035, 0.03), (0.05, 0.12, 0.06), (0.12, -0.10, 0.10),
     (0.39, -0.035, 0.029), (0.21, 0.0, 0.063), None, (-0.04, 0.0, 0.063)),
    (0.995, 0.981, 0.999, 0.992, 0.952, 1.017),
)  # fmt: skip
LEG = Place(
    'leg', 2.95, (0.01, -0.01, 0.22),
    (None, (0.30, -0.035, 0.40), (0.05, 0.12, 0.43), (0.12, -0.10, 0.47),
     (0.39, -0.035, 0.39), (0.20, 0.0, 0.43), None, (-0.043, 0.0, 0.43)),
    (0.987, 0.958, 0.996, 1.021, 0.971, 1.012),
)  # fmt: skip
CALIBRATION, VALIDATION = range(0, 4), range(4, 8)
"""Which of the data sets."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """Data sets of one sensor at one place, and what the workshop says of it."""

    place: Place
    matrix: Array
    """The true one, shape (6, 6)."""
    workshop: Array
    """What the workshop says, shape (6, 6)."""
    data_sets: tuple[AddedMass, ...]
    """Eight."""


def simulate(place: Place, matrix: Array, rng: np.random.Generator) -> Experiment:
    """
    Make the data sets of a sensor.

    matrix (6, 6).
    """
    correction = np.diag(place.correction)
    correction[:3, 3:] = rng.uniform(-COUPLING, COUPLING, (3, 3))
    noise = np.concatenate([rng.uniform(*of, 3) for of in (FORCE_NOISE, MOMENT_NOISE)])
    bias = rng.normal(scale=ACCELEROMETER_BIAS, size=3)
    offset = rng.normal(size=6) * OFFSETS
    sets = []
    for k, centre in enumerate(place.masses):
        gravity = _gravity(rng)
        added = 0.0 if centre is None else ADDED
        at = np.zeros(3) if centre is None else np.array(centre)
        M = weight_matrix(place.mass, place.mass * np.array(place.centre))
        M = M + weight_matrix(added, added * at)
        offset = offset + rng.normal(size=6) * DRIFTS
        wrenches = gravity @ M.T + offset + rng.normal(size=(len(gravity), 6)) * noise
        counts = np.asarray(np.linalg.solve(matrix, wrenches.T).T.round(), dtype=np.float64)
        read = -gravity + bias + rng.normal(size=gravity.shape) * ACCELEROMETER_NOISE
        sets.append(AddedMass(str(k + 1), counts, read, added, at))
    return Experiment(place, matrix, correction @ matrix, tuple(sets))


def _gravity(rng: np.random.Generator) -> Array:
    """Return gravity in the axes of sensor and accelerometer while the hip moves, (n, 3)."""
    t = np.arange(int(DURATION * RATE)) / RATE
    phases = rng.uniform(0.0, 2 * np.pi, 2)
    angles = RANGES / 2 * np.sin(2 * SPEED / RANGES * t[:, None] + phases)
    # The leg hangs down, and z of its sensors points along it towards the foot.
    turns = Rotation.from_euler('yx', angles).inv()
    return np.asarray(turns.apply([0.0, 0.0, GRAVITY]))
