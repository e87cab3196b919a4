# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Commands in README and docs can be pasted: they are whole, and the command knows their options.

Not covered: what they do, and whether the figures beside them are theirs.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from inertial_estimation.cli import _parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.DOTALL | re.MULTILINE)
OURS = 'inertial-estimation'
NODES = ('wrench_estimator', 'parameter_identifier')
OTHERS = ('make', 'python', 'ros2', *NODES)
"""What may be called besides."""


def blocks(page: Path) -> list[str]:
    """Return the blocks of commands of a page."""
    found = FENCED.findall(page.read_text(encoding='utf-8'))
    return [text for language, text in found if language == 'bash']


def calls(block: str) -> list[list[str]]:
    """Return the words of each command of a block, whose lines a backslash joins."""
    lines = block.replace('\\\n', ' ').splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


BLOCKS = [
    pytest.param(block, id=f'{page.stem}-{k}')
    for page in PAGES
    for k, block in enumerate(blocks(page))
]


def test_pages_have_commands() -> None:
    assert len(BLOCKS) >= 15


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_commands_are_in_blocks_that_say_so(page: Path) -> None:
    """None is in a block of another language, or indented, where nothing below looks."""
    text = FENCED.sub(
        lambda found: '' if found[1] == 'bash' else found[2], page.read_text(encoding='utf-8')
    )
    begin = re.compile(rf'^\s*(?:\$ )?(?:\.venv/bin/)?(?:{"|".join((OURS, *OTHERS))}) \S')
    code = [line for line in text.splitlines() if begin.match(line)]
    assert not code


@pytest.mark.parametrize('block', BLOCKS)
def test_a_shell_can_read_it(block: str) -> None:
    if shutil.which('bash') is None:
        pytest.skip('needs bash')
    done = subprocess.run(['bash', '-n'], input=block, text=True, capture_output=True, check=False)
    assert not done.returncode and not done.stderr


@pytest.mark.parametrize('block', BLOCKS)
def test_every_line_is_a_whole_command(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    for program, *rest in calls(block):
        name = program.removeprefix('.venv/bin/')
        if name != OURS:
            # What a missing backslash leaves begins with an option.
            assert name in OTHERS, f'{program}: no command, a backslash may be missing before it'
            continue
        try:
            chosen = _parser().parse_args(rest)
        except SystemExit:
            pytest.fail(f'{shlex.join([program, *rest])}\n{capsys.readouterr().err}')
        assert chosen.command == rest[0]


@pytest.mark.parametrize('block', BLOCKS)
def test_launch_files_exist(block: str) -> None:
    for words in calls(block):
        if words[:2] == ['ros2', 'launch']:
            assert words[2] == 'inertial_estimation' and (ROOT / 'launch' / words[3]).exists()


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_commands_in_sentences_know_their_verbs_and_options(page: Path) -> None:
    """They may leave out what is needed, and say by brackets and dots what may be there."""
    said = re.findall(rf'`(?:\.venv/bin/)?{OURS} ([^`]*)`', page.read_text(encoding='utf-8'))
    for call in said:
        verb, *rest = re.sub(r'[][]|\.\.\.', ' ', call).split()
        parser = _choices(_parser())[verb]
        if rest and (ways := _choices(parser)):
            parser = ways[rest[0]]
        known = parser._option_string_actions
        assert all(word in known for word in rest if word.startswith('--')), call


def _choices(parser):
    """Return parsers by verb, or by way of a verb; of others none."""
    groups = parser._subparsers._group_actions if parser._subparsers else ()
    return {name: one for group in groups for name, one in group.choices.items()}
