# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Print the figures of docs/performance.md: ``python -m bench [times nodes live yoga ...]``."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from bench import report

JOBS = {
    'times': 'engine beside iDynTree, refits beside cvxpy',
    'derivatives': 'derivative filters: error, lag, time',
    'nodes': 'age, missed cycles and processor time of the nodes beside a bare reader (ROS)',
    'live': 'identification beside a simulated robot',
    'coverage': 'errors of identification over their stated deviations',
    'logs': 'time and memory of reading, replaying and identifying a bag at 1 kHz',
    'journeys': 'files that a reader of the code walks through',
    'arms': 'methods of identification on real arms (--data)',
    'yoga': 'readings of a real iCub predicted by what is identified (--data)',
}


def main() -> None:
    """Run the jobs that are asked for."""
    parser = argparse.ArgumentParser(
        'python -m bench', formatter_class=argparse.RawDescriptionHelpFormatter,
        description='\n'.join(f'{name:12s} {text}' for name, text in JOBS.items()),
    )  # fmt: skip
    parser.add_argument('job', nargs='+', choices=JOBS)
    parser.add_argument('--rounds', type=int, default=60, help='of interleaved calls')
    parser.add_argument('--rates', type=int, nargs='+', default=[250, 500, 1000],
                        help='joint states a second [Hz]')  # fmt: skip
    parser.add_argument('--pairs', type=int, default=3, help='runs of the nodes of each kind')
    parser.add_argument('--seconds', type=float, default=10.0, help='length of such a run')
    parser.add_argument('--seeds', type=int, default=10, help='of wrong URDFs, or logs')
    parser.add_argument('--data', type=Path, default=Path('../shared/data'), help='real logs')
    parser.add_argument('--json', type=Path, help='also write the figures here')
    chosen = parser.parse_args()
    tables, goals = [], []
    for job in chosen.job:
        for more_tables, more_goals in _run(job, chosen):
            report.show(more_tables, more_goals)
            tables += more_tables
            goals += more_goals
    report.write(chosen.json, tables, goals)


def _run(job: str, chosen: argparse.Namespace):
    """Yield tables and goals of one job."""
    seeds, rounds = range(chosen.seeds), chosen.rounds
    calls = {
        'times': {'engine': (rounds,), 'refit': (max(2, rounds // 4),)},
        'derivatives': {'derivatives': (max(2, rounds // 3),)}, 'logs': {'log_streams': ()},
        'journeys': {'journeys': ()},
        'nodes': {'nodes': (chosen.rates, chosen.seconds, chosen.pairs)},
        'live': {'live': (seeds,)}, 'coverage': {'coverage': (seeds,)},
    }  # fmt: skip
    # The others read real logs.
    for name, given in calls.get(job, {job: (chosen.data,)}).items():
        found = import_module(f'bench.{name}').measure(*given)
        yield from [found] if isinstance(found, tuple) else found


if __name__ == '__main__':
    main()
