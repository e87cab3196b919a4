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
from pathlib import Path

THREADS = 'OMP_NUM_THREADS'
"""Heard by all libraries of linear algebra; whoever sets it for a node is obeyed."""
HELP = '-h', '--help'
USAGE = """\
usage: {node} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] ...]

A node of the ROS 2 package inertial_estimation; it runs until ctrl-c. While it runs,
`ros2 param list` names its parameters and `ros2 param describe` explains them; the
README tells its topics, and the files in config/ are parameters to begin with.
"""


def start(module: str) -> int:
    """
    Import a node and run it, linear algebra on one thread unless the environment says otherwise.

    Until its ``main`` is reached, ctrl-c ends the process at once. Asked for help it is not run.

    Parameters
    ----------
    module : str
        Module whose ``main`` takes signals into its own hands first of all.

    Returns
    -------
    int
        Exit code.

    """
    if any(word in sys.argv[1:] for word in HELP):
        sys.stdout.write(USAGE.format(node=Path(sys.argv[0]).name))
        return 0
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
