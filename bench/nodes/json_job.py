# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What runs in a process of its own for callers without ROS: JSON in, JSON out."""

import json
import sys
from collections.abc import Callable
from typing import Any

from inertial_estimation.errors import InertialEstimationError


def answer(work: Callable[[dict[str, Any]], Any]) -> int:
    """Do what standard input asks for, and write what comes of it to standard output."""
    try:
        found = work(json.load(sys.stdin))
    except InertialEstimationError as error:
        sys.stderr.write(f'{error}\n')
        return 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps(found) + '\n')
    return 0
