# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
package.xml, setup.py and the locks against each other, and what a colcon build installs.

Not covered: ``ros2 run`` and ``ros2 launch`` themselves, which no registry has; the folders are
the ones they look in. A build with ``--symlink-install`` is not tried.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest
import setuptools

from inertial_estimation.cli import EXTRAS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = 'inertial_estimation'
OWN_COLCON = REPOSITORY / '.venv-colcon' / 'bin' / 'colcon'
LIMIT = 120.0
"""[s]."""
ROS = {
    'ament_index_python', 'builtin_interfaces', 'launch', 'launch_ros', 'rcl_interfaces', 'rclpy',
    'std_srvs',
}  # fmt: skip
# Imported where they are used, by their names in the registry.
OPTIONAL = {
    'clarabel': 'clarabel', 'cvxpy': 'cvxpy', 'icub_models': 'icub-models', 'idyntree': 'idyntree',
    'mujoco': 'mujoco', 'osqp': 'osqp', 'rich': 'rich', 'rosbags': 'rosbags', 'yaml': 'pyyaml',
}  # fmt: skip
PACKAGE_XML = ElementTree.parse(REPOSITORY / 'package.xml').getroot()
SOURCES = {path: path.read_text() for path in (REPOSITORY / PACKAGE).rglob('*.py')}


@pytest.fixture
def setup(monkeypatch):
    """Return the arguments of setup.py, run in its folder, and all it requires."""
    given = {}
    monkeypatch.setattr(setuptools, 'setup', given.update)
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path('setup.py')
    groups = given['extras_require'].values()
    given['required'] = [*given['install_requires'], *(r for group in groups for r in group)]
    return given


def projects(requirements):
    """Return the normalised names of requirements or of lines of a lock."""
    return {re.split(r'[^\w.-]', r, maxsplit=1)[0].lower().replace('_', '-') for r in requirements}


def test_setup_and_package_xml_agree(setup):
    for name in ('name', 'version', 'license', 'maintainer'):
        assert setup[name] == PACKAGE_XML.findtext(name)
    assert setup['maintainer_email'] == PACKAGE_XML.find('maintainer').get('email')
    assert PACKAGE_XML.findtext('export/build_type') == 'ament_python'
    for entry in setup['entry_points']['console_scripts']:
        module, function = re.fullmatch(r'[\w-]+ = ([\w.]+):(\w+)', entry).groups()
        assert callable(getattr(import_module(module), function)), entry


def test_every_file_of_the_package_is_installed(setup):
    folder = Path(PACKAGE)
    code = {'.py', '.pyc', '.c', '.so'}
    data = {p for p in folder.rglob('*') if p.is_file() and p.suffix not in code}
    extensions = {source for one in setup['ext_modules'] for source in one.sources}
    assert extensions in ({str(p) for p in folder.rglob('*.c')}, set())
    assert data == {p for pattern in setup['package_data'][PACKAGE] for p in folder.glob(pattern)}
    assert {'.'.join(p.parent.parts) for p in folder.rglob('*.py')} == set(setup['packages'])


def test_every_import_is_required(setup):
    named = {depend.text for depend in PACKAGE_XML.iter('exec_depend')}
    texts = [*SOURCES.values(), *(p.read_text() for p in (REPOSITORY / 'launch').glob('*.py'))]
    imported = set(re.findall(r'^\s*(?:from|import) (\w+)', '\n'.join(texts), re.MULTILINE))
    of_ros = {name for name in imported if name in ROS or name.endswith('_msgs')}
    assert 'rclpy' in of_ros <= named
    # The registry has other packages of these names.
    offered = projects(setup['required'])
    assert {'launch', 'rclpy'}.isdisjoint(offered)
    for path, text in SOURCES.items():
        for name, project in OPTIONAL.items():
            if re.search(rf'^\s+(?:from|import) {name}\b', text, flags=re.MULTILINE):
                assert project in offered, path
    advised = {extra for extras in EXTRAS.values() for extra in extras.split(',')}
    assert advised <= set(setup['extras_require'])


def test_lock_holds_every_requirement(setup):
    lock, extra = (
        re.findall(r'^[^#\s].*', (REPOSITORY / f'requirements.{name}').read_text(), re.MULTILINE)
        for name in ('lock', 'txt')
    )
    assert all(re.match(r'[\w.-]+==[\w.+!]+( ;|$)', pin) for pin in lock)
    assert projects([*extra, *setup['required']]) <= projects(lock)


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


def names(folder):
    return {path.name for path in folder.glob('*') if path.is_file()}


def test_colcon_installs_what_ros2_looks_for_and_finds_the_tests(setup, tmp_path):
    colcon(tmp_path, 'build')
    prefix = tmp_path / 'install' / PACKAGE
    executables = prefix / 'lib' / PACKAGE
    scripts = setup['entry_points']['console_scripts']
    assert names(executables) == {entry.split(' = ')[0] for entry in scripts}
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
    # Tests that need nothing but Python: colcon's environment has none of our requirements.
    chosen = ('--noconftest', 'test/test_import_rules.py', '-k', 'keep')
    colcon(tmp_path, 'test', '--return-code-on-test-failure', '--pytest-args', *chosen)
    report = (tmp_path / 'build' / PACKAGE / 'pytest.xml').read_text()
    assert 'test_imports_keep_the_floors' in report
