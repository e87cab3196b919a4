# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Imports on the syntax tree: floors of folders, no circles, ROS and heavy packages.

Not covered: what optional packages do once they are imported.
"""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

PACKAGE = 'inertial_estimation'
FOLDER = Path(find_spec(PACKAGE).origin).parent
# A folder imports those of lower floors; folders of one floor do not import each other.
FLOORS = (
    {'arrays', 'errors', 'sample', 'findings', 'config'},
    {'model'},
    {'signals', 'estimation', 'identification'},
    {'calibration', 'uncertainty'},
    {'outputs'},
    {'logs', 'ros'},
    {'simulation'},
    {'demo'},
    {'cli'},
    {'__init__', '__main__'},
)
LEVEL = {name: k for k, floor in enumerate(FLOORS) for name in floor}
NEED_ROS = ('ros/', 'simulation/node.py', 'demo/recorder.py')
ROS = {'rclpy', 'launch', 'launch_ros', 'ament_index_python', 'builtin_interfaces',
       'rcl_interfaces', 'rosidl_runtime_py', 'std_srvs'}  # fmt: skip
LIGHT = {*sys.stdlib_module_names, 'numpy', 'scipy', 'pinocchio', PACKAGE}
ENDS = {'print', 'exit', 'quit', 'sys.exit', 'SystemExit'}
FILES = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob('*.py'))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}


def imports_of(node, at_top=True):
    """Yield full names, and whether they are imported with the module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and 'TYPE_CHECKING' in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_top) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, 'relative import'
            yield from ((f'{child.module}.{alias.name}', at_top) for alias in child.names)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imports_of(child, at_top and not inside)


def violations(name, tree):
    """Yield imports that floors, ROS or the light installation do not allow, prints and exits."""
    if not name.startswith(('cli/', '__main__')):
        calls = (ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call))
        yield from (call for call in calls if call in ENDS)
    own = name.removesuffix('.py').split('/')[0]
    with_ros = name.startswith(NEED_ROS)
    for full, at_top in imports_of(tree):
        top, *rest = full.split('.')
        if top == PACKAGE:
            other = rest[0] if rest and rest[0] in LEVEL else '__init__'
            # The lowest floor holds single files, which may import each other.
            same = other == own or {own, other} <= FLOORS[0]
            if not same and LEVEL.get(other, 0) >= LEVEL.get(own, -1):
                yield full
            # A subcommand imports nodes when it runs.
            without_ros = own in ('logs', 'demo') or (own == 'cli' and at_top)
            if other == 'ros' and without_ros and not with_ros:
                yield full
        is_ros = top in ROS or top.endswith('_msgs')
        if (is_ros and not with_ros) or (at_top and top not in LIGHT and not is_ros):
            yield full


def test_imports_keep_the_floors():
    found = {name: list(violations(name, tree)) for name, tree in TREES.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    for name, source in (
        ('model/robot.py', 'from inertial_estimation.logs import a'),
        ('logs/x.py', 'from inertial_estimation.ros import conversions'),
        ('cli/x.py', 'import rclpy.node'),
        ('model/x.py', 'import yaml'),
        ('model/x.py', 'print()'),
    ):
        assert list(violations(name, ast.parse(source))), name


def test_no_circles_between_files():
    names = {'.'.join([PACKAGE, *name.removesuffix('.py').split('/')]): name for name in FILES}
    graph = {}
    for full, name in names.items():
        imports = [one for one, at_top in imports_of(TREES[name]) if at_top]
        targets = {one if one in names else one.rpartition('.')[0] for one in imports}
        graph[full] = {target for target in targets if target in names and target != full}
    TopologicalSorter(graph).prepare()


def test_public_names_load_without_ros_physics_and_solvers():
    """While modules are imported, functions that import may run as well."""
    code = (
        'import sys, inertial_estimation as library; '
        '[getattr(library, name) for name in library.__all__]; '
        "heavy = {'rclpy', 'mujoco', 'osqp', 'clarabel', 'rosbags', 'rich', 'yaml'}; "
        'print(*sorted(heavy & {*sys.modules}))'
    )
    found = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []
