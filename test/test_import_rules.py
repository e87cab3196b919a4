# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Who imports whom, on the syntax tree: floors of folders, no circles, ROS and heavy packages.

Not covered: what optional packages do once they are imported.
"""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE = 'inertial_estimation'
FOLDER = Path(find_spec(PACKAGE).origin).parent
# A folder imports those of lower floors; folders of one floor do not import each other.
FLOORS = (
    {'errors', 'sample', 'findings', 'config'},
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
# The lowest floor holds single files, which may import each other.
TOGETHER = FLOORS[0]
# A process of its own, in a terminal.
TERMINAL = 'ros/calibration_terminal.py'
NEED_ROS = ('ros/', 'simulation/node.py', 'demo/recorder.py')
ROS = {'rclpy', 'launch', 'launch_ros', 'ament_index_python', 'builtin_interfaces',
       'rcl_interfaces', 'rosidl_runtime_py', 'std_srvs'}  # fmt: skip
LIGHT = {*sys.stdlib_module_names, 'numpy', 'scipy', 'pinocchio', PACKAGE}
HEAVY = ('mujoco', 'rosbags', 'rich', 'yaml', 'rclpy', 'osqp', 'clarabel')
ENDS = {'print', 'exit', 'quit', 'sys.exit', 'SystemExit'}


def modules():
    return sorted(FOLDER.rglob('*.py'))


def place(path):
    return path.relative_to(FOLDER).as_posix()


def imports_of(tree, name):
    """Yield full names, and whether they are imported with the module."""

    def walk(node, at_top):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and 'TYPE_CHECKING' in ast.unparse(child.test):
                continue
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            if isinstance(child, ast.Import):
                yield from ((alias.name, at_top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ''
                if child.level:
                    parents = [PACKAGE, *name.split('/')[:-1]]
                    base = '.'.join(
                        filter(None, [*parents[: len(parents) + 1 - child.level], base])
                    )
                yield from ((f'{base}.{alias.name}', at_top) for alias in child.names)
            yield from walk(child, at_top and not inside)

    return list(walk(tree, True))


def unit(name):
    parts = name.split('.')
    return parts[1] if len(parts) > 1 and parts[1] in LEVEL else '__init__'


def violations(name, imports):
    """Return imports that the floors, ROS or the light installation do not allow."""
    parts = name.removesuffix('.py').split('/')
    own = parts[0]
    found = []
    for full, at_top in imports:
        top = full.split('.')[0]
        if top == PACKAGE:
            other = unit(full)
            same = other == own or {own, other} <= TOGETHER
            if not same and LEVEL.get(other, 0) >= LEVEL.get(own, -1):
                found.append(full)
            if own in ('cli', 'logs', 'demo') and other == 'ros' and not name.startswith(NEED_ROS):
                found.append(full)
        ros = top in ROS or top.endswith('_msgs')
        if ros and not name.startswith(NEED_ROS):
            found.append(full)
        allowed = (ros and name.startswith(NEED_ROS)) or (top == 'rich' and name == TERMINAL)
        if at_top and top not in LIGHT and not allowed:
            found.append(full)
    return found


def test_imports_keep_the_floors():
    found = {}
    for path in modules():
        name = place(path)
        imports = imports_of(ast.parse(path.read_text()), name)
        if wrong := violations(name, imports):
            found[name] = wrong
    assert not found


def test_violations_are_seen():
    for name, source in (
        ('model/robot.py', 'from inertial_estimation.logs import a'),
        ('signals/x.py', 'from ..estimation import contacts'),
        ('simulation/robot.py', 'def f():\n    from inertial_estimation.demo import a'),
        ('logs/x.py', 'from inertial_estimation.ros import conversions'),
        ('cli/x.py', 'import rclpy.node'),
        ('model/x.py', 'import yaml'),
    ):
        assert violations(name, imports_of(ast.parse(source), name)), name


def test_no_circles_between_files():
    graph = {}
    names = {'.'.join([PACKAGE, *place(p).removesuffix('.py').split('/')]): p for p in modules()}
    for full, path in names.items():
        imports = [one for one, at_top in imports_of(ast.parse(path.read_text()), place(path))]
        targets = {i if i in names else i.rpartition('.')[0] for i in imports}
        graph[full] = {t for t in targets if t in names and t != full}
    done, path = set(), []

    def visit(name):
        if name in path:
            raise AssertionError(' -> '.join([*path[path.index(name) :], name]))
        if name not in done:
            path.append(name)
            for target in sorted(graph[name]):
                visit(target)
            path.pop()
            done.add(name)

    for name in graph:
        visit(name)


def test_package_neither_prints_nor_exits():
    found = [
        f'{place(path)}:{node.lineno}'
        for path in modules()
        if not place(path).startswith(('cli/', '__main__'))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ENDS
    ]
    assert not found


def test_importing_the_core_loads_nothing_heavy(tmp_path):
    names = [place(p).removesuffix('.py').replace('/', '.') for p in modules()]
    skipped = ('ros.', 'simulation.node', 'demo.recorder')
    lines = [f'import {PACKAGE}.{n}' for n in names if not n.startswith(skipped) and '__' not in n]
    lines += ['import sys', f'print([m for m in {HEAVY} if m in sys.modules])']
    run = subprocess.run(
        [sys.executable, '-c', '\n'.join(lines)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': str(FOLDER.parent)}, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == '[]'
