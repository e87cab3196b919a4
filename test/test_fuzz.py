# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Random changes of good input, for every reader; `make fuzz` searches further, guided by coverage.

Not covered: whole processes, in `test/ros`.
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from fuzz_targets import TARGETS, changed, survives

RUNS = 300


@pytest.mark.parametrize('name', TARGETS)
def test_damaged_input_is_refused_or_read(name):
    read, examples = TARGETS[name]()
    for example in examples:
        read(example)
    rng = np.random.default_rng(0)
    for k in range(RUNS):
        data = changed(examples[k % len(examples)], rng)
        try:
            survives(read, data)
        except BaseException as error:
            error.add_note(f'input {k} of {name}: {data[:200]!r}')
            raise
