# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The benchmarks run: one round of each job that needs neither real logs nor ROS.

Not covered: the figures, which `make bench` prints, and the nodes.
"""

import json

import numpy as np
import pytest

for name in ('clarabel', 'cvxpy', 'icub_models', 'idyntree', 'mujoco'):
    pytest.importorskip(name, reason='the benchmarks compare with it or run on it')

from bench import derivatives, engine, report  # noqa: E402


@pytest.mark.parametrize('measure', [engine.measure, derivatives.measure])
def test_job_returns_figures_that_are_finite(measure, tmp_path):
    tables, goals = measure(rounds=1)
    report.write(tmp_path / 'bench.json', tables, goals)
    read = json.loads((tmp_path / 'bench.json').read_text())
    assert len(read['tables']) == len(tables)
    for table in read['tables']:
        figures = [x for row in table['rows'] for x in row if isinstance(x, float)]
        assert figures
        assert np.isfinite(figures).all()


def test_traced_and_imported_files_are_counted():
    journeys = pytest.importorskip('bench.journeys', reason='it reads bags')
    estimator = journeys.PACKAGE / 'estimation' / 'wrench_estimator.py'
    assert estimator in journeys.imported('ros/estimator_node.py')
    assert estimator not in journeys.imported('errors.py')
    robot = journeys.Robot.from_urdf(journeys.robots.synthetic_urdf(1), imus=['root'])
    found = journeys.called(lambda: journeys.WrenchEstimator(robot))
    assert estimator in found and journeys.PACKAGE / 'errors.py' not in found
