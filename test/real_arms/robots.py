# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Real arms, their logs and how these are split; the logs are not part of the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_INSTALLED = Path('share', 'inertial_estimation', 'config')
CONFIGS = next(
    (
        folder
        for folder in (Path(__file__).parents[2] / 'config', Path(sys.prefix) / _INSTALLED)
        if (folder / 'identify_ur10e.yaml').exists()
    ),
    _INSTALLED,
)
"""Folder of the files that say how logs become rows."""


@dataclass(frozen=True)
class RealRobot:
    """A robot, its logs and how they are split."""

    name: str
    config: str
    """File of the folder ``config``."""
    urdf: str
    """In the folder of the logs; likewise below."""
    fitted: tuple[str, ...]
    predicted: tuple[str, ...]
    without: str = ''
    """Link of the description that was not on the robot, with all that it carries."""
    short: tuple[float, ...] = ()
    """Seconds of the first fitted log for fits to little data."""

    def description(self, data: Path) -> str:
        """Return the description of the robot as it was."""
        urdf = (data / self.urdf).read_text(encoding='utf-8')
        return _without(urdf, self.without) if self.without else urdf


ROBOTS = (
    RealRobot(
        'Panda',
        'identify_panda.yaml',
        'models/panda_wrist_ft.urdf',
        ('panda_excitation/log.npz@0:11',),
        ('panda_excitation/log.npz@11:',),
        without='panda_hand',
    ),
    RealRobot(
        'UR10e',
        'identify_ur10e.yaml',
        'ur10e/ur10e.urdf',
        ('ur10e/fourier_30s_12h.npz@6.35:35.1',),
        ('ur10e/fourier_40s_12h.npz@5:44.6', 'ur10e/fourier_20s_8h.npz@3.2:23.1'),
        short=(1.2, 2.4, 4.5, 8.9),
    ),
    RealRobot(
        'TX40',
        'identify_tx40.yaml',
        'staubli_tx40/tx40.urdf',
        ('staubli_tx40/train.npz@0:4',),
        ('staubli_tx40/train.npz@4:',),
        short=(0.8, 1.6),
    ),
    RealRobot(
        'TIAGo',
        'identify_tiago.yaml',
        'tiago/tiago.urdf',
        ('tiago/train.npz@0:26',),
        ('tiago/train.npz@26:',),
        short=(5.2,),
    ),
)


def _without(urdf: str, link: str) -> str:
    """Return a description without a link and all that it carries."""
    root = ElementTree.fromstring(urdf)
    gone = {link}
    joints = root.findall('joint')
    for _ in joints:
        for joint in joints:
            ends = [joint.find(end) for end in ('parent', 'child')]
            parent, child = ('' if end is None else end.get('link', '') for end in ends)
            if parent in gone:
                gone.add(child)
    for element in list(root):
        # Links by their names; joints, sensors and the rest by the links that they name.
        named = [element.get('name')] if element.tag == 'link' else [element.get('reference')]
        named += [end.get('link') for tag in ('parent', 'child') for end in element.findall(tag)]
        if not gone.isdisjoint(named):
            root.remove(element)
    return ElementTree.tostring(root, encoding='unicode')
