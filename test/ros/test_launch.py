# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The launch files, run for real where launch can be imported.

rviz2, robot_state_publisher and the player of replay.launch.py are stand-ins that write down how
they were called.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from robots import nested_humanoid_urdf

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0
RUNNER = """
import sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description import LaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

given = [tuple(text.split(':=', 1)) for text in sys.argv[2:]]
source = PythonLaunchDescriptionSource(sys.argv[1])
service = LaunchService()
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=given)])
)
sys.exit(service.run())
"""
VIEWER = """
import json, sys, yaml
words, parameters = sys.argv[1:], {}
for word, after in zip(words, words[1:]):
    if word == '--params-file':
        for section in yaml.safe_load(open(after)).values():
            parameters.update(section['ros__parameters'])
with open(CALLS, 'a') as calls:
    calls.write(json.dumps([words, parameters]) + chr(10))
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!{sys.executable}\n{text}')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def prefix(tmp_path):
    """Return an installed tree that points here, as `colcon build --symlink-install` makes it."""
    pytest.importorskip('launch_ros', reason='launch and launch_ros come with ROS only')
    share = tmp_path / 'share'
    index = share / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'inertial_estimation').touch()
    (share / 'inertial_estimation').mkdir()
    for folder in ('launch', 'config'):
        (share / 'inertial_estimation' / folder).symlink_to(ROOT / folder)
    for name in ('wrench_estimator', 'parameter_identifier', 'embedded_robot'):
        text = f'import sys, inertial_estimation_nodes as nodes\nsys.exit(nodes.{name}())\n'
        write_program(tmp_path / 'lib' / 'inertial_estimation' / name, text)
    return tmp_path


@pytest.fixture
def viewers(prefix, tmp_path):
    """Install stand-ins that end at once; return a function that reads how each was called."""
    for name in ('rviz2', 'robot_state_publisher'):
        (prefix / 'share' / 'ament_index' / 'resource_index' / 'packages' / name).touch()
        text = VIEWER.replace('CALLS', repr(str(tmp_path / f'{name}.calls')))
        write_program(prefix / 'lib' / name / name, text)

    def call_of(name):
        (line,) = (tmp_path / f'{name}.calls').read_text().splitlines()
        return json.loads(line)

    return call_of


class Launched:
    """A launch file that runs in a session of its own, and its output."""

    def __init__(self, prefix, name, arguments):
        prefixes = filter(None, (str(prefix), os.environ.get('AMENT_PREFIX_PATH')))
        paths = str(prefix / 'bin'), os.environ['PATH']
        environment = os.environ | {
            'AMENT_PREFIX_PATH': os.pathsep.join(prefixes), 'PATH': os.pathsep.join(paths),
            'PYTHONPATH': os.pathsep.join(filter(None, (str(ROOT), *sys.path))),
            'ROS_LOG_DIR': str(prefix / 'log'),
        }  # fmt: skip
        self._output = prefix / 'output'
        file = prefix / 'share' / 'inertial_estimation' / 'launch' / f'{name}.launch.py'
        with self._output.open('w') as output:
            self.process = subprocess.Popen(
                [sys.executable, '-c', RUNNER, str(file), *arguments], env=environment,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def text(self):
        return self._output.read_text()

    def wait_for(self, text, times=1):
        """Wait until a text was written a number of times; return all."""
        deadline = time.monotonic() + TIMEOUT
        while self.text.count(text) < times:
            assert self.process.poll() is None and time.monotonic() < deadline, self.text
            time.sleep(0.1)
        return self.text

    def processes(self):
        """Return the process of each program that runs, or that Python runs."""
        found = {}
        for folder in Path('/proc').iterdir():
            with suppress(OSError, ValueError):
                if os.getsid(int(folder.name)) == self.process.pid:
                    for word in (folder / 'cmdline').read_text().split('\0')[:2]:
                        found[Path(word).name] = int(folder.name)
        return found

    def end(self, number=0):
        """Send a signal, and return the exit code once nothing runs any more."""
        self.process.send_signal(number)
        code = self.process.wait(2 * TIMEOUT)
        with pytest.raises(ProcessLookupError):
            os.killpg(self.process.pid, 0)
        return code


@pytest.fixture
def start(prefix):
    """Return a function that starts a launch file."""
    launched = []

    def launch(name, *arguments):
        launched.append(Launched(prefix, name, arguments))
        return launched[-1]

    yield launch
    for one in launched:
        # The session is its own: no other process is in it.
        with suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()


@pytest.fixture
def given(tmp_path):
    """Return arguments that name a parameter file and a URDF."""
    urdf, parameters = tmp_path / 'robot.urdf', tmp_path / 'parameters.yaml'
    # A colon would make a mapping of the text where it is taken for YAML.
    urdf.write_text(nested_humanoid_urdf() + '<!-- note: a colon -->\n')
    parameters.write_text('/**: {ros__parameters: {imus: [head], contacts: [sole]}}')
    return f'params_file:={parameters}', f'robot_description_file:={urdf}'


READY = 'joints: 6, FT sensors: 3, IMUs: 1, submodels: 4'


def test_rviz_and_the_publisher_of_the_model_are_started(start, viewers, given):
    launched = start('estimation', *given, 'namespace:=left', 'use_sim_time:=true', 'rviz:=true')
    launched.wait_for(READY)
    launched.wait_for('has finished cleanly', times=2)
    words, found = viewers('rviz2')
    assert Path(words[words.index('-d') + 1]).samefile(ROOT / 'config' / 'wrench_estimator.rviz')
    assert '__ns:=/left' in words and found == {'use_sim_time': True}
    words, found = viewers('robot_state_publisher')
    urdf = Path(given[1].partition(':=')[2]).read_text()
    assert '__ns:=/left' in words
    assert found == {'use_sim_time': True, 'robot_description': urdf}
    assert 'parameter_identifier' not in launched.text
    assert launched.end(signal.SIGINT) == 0


def test_identifier_starts_beside_the_estimator(start, given, tmp_path):
    """And without the viewers, which are not installed."""
    own, state = tmp_path / 'identifier.yaml', tmp_path / 'state.json'
    own.write_text(f'/**/parameter_identifier: {{ros__parameters: {{state_file: {state}}}}}')
    files = f'identifier_params_file:={own}'
    more = 'namespace:=left', 'identify:=true', 'rviz:=true', files
    launched = start('estimation', *given, *more)
    text = launched.wait_for(READY, times=2)
    assert 'left.parameter_identifier' in text and 'left.wrench_estimator' in text
    for viewer in ('rviz2', 'robot_state_publisher'):
        assert f'{viewer} is not installed' in text
    niceness = {
        name: os.getpriority(os.PRIO_PROCESS, pid) for name, pid in launched.processes().items()
    }
    assert niceness['parameter_identifier'] == min(19, niceness['wrench_estimator'] + 10)
    assert launched.end(signal.SIGINT) == 0
    assert launched.text.count('process has finished cleanly') == 2


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_nodes_end_cleanly_while_time_stands_still(start, given, number):
    launched = start('estimation', *given, 'identify:=true', 'use_sim_time:=true')
    launched.wait_for(READY, times=2)
    processes = launched.processes()
    for name in ('wrench_estimator', 'parameter_identifier'):
        os.kill(processes[name], number)
    assert launched.end() == 0
    assert launched.text.count('process has finished cleanly') == 2


def test_demo_ends_with_the_robot(start, viewers):
    pytest.importorskip('mujoco', reason='needs the simulator')
    pytest.importorskip('icub_models', reason='needs the URDF of icub-models')
    from inertial_estimation.simulation.description import icub_urdf

    launched = start('demo', 'duration:=2', 'scene:=standing', 'rviz:=true')
    assert launched.end() == 0
    assert "robot 'iCub'" in launched.text
    assert launched.text.count('finished cleanly') == 4
    assert viewers('robot_state_publisher')[1]['robot_description'] == icub_urdf()


def test_replay_ends_with_the_player(start, given, tmp_path):
    calls, output = tmp_path / 'calls', tmp_path / 'output'
    # The log takes a while through the pipe of launch; the estimator needs longer to be ready.
    text = 'import time; time.sleep(0.3)\n'
    text += f'words, ready = sys.argv[1:], {READY!r} in open({str(output)!r}).read()\n'
    text += f'open({str(calls)!r}, "w").write("\\n".join([*words, str(ready)]))\n'
    write_program(tmp_path / 'bin' / 'ros2', f'import sys\n{text}')
    launched = start('replay', 'bag:=some_bag', 'rate:=0.5', 'start_offset:=1.5', *given)
    assert launched.end() == 0
    words = calls.read_text().split('\n')
    assert words[:8] == [
        'bag', 'play', 'some_bag', '--clock', '--rate', '0.5', '--start-offset', '1.5',
    ]  # fmt: skip
    assert Path(words[words.index('--qos-profile-overrides-path') + 1]).is_file()
    assert words[-1] == 'True' and 'finished cleanly' in launched.text
