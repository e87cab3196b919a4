# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The seven joints of the WAM arm of S: URDF by its DH table, published tables, regressor."""

import csv
import json
from functools import cached_property

import numpy as np
from scipy.signal import butter, filtfilt
from shared_data import SHARED

from inertial_estimation import Bounds, Robot, SampleBatch, Unknowns, submodel_regressors
from inertial_estimation.identification.unknowns import Extra, Term
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.inertia import INERTIAL, pseudo_inertia

WAM = SHARED / 'data' / 'wam7'
RATE = 100.0
"""Of the reference trajectories [Hz]."""
EDGE = 50
"""Samples that the filter spoils at either end of a trajectory."""
JOINTS = range(1, 8)
TERMS = {
    'Ia': Term.DRIVE_INERTIA, 'fv': Term.VISCOUS, 'fc': Term.COULOMB, 'fo': Term.OFFSET
}  # fmt: skip
"""Unknowns of each joint by the symbols of the tables."""


def table(path):
    with path.open(newline='') as file:
        return list(csv.DictReader(file))


def link_symbols(k):
    """Return the names that S gives to the parameters of a link."""
    symbols = [name.replace('mc_', f'l_{k}').replace('I', f'L_{k}') for name in INERTIAL]
    return [f'm_{k}', *symbols[1:]]


class WamArm:
    """The arm, with the 98 unknowns of S: ten of each link about its DH frame, four a joint."""

    unknowns = Unknowns(
        tuple(f'link_{k}' for k in JOINTS),
        tuple(Extra(f'joint_{k}', term) for k in JOINTS for term in TERMS.values()),
    )

    def __init__(self):
        self.model = json.loads((WAM / 'wam7_model.json').read_text())
        self.table6 = table(WAM / 'table6_estimates.csv')
        links = zip(self.model['dh'], self.model['links_cad'], strict=True)
        parts = ''.join(_moved(k, dh, link) for k, (dh, link) in enumerate(links, 1))
        self.urdf = f'<robot name="wam7"><link name="link_0"/>{parts}</robot>'
        self.robot = Robot.from_urdf(self.urdf, fixed_link='link_0')
        poses = [self.robot.frame(f'link_{k}')[1] for k in JOINTS]
        to_dh = [_congruence(np.linalg.inv(L_H_DH)) for L_H_DH in poses]
        self.cad_parameters = np.array(
            [H @ self.robot.parameters[k] for k, H in enumerate(to_dh, 1)]
        )
        self._of_dh = [np.linalg.inv(H) for H in to_dh]
        self.symbols = [symbol for k in JOINTS for symbol in link_symbols(k)]
        self.symbols += [f'{term}_{k}' for k in JOINTS for term in TERMS]

    @cached_property
    def table3(self):
        """The groupings as published."""
        rows = table(WAM / 'table3_base_parameters.csv')
        return BaseParameters.parse([row['combination'] for row in rows], self.symbols)

    def regressor(self, q, dq, ddq):
        """Return torque equations, (n, 7, 98), of joint motions (n, 7)."""
        none = np.zeros((len(q), 0, 3))
        samples = SampleBatch(
            np.arange(len(q)), q, dq, ddq, none, none, none, np.zeros((len(q), 0, 6))
        )
        (found,) = submodel_regressors(self.robot, samples)
        links = np.split(found.torques[:, :, 10:], 7, axis=2)
        inertial = [Y @ of_dh for Y, of_dh in zip(links, self._of_dh, strict=True)]
        friction = np.stack([ddq, dq, np.sign(dq), np.ones_like(dq)], axis=-1)
        own = np.einsum('njk,ji->njik', friction, np.eye(7)).reshape(len(q), 7, 28)
        return np.concatenate([*inertial, own], axis=2)

    def trajectory(self, number):
        """Return a reference, filtered as in S 5.2.2, and its derivatives, (n, 7) each."""
        q = np.load(WAM / f'traj{number}_reference_100hz.npz')['q']
        b, a = butter(3, self.model['published']['cutoff_hz'] / (RATE / 2))
        q = filtfilt(b, a, q, axis=0)
        dq = np.gradient(q, 1 / RATE, axis=0)
        ddq = np.gradient(dq, 1 / RATE, axis=0)
        return q[EDGE:-EDGE], dq[EDGE:-EDGE], ddq[EDGE:-EDGE]

    def bounds(self, everything):
        """Return bounds that friction and drive inertia are positive, and those of Table 7."""
        extras = np.tile([[0.0, np.inf]] * 3 + [[-np.inf, np.inf]], (7, 1))
        if not everything:
            return Bounds(extras=extras)
        boxes = np.array([[box['lower'], box['upper']] for box in self.model['com_bounds']])
        total = np.array([0.0, self.model['total_mass_upper']])
        return Bounds(extras=extras, center_of_mass=boxes, total_mass=total)


def _moved(k, dh, link):
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
