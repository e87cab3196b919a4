# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a colcon build of this folder installs, and that ``colcon test`` finds the tests.

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
LIMIT_S = 120.0


def colcon(folder: Path, verb: str, *arguments: str) -> None:
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
        cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope='module')
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp('workspace')
    colcon(folder, 'build')
    return folder


@pytest.fixture(scope='module')
def prefix(workspace):
    return workspace / 'install' / PACKAGE


def names(folder: Path) -> set[str]:
    """Return the names of the files in a folder, if there is one."""
    return {path.name for path in folder.glob('*') if path.is_file()}


def test_executables_are_where_ros2_run_looks(prefix):
    executables = prefix / 'lib' / PACKAGE
    assert names(executables) == {
        'inertial-estimation',
        'wrench_estimator',
        'parameter_identifier',
        'embedded_robot',
    }
    assert all(os.access(path, os.X_OK) for path in executables.iterdir())


@pytest.mark.parametrize('part', ['launch', 'config'])
def test_launch_and_config_files_are_where_ros2_launch_looks(prefix, part):
    wanted = names(REPOSITORY / part)
    assert wanted
    assert names(prefix / 'share' / PACKAGE / part) == wanted


def test_the_package_is_in_the_ament_index(prefix):
    assert (prefix / 'share/ament_index/resource_index/packages' / PACKAGE).is_file()
    assert (prefix / 'share' / PACKAGE / 'package.xml').is_file()


def test_the_installed_command_starts_with_the_installed_modules(prefix):
    (modules,) = prefix.glob('lib/python3*/site-packages')
    run = subprocess.run(
        [sys.executable, str(prefix / 'lib' / PACKAGE / 'inertial-estimation'), '--help'],
        cwd=prefix,
        env={**os.environ, 'PYTHONPATH': str(modules)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert 'check' in run.stdout


def test_colcon_test_finds_the_tests(workspace):
    # Tests that need nothing but Python: colcon's environment has none of our requirements.
    chosen = ('--noconftest', 'test/test_import_rules.py', '-k', 'keep')
    colcon(workspace, 'test', '--return-code-on-test-failure', '--pytest-args', *chosen)
    report = (workspace / 'build' / PACKAGE / 'pytest.xml').read_text()
    assert 'test_imports_keep_the_floors' in report
