# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The seven joints of the WAM arm of S, from its DH table as URDF text, and its tables."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, filtfilt

from inertial_estimation.identification.unknowns import INERTIAL, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from published_experiments.data_sets import read_array, read_json, read_table

Array = NDArray[np.float64]

_MODEL, _TABLE_3, _TABLE_6, _REFERENCES = (
    'wam7/wam7_model.json',
    'wam7/table3_base_parameters.csv',
    'wam7/table6_estimates.csv',
    tuple(f'wam7/traj{number}_reference_100hz.npz' for number in range(1, 5)),
)
FILES = (_MODEL, _TABLE_3, _TABLE_6, *_REFERENCES)
"""Below the folder of the data sets."""
_KEYS = ('dh', 'links_cad', 'com_bounds', 'total_mass_upper', 'published')
_COLUMNS = ('index', 'combination', 'cad_without_Ia', 'ols', 'fbpe_ols_extra')
RATE = 100.0
"""Of the reference trajectories [Hz]."""
JOINTS = range(1, 8)
TRAJECTORIES = {
    'identification': 1, 'validation_A': 2, 'validation_B': 3, 'validation_C': 4,
}  # fmt: skip
"""Numbers of the reference trajectories."""
N_UNKNOWNS = 98
"""Ten of each moved link, four of each joint."""
TERMS = {
    'Ia': Term.DRIVE_INERTIA,
    'fv': Term.VISCOUS,
    'fc': Term.COULOMB,
    'fo': Term.OFFSET,
}
"""Unknowns of each joint by the symbols of the tables."""
_SYMBOLS = {'m': 'm_{}', **{f'mc_{a}': 'l_{}' + a for a in 'xyz'}}
_SYMBOLS |= {f'I{a}': 'L_{}' + a for a in ('xx', 'xy', 'yy', 'xz', 'yz', 'zz')}
_EDGE = 50
"""Samples that the filter spoils at either end of a trajectory."""


def link_symbols(k: int) -> list[str]:
    """Return the names that S gives to the parameters of a link."""
    return [_SYMBOLS[name].format(k) for name in INERTIAL]


