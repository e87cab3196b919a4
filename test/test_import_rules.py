# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Who may import what, read from the syntax tree of every module.

Not covered: imports by a computed name (``importlib.import_module``), and what a ROS-free
installation really imports; the wheel is installed and imported by ``.ci/run``.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = 'inertial_estimation'
FOLDER = Path(__file__).resolve().parents[1] / PACKAGE

BASE = {'errors', 'sample', 'findings', 'config'}
ENGINE = {*BASE, 'model', 'signals', 'estimation'}
MATHEMATICS = {*ENGINE, 'uncertainty', 'building', 'calibration', 'identification'}
# Modules of folders without ROS that need it: what processes of their own run.
PROCESSES = ('simulation.node', 'demo.recorder')
# A module or folder of the package, and which others it may import.
MAY_IMPORT = {
    'errors': set(),
    'findings': {'errors'},
    'sample': {'errors'},
    'config': {'errors', 'sample'},
    'model': BASE,
    'signals': {*BASE, 'model'},
    'estimation': {*BASE, 'model'},
    'uncertainty': ENGINE,
    'building': {*ENGINE, 'uncertainty', 'calibration'},
    'calibration': {*BASE, 'model', 'estimation'},
    'identification': {*BASE, 'model'},
    'outputs': MATHEMATICS,
    'logs': {*MATHEMATICS, 'outputs'},
    'ros': {*MATHEMATICS, 'outputs', 'logs'},
    'simulation': {*MATHEMATICS, 'logs'},
    'simulation.node': {*MATHEMATICS, 'logs', 'ros', 'simulation'},
    'demo.recorder': {*MATHEMATICS, 'ros', 'demo'},
    '__init__': {*MATHEMATICS, 'logs'},
}
# The jobs of the command and the command itself run without ROS: what needs it is a process of
# its own.
MAY_IMPORT |= {job: {*MATHEMATICS, 'logs', 'simulation'} for job in ('demo', 'excite')}
MAY_IMPORT['cli'] = {*MAY_IMPORT} - {'ros', *PROCESSES}
MAY_IMPORT['__main__'] = {'cli'}
NEED_ROS = (
    'ros/',
    'simulation/node.py',
    'demo/recorder.py',
)
ROS_MODULES = {'rclpy', 'launch', 'launch_ros', 'ament_index_python', 'builtin_interfaces',
               'rcl_interfaces', 'rosidl_runtime_py', 'rpyutils', 'std_srvs'}  # fmt: skip
LIGHT = {*sys.stdlib_module_names, 'numpy', 'scipy', 'pinocchio', PACKAGE}
HEAVY = ('mujoco', 'rosbags', 'rich', 'yaml', 'rclpy', 'matplotlib', 'clarabel')


class Import(NamedTuple):
    """One import statement: the full name, its line, and whether it runs at import time."""

    name: str
    line: int
    at_top: bool


def modules() -> list[str]:
    """Return the path of every module inside the package."""
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob('*.py'))


def unit(name: str) -> str:
    """Return the part of the package that a full module name belongs to."""
    parts = name.split('.')[1:] or ['__init__']
    return '.'.join(parts[:2]) if '.'.join(parts[:2]) in PROCESSES else parts[0]


def full_name(module: str) -> str:
    """Return the name under which the module at a path is imported."""
    return '.'.join([PACKAGE, *module.removesuffix('.py').split('/')])


