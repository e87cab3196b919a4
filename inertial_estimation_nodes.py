# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The nodes as commands, which ctrl-c ends also while they are imported.

It stands beside the package: to import any part of the package imports much of it first. Neither
may linear algebra be imported before its number of threads is set, which is read once. On the
matrices of a robot several threads gain nothing; on a busy machine they wait for each other.
"""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

THREADS = 'OMP_NUM_THREADS'
"""Read by all libraries of linear algebra; a value in the environment is kept."""
HELP = '-h', '--help'
USAGE = """\
usage: {node} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] ...]

A node of the ROS 2 package inertial_estimation; it runs until ctrl-c. `ros2 param list` and
`ros2 param describe` show its parameters; the files in config/ are parameters to begin with.
"""


def start(module: str) -> int:
    """
    Import a node and run it, or print its usage; return the exit code.

    Until its ``main`` handles signals, ctrl-c ends the process at once: the exception that Python
    raises instead may be lost within an import, and the node would start and never end.
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