class WamArm:
    """The arm."""

    unknowns = Unknowns(
        tuple(f'link_{k}' for k in JOINTS),
        tuple(Extra(f'joint_{k}', term) for k in JOINTS for term in TERMS.values()),
    )
    """The 98 of S: ten of each moved link about its DH frame, four of each joint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def model(self) -> dict[str, Any]:
        """The DH table, the CAD parameters, and what was published."""
        return read_json(self._folder / _MODEL, _KEYS)

    @cached_property
    def urdf(self) -> str:
        """The arm as URDF."""
        links = zip(self.model['dh'], self.model['links_cad'], strict=True)
        parts = [_moved(k, dh, link) for k, (dh, link) in enumerate(links, 1)]
        return f'<robot name="wam7"><link name="link_0"/>{"".join(parts)}</robot>'

    @cached_property
    def robot(self) -> Robot:
        """The arm, bolted to the ground."""
        return Robot.from_urdf(self.urdf, fixed_link='link_0')

    @cached_property
    def weightless(self) -> Robot:
        """The arm without gravity."""
        return Robot.from_urdf(self.urdf, fixed_link='link_0', gravity=(0.0, 0.0, 0.0))

    @property
    def symbols(self) -> list[str]:
        """The names that the tables give to the unknowns."""
        inertial = [symbol for k in JOINTS for symbol in link_symbols(k)]
        return inertial + [f'{term}_{k}' for k in JOINTS for term in TERMS]

    @cached_property
    def table3(self) -> BaseParameters:
        """The groupings as published."""
        rows = read_table(self._folder / _TABLE_3, ('combination',))
        return BaseParameters.parse([row['combination'] for row in rows], self.symbols)

    @cached_property
    def table6(self) -> list[dict[str, str]]:
        """The estimates as published, as text."""
        return read_table(self._folder / _TABLE_6, _COLUMNS)

    @cached_property
    def cad_parameters(self) -> Array:
        """The parameters of each moved link about its DH frame, shape (7, 10)."""
        return np.array([H @ self.robot.parameters[k] for k, H in enumerate(self._to_dh, 1)])

    def regressor(self, q: Array, dq: Array, ddq: Array, *, gravity: bool = True) -> Array:
        """
        Return torque rows over the unknowns.

        q, dq, ddq (n, 7) [rad, rad/s, rad/s^2]; returns (n, 7, 98).
        """
        robot = self.robot if gravity else self.weightless
        (found,) = submodel_regressors(robot, _batch(q, dq, ddq), robot.submodels)
        Y = np.zeros((len(q), 7, N_UNKNOWNS))
        for k, of_dh in enumerate(self._of_dh):
            Y[:, :, 10 * k : 10 * k + 10] = found.torques[:, :, 10 * (k + 1) :][:, :, :10] @ of_dh
        friction = np.stack([ddq, dq, np.sign(dq), np.ones_like(dq)], axis=-1)
        for j in range(7):
            Y[:, j, 70 + 4 * j : 74 + 4 * j] = friction[:, j]
        return Y

    def trajectory(self, number: int) -> tuple[Array, Array, Array]:
        """
        Return a reference, filtered as in S 5.2.2.

        Returns (n, 7) [rad, rad/s, rad/s^2].
        """
        q = read_array(self._folder / _REFERENCES[number - 1], 'q')
        b, a = butter(3, self.model['published']['cutoff_hz'] / (RATE / 2))
        q = filtfilt(b, a, q, axis=0)
        dq = np.gradient(q, 1 / RATE, axis=0)
        ddq = np.gradient(dq, 1 / RATE, axis=0)
        return q[_EDGE:-_EDGE], dq[_EDGE:-_EDGE], ddq[_EDGE:-_EDGE]

    @cached_property
    def _to_dh(self) -> list[Array]:
        """Maps of each moved link's parameters to those about its DH frame, (10, 10)."""
        poses = [self.robot.frame(f'link_{k}')[1] for k in JOINTS]
        return [_congruence(_inverse(L_H_DH)) for L_H_DH in poses]

    @cached_property
    def _of_dh(self) -> list[Array]:
        """Maps the other way."""
        return [_inverse(to_dh) for to_dh in self._to_dh]


def _moved(k: int, dh: dict[str, float], link: dict[str, Any]) -> str:
    """Return a joint about z of the link before, and the frame at its far end."""
    inertia = ' '.join(f'i{n}="{v!r}"' for n, v in link['inertia_com'].items())
    com = ' '.join(map(repr, link['com']))
    return f"""
      <link name="arm_{k}"/>
      <joint name="joint_{k}" type="continuous"><parent link="link_{k - 1}"/>
        <child link="arm_{k}"/><axis xyz="0 0 1"/></joint>
      <joint name="end_{k}" type="fixed"><parent link="arm_{k}"/><child link="link_{k}"/>
        <origin xyz="{dh['a']} 0 {dh['d']}" rpy="{dh['alpha']!r} 0 0"/></joint>
      <link name="link_{k}"><inertial><origin xyz="{com}"/><mass value="{link['mass']}"/>
        <inertia {inertia}/></inertial></link>"""


def _congruence(H):
    """Return the map of inertial parameters that H J H' is of the pseudo-inertia J, (10, 10)."""
    to_pseudo_inertia = pseudo_inertia(np.eye(10)).reshape(10, 16).T
    return np.linalg.pinv(to_pseudo_inertia) @ np.kron(H, H) @ to_pseudo_inertia


def _inverse(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _batch(q: Array, dq: Array, ddq: Array) -> SampleBatch:
    """Return joint motions as samples of a robot without other sensors."""
    none = np.zeros((len(q), 0, 3))
    return SampleBatch(np.arange(len(q)), q, dq, ddq, none, none, none, np.zeros((len(q), 0, 6)))
