# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``init``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from shlex import join
from textwrap import wrap

from inertial_estimation.cli.commands import WIDTH
from inertial_estimation.cli.files import load_urdf, naming
from inertial_estimation.cli.first_columns import first_columns
from inertial_estimation.cli.first_settings import first_settings
from inertial_estimation.cli.render import escape, show, write_json
from inertial_estimation.config.files import write_whole
from inertial_estimation.errors import CallError, LogError


def run(chosen: argparse.Namespace) -> None:
    """Write a configuration, and print what it decides and the next command."""
    if Path(chosen.out).exists():
        raise LogError(f"'{chosen.out}' exists already")
    if chosen.bag and chosen.log:
        raise CallError('give one of --bag, --log')
    if chosen.joints and not chosen.log:
        raise CallError('--joints goes with --log')
    urdf = load_urdf(chosen.robot)
    with naming(chosen.robot):
        if chosen.log:
            found = first_columns(urdf, chosen.log, chosen.joints)
            text = found.text()
        else:
            found = first_settings(urdf, chosen.bag)
            text = found.text('/**', 'ros__parameters')
    write_whole(chosen.out, text)
    write_json(chosen.json, {'settings': found.given, 'notes': found.notes, 'part_s': found.part})
    for note in found.notes:
        show(*map(escape, wrap(note, WIDTH, subsequent_indent='  ')))
    words = ['--robot', str(chosen.robot), '--config', str(chosen.out)]
    if chosen.log:
        command = ['identify', str(chosen.log), *words, '--out-urdf', 'identified.urdf']
    elif not chosen.bag:
        command = ['check', str(chosen.robot), *words[2:]]
    else:
        command = ['replay', str(chosen.bag), *words]
        if found.part is not None:
            start, stop = (f'{end:.2f}' for end in found.part)
            half = f'{sum(found.part) / 2:.2f}'
            command += ['--range', start, stop]
            command += ['--offsets-from', 'model', '--offset-range', start, half]
    sys.stdout.write(f'\nNext: {join(["inertial-estimation", *command])}\n')
