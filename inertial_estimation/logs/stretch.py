# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Old name of `log.LogSlice`."""

from inertial_estimation.logs.log import LogSlice as Stretch

__all__ = ['Stretch']
