# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External wrenches and joint torques from FT sensors and IMUs, inertial parameters, calibration.

    robot = Robot.from_urdf('icub.urdf', imus=['head'])
    estimator = WrenchEstimator(robot, [Contact('l_sole'), Contact('r_sole')])
    estimate = estimator.update(sample)
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = Path(__file__).with_suffix('.pyi').read_text(encoding='utf-8')
_HOMES = {name: home for home, name in re.findall(r'^from (\S+) import (\w+)', _STUB, re.M)}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command and the nodes start faster."""
    if name not in _HOMES:
        raise AttributeError(f"module 'inertial_estimation' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value
