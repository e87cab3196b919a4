# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Motions that tell what a robot weighs: designed, checked, written for a controller."""

from inertial_estimation.excite.design import Design, ExciteSettings, design

__all__ = ['Design', 'ExciteSettings', 'design']
