# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The nodes as commands, so that ctrl-c ends them also while they are being imported.

Python answers ctrl-c with an exception wherever it stands. In the middle of an import it may stand
where exceptions are only printed: the node would go on to start, and never end. This module is no
part of the package because to import any part of a package is to import much of it first.

Nor may anything that does linear algebra be imported before its number of threads is set: it is
read once. On matrices of a robot several threads gain nothing; where anything else runs they wait
for each other, and what takes a quarter of a second on one takes many.
"""

import os
import signal
import sys
from importlib import import_module

THREADS = 'OMP_NUM_THREADS'
"""Heard by all libraries of linear algebra; whoever sets it for a node is obeyed."""


def start(module: str) -> int:
    """
    Import a node and run it, linear algebra on one thread unless the environment says otherwise.

    Until its ``main`` is reached, ctrl-c ends the process at once.

    Parameters
    ----------
    module : str
        Module whose ``main`` takes signals into its own hands first of all.

    Returns
    -------
    int
        Exit code.

    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault(THREADS, '1')
    return int(import_module(module).main())


def wrench_estimator() -> int:
    """Run the estimator; return its exit code."""
    return start('inertial_estimation.ros.estimator_node')


def parameter_identifier() -> int:
    """Run the identifier; return its exit code."""
    return start('inertial_estimation.ros.identifier_node')


def embedded_robot() -> int:
    """Run the simulated robot; return its exit code."""
    return start('inertial_estimation.simulation.node')


if __name__ == '__main__':
    # python -m inertial_estimation_nodes <module> <command line of the node>
    sys.exit(start(sys.argv.pop(1)))
