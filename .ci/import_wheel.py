# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Imports every module of the installed package that promises to work without ROS."""

import importlib
import pkgutil
from pathlib import Path

import inertial_estimation

CHECKOUT = Path(__file__).resolve().parents[1]
NEED_ROS = (
    'inertial_estimation.ros.',
    'inertial_estimation.simulation.node',
    'inertial_estimation.demo.recorder',
)

folder = Path(inertial_estimation.__file__).resolve().parent
if CHECKOUT in folder.parents:
    raise SystemExit(f'the package was imported from the checkout: {folder}')
if not (folder / 'py.typed').is_file():
    raise SystemExit('the wheel has no py.typed')

modules = [
    module.name
    for module in pkgutil.walk_packages([str(folder)], 'inertial_estimation.')
    if not module.name.startswith(NEED_ROS)
]
for name in modules:
    importlib.import_module(name)
print(f'{len(modules)} modules import without ROS from the installed wheel')
