# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Six workshop tools, each held by an FT sensor: readings, noise, and what the tools weigh.

The data are simulated [Nadeau, Giamou, Kelly, The sum of its parts, ICRA 2023] and come without
noise; the authors' noise is added here. The wrench at the sensor is the known wrench on a robot of
one link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.sample import SampleBatch
from published_experiments.data_sets import read_array

Array = NDArray[np.float64]

TOOLS = ('c_clamp', 'electronic_caliper', 'hammer', 'pliers', 'ruler', 'screwdriver')
FILES = tuple(f'stars_tools_sim/{name}.npz' for name in TOOLS)
"""Below the folder of the data sets."""
LEVELS: Mapping[str, float] = {'none': 0.0, 'low': 1.0, 'moderate': 2.0, 'high': 4.0}
"""Of the authors' noise, over the low one."""
LOW_NOISE = (0.025, 0.25, 0.05, 0.0025)
"""
Standard deviations of linear and angular acceleration, force and torque [m/s^2, rad/s^2, N, Nm].
"""
UPWARD = np.array([0.0, 0.0, 9.81])
"""The generator's gravity, in world axes: it has the other sign than usual [m/s^2]."""
LINK = 'tool'
"""Of the robot that a tool is."""


class Body(NamedTuple):
    """What a tool weighs, in sensor axes."""

    mass: float
    """[kg]"""
    center: Array
    """Shape (3,) [m]."""
    inertia: Array
    """About the centre of mass, shape (3, 3) [kg m^2]."""

    @classmethod
    def of(cls, parameters: Array) -> Body:
        """
        Return the body of inertial parameters.

        parameters (10,).
        """
        mass, center = float(parameters[0]), parameters[1:4] / parameters[0]
        xx, xy, yy, xz, yz, zz = parameters[4:]
        about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return cls(mass, center, about_origin - mass * _point(center))

    @property
    def parameters(self) -> Array:
        """Inertial parameters, shape (10,), as in `model.inertia`."""
        about_origin = self.inertia + self.mass * _point(self.center)
        lower = about_origin[np.tril_indices(3)]
        return np.array([self.mass, *(self.mass * self.center), *lower])

    def errors(self, truth: Body) -> Array:
        """
        Return by how much this is another body.

        Returns (3,).
        """
        inertia = np.linalg.norm(self.inertia - truth.inertia) / np.linalg.norm(truth.inertia)
        center = np.linalg.norm(self.center - truth.center)
        return np.array([abs(self.mass / truth.mass - 1.0), center, inertia])


def ball(mass: float, center: Array, radius: float) -> Body:
    """
    Return a ball of even density.

    mass [kg]; center (3,) [m]; radius [m].
    """
    return Body(mass, center, 0.4 * mass * radius**2 * np.eye(3))


@dataclass(frozen=True, eq=False)
class Tool:
    """A tool with what its sensor sees, in sensor axes, and what it weighs."""

    name: str
    times: Array
    """Shape (n,) [s]."""
    angular_velocities: Array
    """Shape (n, 3) [rad/s]."""
    proper_accelerations: Array
    """Of the sensor's origin, shape (n, 3) [m/s^2]."""
    angular_accelerations: Array
    """Shape (n, 3) [rad/s^2]."""
    forces: Array
    """Shape (n, 3) [N]."""
    torques: Array
    """About the sensor's origin, shape (n, 3) [Nm]."""
    truth: Body

    @classmethod
    def read(cls, folder: Path, name: str) -> Tool:
        """Read a tool."""
        path = folder / f'stars_tools_sim/{name}.npz'
        world_R_sensor = read_array(path, 'ft_pose')[:, :3, :3]

        def seen(vectors: Array) -> Array:
            return np.asarray(np.einsum('nij,ni->nj', world_R_sensor, vectors))

        velocity, acceleration = read_array(path, 'ft_vel'), read_array(path, 'ft_acc')
        wrench = read_array(path, 'wrench')
        return cls(
            name,
            read_array(path, 't'),
            seen(velocity[:, 3:]),
            seen(acceleration[:, :3] - UPWARD),
            seen(acceleration[:, 3:]),
            seen(wrench[:, :3]),
            seen(wrench[:, 3:]),
            Body(
                float(read_array(path, 'mass')),
                read_array(path, 'com_ft'),
                read_array(path, 'inertia_com_ft'),
            ),
        )

    def evidence(
        self, builder: EquationBuilder, level: float, rng: np.random.Generator
    ) -> Evidence:
        """Return what noisy readings say."""
        exact = self.proper_accelerations, self.angular_accelerations, self.forces, self.torques
        # White noise alike on all axes is the same in sensor axes as in those of the world.
        a, dw, force, torque = (
            value + level * deviation * rng.normal(size=value.shape)
            for value, deviation in zip(exact, LOW_NOISE, strict=True)
        )
        stamps = np.round(1e9 * self.times).astype(np.int64)
        none = np.zeros((len(stamps), 0))
        samples = SampleBatch(
            stamps, none, none, none, self.angular_velocities[:, None], a[:, None], dw[:, None],
            np.zeros((len(stamps), 0, 6)),
        )  # fmt: skip
        (found,) = gather(builder, samples, external={LINK: np.hstack([force, torque])})
        return found


def _point(place: Array) -> Array:
    """Return the inertia tensor of one kilogram at a place, (3, 3)."""
    return float(place @ place) * np.eye(3) - np.outer(place, place)
