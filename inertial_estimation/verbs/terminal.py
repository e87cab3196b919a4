# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Old name of a module of the command."""

from inertial_estimation.cli.render import *  # noqa: F403
