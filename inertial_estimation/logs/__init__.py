# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs: bag_samples.py and table_formats.py make samples of them; replay and identification."""
