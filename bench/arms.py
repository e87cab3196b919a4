# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fit real arms with several methods, and predict other logs of them, as `identify` does."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from bench.report import Table
from inertial_estimation.arrays import Array
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.logs.identify import identify
from inertial_estimation.logs.identify_settings import IdentifySettings

CONFIGS = Path(__file__).resolve().parents[1] / 'config'
ARMS = {
    'Panda': ('panda', 'models/panda_wrist_ft.urdf', ['panda_excitation/log.npz@0:11'],
              ['panda_excitation/log.npz@11:']),
    'UR10e': ('ur10e', 'ur10e/ur10e.urdf', ['ur10e/fourier_30s_12h.npz@6.35:35.1'],
              ['ur10e/fourier_40s_12h.npz@5:44.6', 'ur10e/fourier_20s_8h.npz@3.2:23.1']),
    'TX40': ('tx40', 'staubli_tx40/tx40.urdf', ['staubli_tx40/train.npz@0:4'],
             ['staubli_tx40/train.npz@4:']),
    'TIAGo': ('tiago', 'tiago/tiago.urdf', ['tiago/train.npz@0:26'], ['tiago/train.npz@26:']),
}  # fmt: skip
"""Settings, URDF, fitted logs, predicted logs."""
METHODS = ('entropic', 'semidefinite', 'pullback', 'euclidean', 'least_squares')


def measure(data: Path) -> tuple[list[Table], list]:
    """Return residuals over measured efforts, all joints together [%]."""
    rows = []
    for name, (config, urdf, fitted, predicted) in ARMS.items():
        settings = IdentifySettings.from_yaml(CONFIGS / f'identify_{config}.yaml')
        text = mounted((data / urdf).read_text(encoding='utf-8'))
        for method in METHODS:
            found = identify(
                text, [data / log for log in fitted], settings, method=method,
                validate=[str(data / log) for log in predicted],
            )  # fmt: skip
            (block,), (unseen,) = found.fit.blocks, found.validation
            errors = (error(one, block.answer.x) for one in (block.evidence, unseen))
            rows.append((name, method, block.answer.rank, *errors))
    columns = ('arm', 'method', 'rank', 'fitted [%]', 'predicted [%]')
    return [Table('Residual over effort, all equations together', columns, rows)], []


def error(evidence: Evidence, x: Array) -> float:
    """Return the root of the squares of all residuals over those of efforts [%]."""
    squares, residuals, signals = np.zeros(2), evidence.residuals(x), evidence.signals(x)
    for kind, part in evidence.kinds.items():
        if part.count:
            squares += part.count * np.square([residuals[kind], signals[kind]])
    return 100.0 * float(np.sqrt(squares[0] / squares[1]))


def mounted(urdf: str) -> str:
    """Return a URDF without the hand of the Panda, which was not mounted."""
    root = ElementTree.fromstring(urdf)
    gone = {'panda_hand'}
    for _ in range(3):
        for joint in root.findall('joint'):
            if joint.find('parent').get('link') in gone:
                gone.add(joint.find('child').get('link'))
    for element in list(root):
        names = {element.get('name')} if element.tag == 'link' else {element.get('reference')}
        names |= {end.get('link') for tag in ('parent', 'child') for end in element.findall(tag)}
        if names & gone:
            root.remove(element)
    return ElementTree.tostring(root, encoding='unicode')
