# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What package.xml, setup.py, the change log and the README say, held against each other.

Not covered: whether the named things work; ``test_colcon_build.py`` and ``.ci/run`` install them.
"""

import ast
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
import setuptools

from inertial_estimation.cli.arguments import EXTRAS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = 'inertial_estimation'
ROS = {
    'ament_index_python',
    'builtin_interfaces',
    'launch',
    'launch_ros',
    'rcl_interfaces',
    'rclpy',
    'std_srvs',
}
# What is imported where it is used.
USED = (
    'clarabel',
    'cvxpy',
    'icub_models',
    'idyntree',
    'mujoco',
    'rich',
    'rosbags',
    'yaml',
)
# Import name of an extra -> name in the registry.
PROJECTS = {'icub_models': 'icub-models', 'yaml': 'pyyaml'}


@pytest.fixture
def setup(monkeypatch):
    """Return what setup.py hands to setuptools."""
    said = {}
    monkeypatch.setattr(setuptools, 'setup', said.update)
    monkeypatch.chdir(REPOSITORY)
    runpy.run_path('setup.py')
    return said


@pytest.fixture
def package_xml():
    return ElementTree.parse(REPOSITORY / 'package.xml').getroot()


def project(requirement: str) -> str:
    """Return the normalised name of a requirement or of a line of a lock."""
    return re.split(r'[^\w.-]', requirement, maxsplit=1)[0].lower().replace('_', '-')


def test_name_version_licence_and_maintainer_agree(setup, package_xml):
    assert setup['name'] == package_xml.findtext('name') == PACKAGE
    assert setup['version'] == package_xml.findtext('version')
    assert setup['license'] == package_xml.findtext('license') == 'BSD-3-Clause'
    maintainer = package_xml.find('maintainer')
    assert setup['maintainer'] == maintainer.text
    assert setup['maintainer_email'] == maintainer.get('email')


def test_package_xml_is_an_ament_python_package_of_format_3(package_xml):
    assert package_xml.get('format') == '3'
    assert '<?xml-model ' in (REPOSITORY / 'package.xml').read_text()
    assert package_xml.findtext('export/build_type') == 'ament_python'


def test_changelog_has_unreleased_changes_on_top_and_then_this_version(package_xml):
    text = (REPOSITORY / 'CHANGELOG.rst').read_text()
    title, *sections = re.findall(r'^(.+)\n(?:\^+|-+)$', text, flags=re.MULTILINE)
    assert title == f'Changelog for package {PACKAGE}'
    released = [re.match(r'\d+\.\d+\.\d+(?= \(\d{4}-\d\d-\d\d\)$)', s) for s in sections]
    assert sections[0] == 'Forthcoming' or released[0]
    versions = [match.group() for match in released if match]
    assert len(versions) >= len(sections) - 1
    assert versions[:1] in ([], [package_xml.findtext('version')])


def test_every_launch_and_config_file_is_installed(setup):
    installed = {file: folder for folder, files in setup['data_files'] for file in map(str, files)}
    for part in ('launch', 'config'):
        for path in (REPOSITORY / part).rglob('*'):
            if path.is_file() and '__pycache__' not in path.parts:
                name = path.relative_to(REPOSITORY).as_posix()
                assert installed.get(name) == f'share/{PACKAGE}/{part}', name
    assert installed['package.xml'] == f'share/{PACKAGE}'
    assert installed[f'resource/{PACKAGE}'] == 'share/ament_index/resource_index/packages'
    assert all((REPOSITORY / name).is_file() for name in installed)


def test_every_file_of_the_package_is_installed(setup):
    patterns = setup['package_data'][PACKAGE]
    folder = REPOSITORY / PACKAGE
    data = {p for p in folder.rglob('*') if p.is_file() and p.suffix not in {'.py', '.pyc'}}
    assert data == {path for pattern in patterns for path in folder.glob(pattern)}
    folders = {path.parent.relative_to(REPOSITORY) for path in folder.rglob('*.py')}
    assert {'.'.join(path.parts) for path in folders} == set(setup['packages'])


def test_every_extra_that_the_command_advises_exists(setup):
    advised = {extra for extras in EXTRAS.values() for extra in extras.split(',')}
    assert advised <= set(setup['extras_require'])


def test_every_entry_point_names_a_function(setup):
    for entry in setup['entry_points']['console_scripts']:
        module, function = re.fullmatch(r'[\w-]+ = ([\w.]+):(\w+)', entry).groups()
        path = REPOSITORY / module.replace('.', '/')
        path = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
        tree = ast.parse(path.read_text())
        assert function in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, entry


def test_package_xml_names_every_ros_package_that_is_imported(package_xml):
    named = {depend.text for depend in package_xml.iter('exec_depend')}
    files = [*(REPOSITORY / PACKAGE).rglob('*.py'), *(REPOSITORY / 'launch').glob('*.py')]
    text = '\n'.join(path.read_text() for path in files)
    imported = set(re.findall(r'^\s*(?:from|import) (\w+)', text, flags=re.MULTILINE))
    of_ros = {name for name in imported if name in ROS or name.endswith('_msgs')}
    assert of_ros <= named
    assert 'rclpy' in of_ros


def test_nothing_of_the_registry_that_only_shares_a_name_with_ros_is_required(setup):
    extras = [r for group in setup['extras_require'].values() for r in group]
    assert {'launch', 'rclpy'}.isdisjoint(map(project, [*setup['install_requires'], *extras]))


def test_setup_names_what_is_imported_where_it_is_used(setup):
    extras = [r for group in setup['extras_require'].values() for r in group]
    offered = set(map(project, [*setup['install_requires'], *extras]))
    for path in (REPOSITORY / PACKAGE).rglob('*.py'):
        text = path.read_text()
        for name in USED:
            if re.search(rf'^\s+(?:from|import) {name}\b', text, flags=re.MULTILINE):
                assert PROJECTS.get(name, name) in offered, f'{path.name} imports {name}'


def test_lock_holds_every_requirement(setup):
    lock = (REPOSITORY / 'requirements.lock').read_text().splitlines()
    pins = [line for line in lock if line and not line.startswith(('#', ' '))]
    assert all(re.match(r'[\w.-]+==[\w.+!]+( ;|$)', pin) for pin in pins)
    lines = (REPOSITORY / 'requirements.txt').read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith('#')]
    wanted += setup['install_requires']
    wanted += [r for group in setup['extras_require'].values() for r in group]
    assert {project(line) for line in wanted} <= {project(pin) for pin in pins}


def test_make_knows_every_target_that_the_readme_and_ci_name():
    rules = re.findall(r'^([\w-]+):', (REPOSITORY / 'Makefile').read_text(), flags=re.MULTILINE)
    assert {'test', 'demo', 'bench', 'lint'} <= set(rules)
    for name in ('README.md', '.ci/run'):
        text = (REPOSITORY / name).read_text()
        named = re.findall(r'(?:^|`)make ([a-z-]+)', text, flags=re.MULTILINE)
        assert set(named) <= set(rules), name
