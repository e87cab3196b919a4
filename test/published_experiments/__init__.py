# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Experiments of the sources of identification, on synthetic data and on published tables."""
