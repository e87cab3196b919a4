# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Random faults on an estimator node at 500 Hz, without the middleware: `soak.py SECONDS [SEED]`.

Prints private memory, cycle times and counts of each tenth of the run, and ends with an error
unless both are flat. SECONDS are those of the stamps; nothing waits for a clock.
"""

import sys
from pathlib import Path
from time import perf_counter

import conftest  # noqa: F401, sets the environment of ROS
import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from test_live_faults import FAULTS, SETTINGS, cycle, encode

from inertial_estimation.model.parameter_update import ParameterUpdate
from inertial_estimation.ros.estimator_node import EstimatorNode

PERIOD_NS = 2_000_000
PARTS = 10
LONGEST = 1000
"""Fault [cycles]."""
FIRST_REPORT = 2500
"""Cycles before the first report, so that what waits for it reaches its bound at once: else that
happens whenever the thread of the reports is late."""
MAX_GROWTH = 1.0
"""Of the memory after the first three tenths [MB/h]."""
MAX_SLOWING = 1.5
"""Median cycle time of the last tenth over that of the fourth."""


def private():
    """Return the resident memory without that of mapped files, which comes and goes [MB]."""
    resident, shared = Path('/proc/self/statm').read_text().split()[1:3]
    return (int(resident) - int(shared)) * 4096e-6


def main(seconds, seed=0):
    """Run; return whether memory and cycle times are flat."""
    context = Context()
    rclpy.init(context=context)
    overrides = [Parameter(name, value=value) for name, value in SETTINGS.items()]
    pipeline = EstimatorNode(context=context, parameter_overrides=overrides).pipeline
    rng, robot = np.random.default_rng(seed), pipeline.robot
    offsets = pipeline._estimator.calibration.offsets.copy()
    n, rows, samples = round(seconds * 1e9 / PERIOD_NS), [], 0
    # A list of so many numbers would take more memory each time that it becomes longer.
    spans = np.full(2 * n // PARTS, np.nan)
    fault, begin, end, injected, names = FAULTS['frozen'][0](), 0, 0, 0, [*FAULTS]
    print('time [s]  memory [MB]  cycle p50, p99 [us]  estimates  faults  updates taken, worse')
    for k in range(n):
        if k >= end + 500:
            # Queues and plans reach their bounds at once, with each fault at its longest.
            is_first = injected < len(names)
            fault = FAULTS[names[injected] if is_first else rng.choice(names)][0]()
            begin, injected = k + int(rng.integers(200, 1000)), injected + 1
            end = begin + (LONGEST if is_first else int(rng.integers(50, LONGEST)))
            scale = rng.choice([1.0, 1.0, 0.5, 1.3])
            pipeline._model.offer(ParameterUpdate(scale * robot.parameters))
        for topic, stamp, values in fault(list(cycle(k, PERIOD_NS)), begin <= k < end):
            data, start = encode(topic, stamp, values), perf_counter()
            sample = pipeline._inputs.router.handle(topic, data)
            if sample is not None:
                pipeline._on_sample(sample, start)
                spans[samples] = 1e6 * (perf_counter() - start)
                samples += 1
        if k % 500 == 0 and k >= FIRST_REPORT:
            pipeline._report()
        if (k + 1) % (n // PARTS) == 0:
            # In place: the copy that a quantile makes would stay in the heap of the allocator.
            spans[:samples].sort()
            p50, p99 = spans[[samples // 2, 99 * samples // 100]]
            rows.append((private(), p50, p99, samples))
            model, stamp = pipeline._model, 1e-9 * PERIOD_NS * (k + 1)
            print('{:8.0f}  {:8.2f}  {:7.0f} {:7.0f}  {:14d}'.format(stamp, *rows[-1]),
                  f'  {injected:6d}  {model.taken} {model.worse}', flush=True)  # fmt: skip
            samples = 0
    found = np.array(rows[3:])
    slope = np.polyfit(np.arange(len(found)), found[:, 0], 1)[0] * PARTS / seconds * 3600.0
    slowing = found[-1, 1] / found[0, 1]
    print(f'{slope:.2f} MB/h, median cycle times {slowing:.2f}; failed: {pipeline._failed}')
    assert pipeline._failed == 0
    np.testing.assert_array_equal(pipeline._estimator.calibration.offsets, offsets)
    assert slope <= MAX_GROWTH and slowing <= MAX_SLOWING


if __name__ == '__main__':
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