def walk(node: ast.AST, at_top: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node, and whether it stands outside functions and type-checking blocks."""
    for child in ast.iter_child_nodes(node):
        yield child, at_top
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and 'TYPE_CHECKING' in ast.unparse(child.test)
        yield from walk(child, at_top and not inside and not typing)


def absolute(node: ast.ImportFrom, module: str) -> str:
    """Return the module that a ``from`` import names, relative ones resolved."""
    if not node.level:
        return node.module or ''
    parents = [PACKAGE, *module.split('/')[:-1]]
    kept = parents[: len(parents) - node.level + 1]
    return '.'.join([*kept, node.module] if node.module else kept)


def imports_of(tree: ast.AST, module: str) -> list[Import]:
    """Return the imports of a module; ``from a import b`` counts as a.b."""
    found = []
    for node, at_top in walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, at_top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node, module)
            found += [Import(f'{origin}.{a.name}', node.lineno, at_top) for a in node.names]
    return found


def foreign_units(module: str, imports: list[Import]) -> list[tuple[str, int]]:
    """Return the imports of other parts of the package that a module is not allowed."""
    own = unit(full_name(module))
    allowed = {own, *MAY_IMPORT[own]}
    inside = [i for i in imports if i.name.split('.')[0] == PACKAGE]
    return [(i.name, i.line) for i in inside if unit(i.name) not in allowed]


def ros_imports(imports: list[Import]) -> list[tuple[str, int]]:
    """Return the imports of rclpy, launch and message packages."""
    tops = [(entry.name.split('.')[0], entry.line) for entry in imports]
    return [(t, line) for t, line in tops if t in ROS_MODULES or t.endswith('_msgs')]


def heavy_imports(imports: list[Import]) -> list[tuple[str, int]]:
    """Return what is imported with the module and is not part of the light installation."""
    return [(i.name, i.line) for i in imports if i.at_top and i.name.split('.')[0] not in LIGHT]


def noise(tree: ast.AST) -> list[tuple[str, int]]:
    """Return the calls of print and of the functions that end the process."""
    calls = [node for node, _ in walk(tree) if isinstance(node, ast.Call)]
    named = [(ast.unparse(call.func), call.lineno) for call in calls]
    return [
        n for n in named if n[0] in {'print', 'exit', 'quit', 'sys.exit', 'os._exit', 'SystemExit'}
    ]


def read(module: str) -> tuple[ast.Module, list[Import]]:
    tree = ast.parse((FOLDER / module).read_text())
    return tree, imports_of(tree, module)


@pytest.mark.parametrize('module', modules())
def test_module_keeps_the_rules(module):
    tree, imports = read(module)
    own = unit(full_name(module))
    assert own in MAY_IMPORT, f'{module}: give {own} a row in MAY_IMPORT'
    assert not foreign_units(module, imports)
    if own not in ('cli', '__main__'):
        assert not noise(tree)
    if module.endswith('__init__.py') or not module.startswith(NEED_ROS):
        assert not ros_imports(imports)
        assert not heavy_imports(imports)


@pytest.mark.parametrize(
    ('module', 'source'),
    [
        ('sample.py', 'import inertial_estimation.model.robot'),
        ('model/robot.py', 'from inertial_estimation import logs'),
        ('model/robot.py', 'from ..estimation import contacts'),
        ('estimation/batch.py', 'def f():\n    from inertial_estimation.ros import a'),
        ('simulation/robot.py', 'from inertial_estimation.ros import conversions'),
        ('cli/demo.py', 'from inertial_estimation.simulation import node'),
    ],
)
def test_a_forbidden_part_of_the_package_is_seen(module, source):
    assert foreign_units(module, imports_of(ast.parse(source), module))


def test_allowed_imports_pass():
    source = 'from . import net_wrench\nfrom ..model.robot import Robot\nimport numpy as np\n'
    imports = imports_of(ast.parse(source), 'estimation/batch.py')
    assert not foreign_units('estimation/batch.py', imports)
    assert not ros_imports(imports)
    assert not heavy_imports(imports)


@pytest.mark.parametrize(
    'source', ['import rclpy.node', 'def f():\n    from sensor_msgs.msg import Imu']
)
def test_a_ros_import_is_seen_wherever_it_stands(source):
    assert ros_imports(imports_of(ast.parse(source), 'cli.py'))


def test_heavy_imports_are_seen_at_the_top_only():
    source = 'try:\n    import rich\nexcept ImportError:\n    pass\ndef f():\n    import yaml\n'
    found = heavy_imports(imports_of(ast.parse(source), 'cli.py'))
    assert found == [('rich', 2)]


@pytest.mark.parametrize('source', ['print(1)', 'def f():\n    sys.exit(2)'])
def test_noise_is_seen(source):
    assert noise(ast.parse(source))


def test_importing_the_package_loads_nothing_heavy(tmp_path):
    names = [m.removesuffix('.py').replace('/', '.') for m in modules()]
    light = [n for n in names if not n.startswith(('ros.', *PROCESSES)) and '__' not in n]
    lines = [f'import {PACKAGE}', *(f'import {PACKAGE}.{name}' for name in light)]
    lines += ['import sys', f'print([m for m in {HEAVY} if m in sys.modules])']
    run = subprocess.run(
        [sys.executable, '-c', '\n'.join(lines)],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(Path(find_spec(PACKAGE).origin).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == '[]'
