# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Identification beside a real iCub on one foot: what it predicts of readings to come."""
