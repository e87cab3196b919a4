# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The command ``inertial-estimation``, one module for each subcommand."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from inertial_estimation.cli.commands import parser
from inertial_estimation.cli.files import check_outputs
from inertial_estimation.errors import InertialEstimationError, NameNotFound, is_wrong_call

WRONG_CALL = 2
"""Exit code of argparse for a wrong option."""
INTERRUPTED, PIPE_BROKEN = 130, 141
"""Exit codes that a shell reports after SIGINT and SIGPIPE."""
EXTRAS = {
    'init': 'bags', 'replay': 'bags', 'calibrate': 'bags', 'identify': 'identification,bags',
    'demo': 'demo',
}  # fmt: skip
"""Optional dependencies of the subcommands."""
OPTIONS = {
    'accelerometer_offset': ('bias',), 'accept_split': ('accept_split',),
    'calibration': ('matrix',), 'ft': ('ft', 'sensor', 'sensors'), 'imu': ('imu',),
    'imu_rpy': ('rotation',), 'inertia': ('inertia',), 'layout': ('layout',),
    'joints': ('joints',), 'load': ('loads',), 'lock': ('lock',),
    'max_delay': ('max_delay',), 'offset_range': ('offset_range',),
    'support': ('support', 'supports'), 'temperature': ('temperature',), 'validate': ('test',),
    'weight': ('weight',),
}  # fmt: skip
"""Arguments of the library that options stand for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command; return its exit code.

    It is 0, 1 for data that are refused, 2 for a wrong call, 130 or 141 for a signal.
    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_BROKEN
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    """Run a subcommand and print errors in one line."""
    whole = parser()
    chosen = whole.parse_args(arguments)
    if chosen.version:
        from importlib.metadata import version

        sys.stdout.write(f'{whole.prog} {version("inertial_estimation")}\n')
        return 0
    if chosen.command is None:
        whole.print_help(sys.stderr)
        return WRONG_CALL
    try:
        check_outputs(chosen)
        module, _, function = chosen.run.partition(':')
        run = getattr(import_module(f'inertial_estimation.cli.{module}'), function)
        return int(run(chosen) or 0)
    except BrokenPipeError:
        raise
    except InertialEstimationError as error:
        names = {
            argument: f'--{option.replace("_", "-")}'
            for option, arguments in OPTIONS.items()
            if hasattr(chosen, option)
            for argument in arguments
        }
        text = error.renamed(names)
        given = isinstance(error, NameNotFound) and _holds(vars(chosen), error.name)
        code = WRONG_CALL if given or is_wrong_call(error, names) else 1
    except OSError as error:
        text, code = str(error), 1
    except ModuleNotFoundError as error:
        extras = EXTRAS.get(chosen.command)
        package = f"'inertial_estimation[{extras}]'" if extras else 'inertial_estimation'
        text, code = f'{error}: pip install {package}', 1
    # YAML readers report in several lines.
    sys.stderr.write(f'inertial-estimation {chosen.command}: {" ".join(text.split())}\n')
    return code


def _holds(given: Mapping[str, Any], name: str) -> bool:
    """Return true if a name is one that an option gives."""
    return any(name == one or (isinstance(one, list) and name in one) for one in given.values())


if __name__ == '__main__':
    sys.exit(main())
