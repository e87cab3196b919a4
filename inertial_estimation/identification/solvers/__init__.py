# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every method that finds consistent parameters, and what each is made of."""
