# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where data of others may be found beside the checkout; tests that need them skip otherwise."""

from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / 'shared'
