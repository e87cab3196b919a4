# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Names of topics for names of links, joints and sensors."""

from __future__ import annotations

import re
from collections.abc import Iterable


def topic_names(names: Iterable[str]) -> list[str]:
    """Return names that are valid in a topic, different ones for different names."""
    safe: list[str] = []
    for name in names:
        token = re.sub(r'[^A-Za-z0-9_]', '_', name)
        if not token or token[0].isdigit():
            token = '_' + token
        candidate, count = token, 2
        while candidate in safe:
            candidate, count = f'{token}_{count}', count + 1
        safe.append(candidate)
    return safe
