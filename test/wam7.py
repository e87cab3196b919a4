# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The seven joints of the WAM arm of S, from its DH table as URDF text, and its tables."""

from __future__ import annotations

import csv
import json

import numpy as np
from scipy.signal import butter, filtfilt
from shared_data import SHARED

from inertial_estimation.identification.unknowns import INERTIAL, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.motion_spans import congruence
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = np.ndarray

FOLDER = SHARED / 'data' / 'wam7'
RATE = 100.0
"""Of the reference trajectories [Hz]."""
JOINTS = range(1, 8)
_TERMS = {
    'Ia': Term.DRIVE_INERTIA,
    'fv': Term.VISCOUS,
    'fc': Term.COULOMB,
    'fo': Term.OFFSET,
}
_SYMBOLS = {'m': 'm_{}', **{f'mc_{a}': 'l_{}' + a for a in 'xyz'}}
_SYMBOLS |= {f'I{a}': 'L_{}' + a for a in ('xx', 'xy', 'yy', 'xz', 'yz', 'zz')}
_EDGE = 50
"""Samples that the filter spoils at either end of a trajectory."""


def model() -> dict:
    """Return the DH table, the CAD parameters, and what was published."""
    return json.loads((FOLDER / 'wam7_model.json').read_text())


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the tables."""
    with (FOLDER / name).open() as file:
        return list(csv.DictReader(file))


def urdf() -> str:
    """
    Return the arm as URDF.

    Distal DH: the frame of a link lies at its far end, and the axis of its joint in the frame
    of the link before. In URDF the axis passes through the frame of the link that it moves; so
    each link is two, ``arm_k`` at its joint and ``link_k`` fixed to it at its far end.
    """
    data = model()
    parts = ['<robot name="wam7"><link name="link_0"/>']
    for k, (dh, link) in enumerate(zip(data['dh'], data['links_cad'], strict=True), 1):
        parts.append(_moved(k, dh['alpha'], dh['a'], dh['d'], link))
    return ''.join(parts) + '</robot>'


def _moved(k: int, alpha: float, a: float, d: float, link: dict) -> str:
    """Return a joint about z of the link before, and the frame at its far end."""
    inertia = ' '.join(f'i{n}="{v!r}"' for n, v in link['inertia_com'].items())
    com = ' '.join(map(repr, link['com']))
    return f"""
      <link name="arm_{k}"/>
      <joint name="joint_{k}" type="continuous"><parent link="link_{k - 1}"/>
        <child link="arm_{k}"/><axis xyz="0 0 1"/></joint>
      <joint name="end_{k}" type="fixed"><parent link="arm_{k}"/><child link="link_{k}"/>
        <origin xyz="{a} 0 {d}" rpy="{alpha!r} 0 0"/></joint>
      <link name="link_{k}"><inertial><origin xyz="{com}"/><mass value="{link['mass']}"/>
        <inertia {inertia}/></inertial></link>"""


def robot() -> Robot:
    """Return the arm, bolted to the ground."""
    return Robot.from_urdf(urdf(), fixed_link='link_0')


def unknowns() -> Unknowns:
    """Return the 98 of S: ten of each moved link about its DH frame, four of each joint."""
    extras = tuple(Extra(f'joint_{k}', term) for k in JOINTS for term in _TERMS.values())
    return Unknowns(tuple(f'link_{k}' for k in JOINTS), extras)


def symbols() -> list[str]:
    """Return the names that the tables give to these unknowns."""
    inertial = [symbol.format(k) for k in JOINTS for symbol in map(_SYMBOLS.get, INERTIAL)]
    return inertial + [f'{term}_{k}' for k in JOINTS for term in _TERMS]


def table3() -> BaseParameters:
    """Return the groupings as published."""
    texts = [row['combination'] for row in rows('table3_base_parameters.csv')]
    return BaseParameters.parse(texts, symbols())


def cad_parameters() -> Array:
    """Return the parameters of each moved link about its DH frame, shape (7, 10)."""
    arm = robot()
    to_dh = dh_maps(arm)
    return np.array([to_dh[k] @ arm.parameters[k + 1] for k in range(len(to_dh))])


def dh_maps(arm: Robot) -> list[Array]:
    """Return the map of each moved link's parameters to those about its DH frame, (10, 10)."""
    poses = [arm.frame(f'link_{k}')[1] for k in JOINTS]
    return [congruence(np.linalg.inv(L_H_DH)) for L_H_DH in poses]


def regressor(arm: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Return torque rows over the unknowns, shape (n, 7, 98)."""
    found = submodel_regressors(arm, batch(q, dq, ddq), arm.submodels)[0]
    Y = np.zeros((len(q), 7, 98))
    for k, to_dh in enumerate(dh_maps(arm)):
        Y[:, :, 10 * k : 10 * k + 10] = found.torques[:, :, 10 * (k + 1) :][:, :, :10] @ (
            np.linalg.inv(to_dh)
        )
    friction = np.stack([ddq, dq, np.sign(dq), np.ones_like(dq)], axis=-1)
    for j in range(7):
        Y[:, j, 70 + 4 * j : 74 + 4 * j] = friction[:, j]
    return Y


def batch(q: Array, dq: Array, ddq: Array) -> SampleBatch:
    """Return joint motions as samples of a robot without other sensors."""
    none = np.zeros((len(q), 0, 3))
    return SampleBatch(np.arange(len(q)), q, dq, ddq, none, none, none, np.zeros((len(q), 0, 6)))


def trajectory(number: int) -> tuple[Array, Array, Array]:
    """Return positions, velocities and accelerations of a reference, filtered as in S 5.2.2."""
    with np.load(FOLDER / f'traj{number}_reference_100hz.npz') as file:
        q = file['q']
    b, a = butter(3, model()['published']['cutoff_hz'] / (RATE / 2))
    q = filtfilt(b, a, q, axis=0)
    dq = np.gradient(q, 1 / RATE, axis=0)
    ddq = np.gradient(dq, 1 / RATE, axis=0)
    return q[_EDGE:-_EDGE], dq[_EDGE:-_EDGE], ddq[_EDGE:-_EDGE]
