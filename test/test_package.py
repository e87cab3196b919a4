# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
package.xml, setup.py and the locks against each other.

Not covered: whether the named things work; ``test_colcon_build.py`` and ``.ci/run`` install them.
"""

import re
import runpy
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest
import setuptools

from inertial_estimation.cli import EXTRAS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = 'inertial_estimation'
ROS = {
    'ament_index_python', 'builtin_interfaces', 'launch', 'launch_ros', 'rcl_interfaces', 'rclpy',
    'std_srvs',
}  # fmt: skip
# Imported where they are used, by their names in the registry.
OPTIONAL = {
    'clarabel': 'clarabel', 'cvxpy': 'cvxpy', 'icub_models': 'icub-models', 'idyntree': 'idyntree',
    'mujoco': 'mujoco', 'rich': 'rich', 'rosbags': 'rosbags', 'yaml': 'pyyaml',
}  # fmt: skip


@pytest.fixture
def setup(monkeypatch):
    """Return the arguments of setup.py."""
    given = {}
    monkeypatch.setattr(setuptools, 'setup', given.update)
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path('setup.py')
    return given


@pytest.fixture
def package_xml():
    return ElementTree.parse(REPOSITORY / 'package.xml').getroot()


def projects(requirements):
    """Return the normalised names of requirements or of lines of a lock."""
    return {re.split(r'[^\w.-]', r, maxsplit=1)[0].lower().replace('_', '-') for r in requirements}


def required(setup):
    groups = setup['extras_require'].values()
    return [*setup['install_requires'], *(r for group in groups for r in group)]


def sources():
    return {path: path.read_text() for path in (REPOSITORY / PACKAGE).rglob('*.py')}


def test_setup_and_package_xml_agree(setup, package_xml):
    assert setup['name'] == package_xml.findtext('name') == PACKAGE
    assert setup['version'] == package_xml.findtext('version')
    assert setup['license'] == package_xml.findtext('license') == 'BSD-3-Clause'
    maintainer = package_xml.find('maintainer')
    assert setup['maintainer'] == maintainer.text
    assert setup['maintainer_email'] == maintainer.get('email')
    assert package_xml.get('format') == '3'
    assert package_xml.findtext('export/build_type') == 'ament_python'


def test_every_file_is_installed(setup):
    installed = {file: folder for folder, files in setup['data_files'] for file in map(str, files)}
    wanted = {'package.xml': '', f'resource/{PACKAGE}': None}
    for part in ('launch', 'config'):
        files = [p for p in (REPOSITORY / part).rglob('*') if p.is_file()]
        names = [p.relative_to(REPOSITORY) for p in files if '__pycache__' not in p.parts]
        wanted |= {name.as_posix(): f'/{part}' for name in names}
    index = 'share/ament_index/resource_index/packages'
    places = {k: index if v is None else f'share/{PACKAGE}{v}' for k, v in wanted.items()}
    assert installed == places
    folder = REPOSITORY / PACKAGE
    data = {p for p in folder.rglob('*') if p.is_file() and p.suffix not in {'.py', '.pyc'}}
    assert data == {p for pattern in setup['package_data'][PACKAGE] for p in folder.glob(pattern)}
    folders = {'.'.join(p.parent.relative_to(REPOSITORY).parts) for p in folder.rglob('*.py')}
    assert folders == set(setup['packages'])


def test_entry_points_name_functions(setup):
    for entry in setup['entry_points']['console_scripts']:
        module, function = re.fullmatch(r'[\w-]+ = ([\w.]+):(\w+)', entry).groups()
        assert callable(getattr(import_module(module), function)), entry


def test_package_xml_names_every_ros_package_that_is_imported(package_xml):
    named = {depend.text for depend in package_xml.iter('exec_depend')}
    text = [*sources().values(), *(p.read_text() for p in (REPOSITORY / 'launch').glob('*.py'))]
    imported = set(re.findall(r'^\s*(?:from|import) (\w+)', '\n'.join(text), flags=re.MULTILINE))
    of_ros = {name for name in imported if name in ROS or name.endswith('_msgs')}
    assert 'rclpy' in of_ros <= named


def test_setup_names_every_optional_package(setup):
    offered = projects(required(setup))
    # The registry has other packages of these names.
    assert {'launch', 'rclpy'}.isdisjoint(offered)
    for path, text in sources().items():
        for name, project in OPTIONAL.items():
            if re.search(rf'^\s+(?:from|import) {name}\b', text, flags=re.MULTILINE):
                assert project in offered, path
    advised = {extra for extras in EXTRAS.values() for extra in extras.split(',')}
    assert advised <= set(setup['extras_require'])


def test_lock_holds_every_requirement(setup):
    lines = {
        name: [
            line
            for line in (REPOSITORY / f'requirements.{name}').read_text().splitlines()
            if line and not line.startswith(('#', ' '))
        ]
        for name in ('lock', 'txt')
    }
    assert all(re.match(r'[\w.-]+==[\w.+!]+( ;|$)', pin) for pin in lines['lock'])
    assert projects([*lines['txt'], *required(setup)]) <= projects(lines['lock'])
