# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
README, docs and example: commands parse, Python blocks compile and import, links lead somewhere.

Not covered: how good the estimates are (test_demo_scores.py, test_against_mujoco.py).
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from inertial_estimation.cli.commands import parser
from inertial_estimation.outputs.topics import OUTPUTS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
TEXTS = {page.name: page.read_text(encoding='utf-8') for page in PAGES}
FENCED = re.compile(r'^```(\w*)\n(.*?)^```$', re.DOTALL | re.MULTILINE)
OURS = 'inertial-estimation'
OTHERS = ('export', 'make', 'python', 'ros2', 'wrench_estimator', 'parameter_identifier')
MAX_WORDS = 16_000
README_LINES = 150


def blocks(language):
    return [
        (name, text)
        for name, page in TEXTS.items()
        for found, text in FENCED.findall(page)
        if found == language
    ]


def calls():
    for page, block in blocks('bash'):
        for line in block.replace('\\\n', ' ').splitlines():
            if words := shlex.split(line, comments=True):
                yield page, words


@pytest.mark.parametrize(('page', 'words'), list(calls()), ids=lambda one: str(one)[:40])
def test_command_parses(page, words, capsys):
    program, *rest = words
    if program != OURS:
        assert program in OTHERS
        if words[:2] == ['ros2', 'launch']:
            assert (ROOT / 'launch' / words[3]).exists()
        return
    try:
        chosen = parser().parse_args(rest)
    except SystemExit:
        pytest.fail(f'{page}: {shlex.join(words)}\n{capsys.readouterr().err}')
    assert chosen.command == rest[0]


@pytest.mark.parametrize(('page', 'source'), blocks('python'), ids=lambda one: str(one)[:20])
def test_python_block_imports_what_exists(page, source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith('inertial_estimation'):
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), page


def test_python_of_the_readme_runs():
    pytest.importorskip('icub_models')
    for page, source in blocks('python'):
        if page == 'README.md':
            found = {}
            exec(compile(source, page, 'exec'), found)
            estimate, robot = found['estimate'], found['robot']
            masses = {one.name: robot.parameters[list(one.links), 0] for one in robot.submodels}
            for row, foot in enumerate(('l_foot', 'r_foot'), 1):
                force = 75.0 + 9.81 * masses[foot].sum()
                np.testing.assert_allclose(estimate.wrenches[row, :3], (0, 0, force), atol=1e-9)
            assert np.isfinite(estimate.torques).all()


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r'\]\(([^)\s]+)\)', TEXTS[page.name]):
        path, _, anchor = target.partition('#')
        if path.startswith('http'):
            continue
        other = (page.parent / path).resolve() if path else page
        assert other.exists(), f'{page.name}: {target}'
        if anchor:
            heads = re.findall(r'^#+ (.*)$', other.read_text(encoding='utf-8'), re.MULTILINE)
            slugs = {re.sub(r'[^\w\- ]', '', head.lower()).replace(' ', '-') for head in heads}
            assert anchor in slugs, f'{page.name}: {target}'


def test_reference_pages_are_current():
    spec = spec_from_file_location('generate', ROOT / 'docs' / 'generate.py')
    generate = module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, page in generate.PAGES.items():
        assert (ROOT / name).read_text(encoding='utf-8') == page(), 'run make reference'
    topics = TEXTS['topics.md']
    assert [output.topic for output in OUTPUTS if f'~/{output.topic}' not in topics] == []


def test_pages_are_short_and_name_files_that_exist():
    for name in re.findall(r'`([a-z_]+/[a-z_/.]+)`', TEXTS['theory.md']):
        assert (ROOT / 'inertial_estimation' / name).exists(), name
    for name in re.findall(r'`(test/[^`]+)`', ''.join(TEXTS.values())):
        assert list(ROOT.glob(name)), name
    reference = {f'{name}.md' for name in ('parameters', 'topics', 'commands', 'findings')}
    reference.add('identify_settings.md')
    assert sum(len(TEXTS[name].split()) for name in TEXTS if name not in reference) <= MAX_WORDS
    assert len(TEXTS['README.md'].splitlines()) <= README_LINES


def test_example_runs(tmp_path):
    for name in ('mujoco', 'icub_models', 'matplotlib'):
        pytest.importorskip(name)
    picture, example = tmp_path / 'picture.svg', ROOT / 'examples' / 'pushed_icub.py'
    done = subprocess.run(
        [sys.executable, example, '--seconds', '3', '--picture', picture],
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # One newton with noise is the demo's goal; several IMUs are better than one.
    one, several = map(float, re.findall(r'force error (\S+) N rms', done.stdout))
    assert 0.0 < several < one < 1.0
    assert picture.read_text().startswith('<?xml')
