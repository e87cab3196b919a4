# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The command ``inertial-estimation``: one verb for each job."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from inertial_estimation.errors import InertialEstimationError, is_wrong_call
from inertial_estimation.verbs import calibrate, check, demo, excite, identify, replay
from inertial_estimation.verbs.one_usage import VerbParser
from inertial_estimation.verbs.options import (
    INTERRUPTED,
    PIPE_BROKEN,
    WRONG_CALL,
    install_advice,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_BROKEN


def _run(arguments: Sequence[str] | None) -> int:
    """Run a verb; say in one line why it failed."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.verb is None:
        parser.print_help(sys.stderr)
        return WRONG_CALL
    try:
        return int(chosen.run(chosen) or 0)
    except BrokenPipeError:
        raise
    except InertialEstimationError as error:
        names = getattr(chosen, 'names', {})
        said = error.said_with(names)
        code = WRONG_CALL if is_wrong_call(error, names) else 1
    except OSError as error:
        said, code = str(error), 1
    except ModuleNotFoundError as error:
        said, code = f'{error}: {install_advice(chosen.verb)}', 1
    except KeyboardInterrupt:
        return INTERRUPTED
    # Readers of YAML answer in several lines.
    sys.stderr.write(f'inertial-estimation {chosen.verb}: {" ".join(said.split())}\n')
    return code


def _parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs."""
    parser = VerbParser(
        prog='inertial-estimation',
        description='External wrenches and joint torques from distributed force/torque sensors '
        'and IMUs: one verb for each job.',
        epilog='options and an example of a verb: inertial-estimation VERB --help',
    )
    verbs = parser.add_subparsers(dest='verb', metavar='VERB')
    for verb in (check, replay, calibrate, excite, identify, demo):
        verb.add(verbs)
    return parser


if __name__ == '__main__':
    sys.exit(main())
