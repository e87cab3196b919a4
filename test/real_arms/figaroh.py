# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FIGAROH's consistent fit on the same rows, in an interpreter that has it.

It is a process of its own: FIGAROH asks for another release of Pinocchio than this package may
have. Rows are handed over as their triangle, which is all that its objective depends on.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Problem

Array = NDArray[np.float64]

INERTIAL = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
"""Its names, with the link's after an underscore; the order is that of `model.inertia`."""
TIME_LIMIT = 300.0
"""[s]."""
SCRIPT = """
import json, sys
import numpy as np
from figaroh.identification.physical_fit import build_problem, solve_direct_effort_fit
given = np.load(sys.argv[1])
names = json.loads(str(given['names']))
links = json.loads(str(given['links']))
problem = build_problem(given['Y'], given['y'], names, links, prior=given['prior'])
found = solve_direct_effort_fit(problem)
print(json.dumps({
    'x': None if found.theta is None else list(map(float, found.theta)),
    'names': list(problem.params_std), 'time': found.runtime_s,
    'status': found.solver_status + ('' if found.exception is None else ': ' + found.exception),
}))
"""


class Answer(NamedTuple):
    """What it found."""

    x: Array
    """Unknowns, as of the problem, shape (n,)."""
    time: float
    """Of the solver alone [s]."""


def solve(problem: Problem, python: str | Path) -> Answer:
    """Let FIGAROH solve a problem with its own prior weight and bounds."""
    links, extras = problem.unknowns.links, problem.unknowns.extras
    names = [f'{key}_{link}' for link in links for key in INERTIAL] + [str(e) for e in extras]
    with TemporaryDirectory() as folder:
        path = Path(folder) / 'problem.npz'
        np.savez(
            path,
            Y=problem.factor,
            y=problem.target,
            prior=problem.prior_point(),
            names=json.dumps(names),
            links=json.dumps(links),
        )
        said = _run([str(python), '-c', SCRIPT, str(path)])
    if said['x'] is None:
        raise ModelError(f'FIGAROH finds nothing: {said["status"]}')
    values = dict(zip(said['names'], said['x'], strict=True))
    return Answer(np.array([values[name] for name in names]), float(said['time']))


def _run(command: list[str]) -> dict[str, Any]:
    """Return what a process says in its last line."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIME_LIMIT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f'FIGAROH does not run: {error}') from error
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        why = (done.stderr.strip().splitlines() or ['no word'])[-1]
        raise ModelError(f'FIGAROH does not run: {why}')
    return dict(json.loads(lines[-1]))
