# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Identification of inertial parameters: equations, information, problems and their solvers."""
