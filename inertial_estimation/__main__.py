# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The command as a module: ``python -m inertial_estimation``."""

import sys

from inertial_estimation.cli import main

if __name__ == '__main__':
    sys.exit(main())
