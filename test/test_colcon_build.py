# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Files that a colcon build of this folder installs, and that ``colcon test`` finds the tests.

Not covered: ``ros2 run`` and ``ros2 launch`` themselves, which no registry has; the folders are
the ones they look in. A build with ``--symlink-install`` is not tried.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = 'inertial_estimation'
OWN_COLCON = REPOSITORY / '.venv-colcon' / 'bin' / 'colcon'
LIMIT = 120.0
"""[s]."""
EXECUTABLES = {
    'inertial-estimation', 'wrench_estimator', 'parameter_identifier', 'embedded_robot',
}  # fmt: skip


def colcon(folder, verb, *arguments):
    """Run a verb of colcon on this package with everything it writes under a folder."""
    program = str(OWN_COLCON) if OWN_COLCON.is_file() else shutil.which('colcon')
    if program is None:
        pytest.skip('colcon is not installed; `make test` brings it')
    # The guard of the ROS wheels belongs to the environment of this process, not to colcon's.
    environment = {k: v for k, v in os.environ.items() if k != '_ROS_WHEELS_BOOTSTRAP_COMPLETE'}
    run = subprocess.run(
        [program, f'--log-base={folder}/log', verb, f'--base-paths={REPOSITORY}',
         f'--packages-select={PACKAGE}', f'--build-base={folder}/build',
         f'--install-base={folder}/install', *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope='module')
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp('workspace')
    colcon(folder, 'build')
    return folder


def names(folder):
    return {path.name for path in folder.glob('*') if path.is_file()}


def test_files_are_where_ros2_looks(workspace):
    prefix = workspace / 'install' / PACKAGE
    executables = prefix / 'lib' / PACKAGE
    assert names(executables) == EXECUTABLES
    assert all(os.access(path, os.X_OK) for path in executables.iterdir())
    for part in ('launch', 'config'):
        assert names(prefix / 'share' / PACKAGE / part) == names(REPOSITORY / part) != set()
    assert (prefix / 'share/ament_index/resource_index/packages' / PACKAGE).is_file()
    assert (prefix / 'share' / PACKAGE / 'package.xml').is_file()
    (modules,) = prefix.glob('lib/python3*/site-packages')
    run = subprocess.run(
        [sys.executable, str(executables / 'inertial-estimation'), '--help'], cwd=prefix,
        env={**os.environ, 'PYTHONPATH': str(modules)}, capture_output=True, text=True,
        timeout=LIMIT, check=False,
    )  # fmt: skip
    assert run.returncode == 0 and 'check' in run.stdout


def test_colcon_test_finds_the_tests(workspace):
    # Tests that need nothing but Python: colcon's environment has none of our requirements.
    chosen = ('--noconftest', 'test/test_import_rules.py', '-k', 'keep')
    colcon(workspace, 'test', '--return-code-on-test-failure', '--pytest-args', *chosen)
    report = (workspace / 'build' / PACKAGE / 'pytest.xml').read_text()
    assert 'test_imports_keep_the_floors' in report
