# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the demo refuses, what it writes, its estimators' parameters, the processes it starts.

Not covered: the demo itself (test/ros/test_demo.py).
"""

import os
import signal
import time
from pathlib import Path

import pytest

from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.demo.processes import LAST_LINES, DemoError, Processes
from inertial_estimation.demo.run import (
    LARGEST_SEED,
    LEAST_DURATION,
    LONGEST_DURATION,
    NODES,
    TWIN,
    find_config,
    run,
)
from inertial_estimation.errors import ConfigError
from inertial_estimation.output import check_writable, write_whole
from inertial_estimation.simulation.robot import IMUS

PATIENCE = 20.0
"""For things that take milliseconds unless the machine is busy [s]."""


@pytest.mark.parametrize('duration', [LEAST_DURATION - 0.1, -1.0, float('nan')])
def test_a_duration_that_shows_nothing_is_refused(duration):
    with pytest.raises(ConfigError, match='take 10 s'):
        run(duration)


@pytest.mark.parametrize('duration', [LONGEST_DURATION + 1.0, float('inf')])
def test_a_duration_that_no_scene_lasts_is_refused(duration):
    with pytest.raises(ConfigError, match='take 3600 s at most'):
        run(duration)


@pytest.mark.parametrize('seed', [-1, LARGEST_SEED + 1])
def test_a_seed_that_no_node_takes_is_refused(seed):
    with pytest.raises(ConfigError, match=f'the seed is {seed}'):
        run(20.0, seed=seed)


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('nowhere/out.json', 'No such file or directory'),
        ('', 'no regular file'),
        ('results/out.json', 'Not a directory'),
    ],
)
def test_a_file_that_cannot_be_written_is_named_before_anything_starts(tmp_path, name, reason):
    (tmp_path / 'results').touch()
    with pytest.raises(ConfigError, match=f"cannot write '{tmp_path / name}': .*{reason}"):
        run(20.0, tmp_path / name)


def test_what_is_missing_is_named_with_advice_that_works(monkeypatch):
    monkeypatch.setattr('inertial_estimation.demo.run.find_spec', lambda name: name != 'mujoco')
    with pytest.raises(ConfigError, match='the demo needs mujoco: ') as caught:
        run(20.0)
    assert str(caught.value).endswith("in the checkout, run pip install '.[demo]'")


def test_the_command_refuses_it_in_one_sentence(capsys):
    assert main(['demo', '--json', 'nowhere/out.json']) == 1
    said = "inertial-estimation demo: cannot write 'nowhere/out.json': No such file or directory\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize('link', [False, True])
def test_a_file_is_replaced_as_a_whole(tmp_path, link):
    out = target = tmp_path / 'out.json'
    target.write_bytes(b'\xff before')
    if link:
        out = tmp_path / 'link.json'
        out.symlink_to(target)
    check_writable(out)
    assert target.read_bytes() == b'\xff before'
    write_whole(out, 'after')
    assert target.read_text() == 'after'
    assert out.is_symlink() is link
    assert {path.name for path in tmp_path.iterdir()} == {out.name, target.name}


def test_nothing_is_left_of_a_file_that_could_not_be_completed(tmp_path, monkeypatch):
    def fill_the_disk(path, *given, **named):
        path.touch()
        raise OSError(28, 'No space left on device')

    for how in ('write_text', 'write_bytes'):
        monkeypatch.setattr(Path, how, fill_the_disk)
    with pytest.raises(ConfigError, match='No space left'):
        write_whole(tmp_path / 'out.json', 'text')
    assert not list(tmp_path.iterdir())


def test_missing_packages_are_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr('inertial_estimation.demo.run.find_spec', lambda name: None)
    with pytest.raises(ConfigError, match=r'rclpy, rich, mujoco, icub_models.*make demo'):
        run(20.0)


def test_the_parameter_file_is_the_one_that_is_shipped():
    shipped = Path(__file__).resolve().parents[1] / 'config' / 'demo.yaml'
    assert find_config().read_text() == shipped.read_text()


def test_an_installed_parameter_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr('inertial_estimation.demo.run.__file__', str(tmp_path / 'a' / 'b' / 'c'))
    monkeypatch.setattr('sys.prefix', str(tmp_path / 'venv'))
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'ros'))
    with pytest.raises(ConfigError, match='install the package as a whole'):
        find_config()
    installed = tmp_path / 'ros' / 'share' / 'inertial_estimation' / 'config' / 'demo.yaml'
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert find_config() == installed


def settings_of(node: str) -> EstimatorSettings:
    pytest.importorskip('yaml', reason='reads parameter files')
    return EstimatorSettings.from_yaml(find_config(), node)


def test_estimators_differ_in_their_imus():
    one, several = (settings_of(node) for node in NODES)
    assert len(one.imus) == 1
    assert 8 <= len(several.imus) <= 13
    assert {*one.imus, *several.imus} <= set(IMUS)


@pytest.mark.parametrize('node', NODES)
def test_a_twin_differs_in_the_topics_of_its_fts_only(node):
    noisy, twin = settings_of(node).to_parameters(), settings_of(node + TWIN).to_parameters()
    sensors = noisy['ft_sensors']
    assert len(sensors) == 6
    expected = {f'ft.{name}.topic': f'ft_true/{name}' for name in sensors}
    assert {key: value for key, value in twin.items() if value != noisy[key]} == expected


def start(processes: Processes, folder: Path, code: str, **kwargs):
    """Start a process that runs some code in its function main."""
    (folder / 'child.py').write_text(f'import os, signal, sys, time\ndef main():\n    {code}\n')
    return processes.start('child', 'child', ['argument'], **kwargs)


@pytest.fixture
def processes(tmp_path):
    with Processes({**os.environ, 'PYTHONPATH': str(tmp_path)}) as processes:
        yield processes


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_that_ends_is_noticed_with_its_last_lines(processes, tmp_path):
    code = "[sys.stderr.write(f'line {k}\\n') for k in range(100)]; return 3"
    child = start(processes, tmp_path, code)
    wait_until(lambda: child.ended)
    with pytest.raises(DemoError, match='child ended with exit code 3') as caught:
        processes.check()
    assert str(caught.value).splitlines()[1:] == [f'  line {k}' for k in range(100)][-LAST_LINES:]


def test_a_process_that_is_killed_says_by_which_signal(processes, tmp_path):
    child = start(processes, tmp_path, 'os.kill(os.getpid(), signal.SIGKILL)')
    wait_until(lambda: child.ended)
    with pytest.raises(DemoError, match=r'(?s)SIGKILL.*it said nothing'):
        processes.check()


def test_a_process_that_ends_well_is_missed_as_well(processes, tmp_path):
    child = start(processes, tmp_path, 'return 0')
    wait_until(lambda: child.ended)
    with pytest.raises(DemoError, match='exit code 0'):
        processes.check()


REPORTING = (
    'signal.signal(signal.SIGINT, lambda *_:'
    " (sys.stdout.write('2\\n'), sys.stdout.flush(), {end}));"
    "sys.stdout.write('1\\n'); sys.stdout.flush(); time.sleep(60)"
)


def test_reports_are_read_as_they_come_and_the_last_one_at_the_end(processes, tmp_path):
    child = start(processes, tmp_path, REPORTING.format(end='os._exit(0)'), reports=True)
    assert child.report(PATIENCE) == 1
    assert child.report(0.0) is None
    processes.check()
    assert child.cpu_time > 0.0
    assert child.last_report() == 2


def test_a_reporter_that_ends_badly_is_not_believed(processes, tmp_path):
    child = start(processes, tmp_path, REPORTING.format(end='os.abort()'), reports=True)
    assert child.report(PATIENCE) == 1
    with pytest.raises(DemoError, match='SIGABRT'):
        child.last_report()


@pytest.mark.parametrize('stubborn', [False, True])
def test_no_process_outlives_the_demo(tmp_path, monkeypatch, stubborn):
    monkeypatch.setattr('inertial_estimation.demo.processes.PATIENCE', 0.3)
    handler = 'signal.SIG_IGN' if stubborn else 'signal.SIG_DFL'
    code = f"signal.signal(signal.SIGINT, {handler}); sys.stdout.write('1\\n');"
    before = signal.getsignal(signal.SIGINT)
    with Processes({**os.environ, 'PYTHONPATH': str(tmp_path)}) as processes:
        child = start(
            processes, tmp_path, code + 'sys.stdout.flush(); time.sleep(60)', reports=True
        )
        assert child.report(PATIENCE) == 1
        assert not child.ended
    assert child.ended
    assert signal.getsignal(signal.SIGINT) is before
