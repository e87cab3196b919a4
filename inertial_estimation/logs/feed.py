# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Old name of a function of `bag`."""

from inertial_estimation.logs.bag import resolve as resolve
