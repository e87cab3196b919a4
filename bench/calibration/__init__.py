# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of FT sensors on published data, and as the thesis does it on synthetic data."""
