# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The launch files: compiled everywhere, run for real where launch can be imported.

rviz2, robot_state_publisher and the player of replay.launch.py are stand-ins that write down how
they were called: they are not ours to test.
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

import numpy as np
import pytest

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.messages import (
    Decoder,
)

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
FILES = ('estimation', 'demo', 'replay')
ARGUMENTS = {
    'params_file', 'namespace', 'use_sim_time', 'autostart', 'robot_description_file', 'rviz',
    'log_level', 'use_respawn', 'identify', 'identifier_params_file',
}  # fmt: skip
TIMEOUT = 30.0
NO_LAUNCH = 'launch and launch_ros come with ROS only, no package index has them'

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


@pytest.mark.parametrize('name', FILES)
def test_compiles(name):
    path = ROOT / 'launch' / f'{name}.launch.py'
    compile(path.read_text(), str(path), 'exec')


def description(name):
    """Return the launch description of a file, and what it declares."""
    pytest.importorskip('launch_ros', reason=NO_LAUNCH)
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    from launch import LaunchContext

    path = ROOT / 'launch' / f'{name}.launch.py'
    source = PythonLaunchDescriptionSource(str(path))
    return source.get_launch_description(LaunchContext())


@pytest.mark.parametrize(
    ('name', 'more'),
    [
        ('estimation', set()),
        ('demo', {'scene', 'duration'}),
        ('replay', {'bag', 'rate', 'start_offset'}),
    ],
)
def test_arguments_are_declared_and_described(name, more):
    arguments = {a.name: a for a in description(name).get_launch_arguments()}
    assert set(arguments) >= ARGUMENTS | more
    assert all(a.description for a in arguments.values())


def test_default_files_exist():
    arguments = {a.name: a for a in description('estimation').get_launch_arguments()}
    for name in ('params_file', 'identifier_params_file'):
        (default,) = arguments[name].default_value
        assert Path(default.text).is_file()


@pytest.fixture
def prefix(tmp_path):
    """Return an installed tree that points here, as `colcon build --symlink-install` makes it."""
    pytest.importorskip('launch_ros', reason=NO_LAUNCH)
    share = tmp_path / 'share'
    index = share / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'inertial_estimation').touch()
    (share / 'inertial_estimation').mkdir()
    for folder in ('launch', 'config'):
        (share / 'inertial_estimation' / folder).symlink_to(ROOT / folder)
    nodes = tmp_path / 'lib' / 'inertial_estimation'
    nodes.mkdir(parents=True)
    for name, module in (
        ('wrench_estimator', 'ros.estimator_node'),
        ('parameter_identifier', 'ros.identifier_node'),
        ('embedded_robot', 'simulation.node'),
    ):
        write_program(
            nodes / name,
            'import sys\nfrom inertial_estimation_nodes import start\n'
            f"sys.exit(start('inertial_estimation.{module}'))\n",
        )
    return tmp_path


def write_program(path, text):
    path.write_text(f'#!{sys.executable}\n{text}')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def start(prefix, tmp_path):
    """Return a function that starts a launch file; what is said goes to a file."""
    processes = []

    def launch(name, *arguments, path=''):
        environment = dict(os.environ)
        prefixes = str(prefix), os.environ.get('AMENT_PREFIX_PATH')
        environment['AMENT_PREFIX_PATH'] = os.pathsep.join(filter(None, prefixes))
        environment['PYTHONPATH'] = os.pathsep.join(
            part for part in (str(ROOT), *sys.path) if part
        )
        environment['PATH'] = os.pathsep.join([path, environment['PATH']])
        environment['ROS_LOG_DIR'] = str(tmp_path / 'log')
        said = (tmp_path / 'said').open('w')
        file = prefix / 'share' / 'inertial_estimation' / 'launch' / f'{name}.launch.py'
        processes.append(
            subprocess.Popen(
                [sys.executable, '-c', RUNNER, str(file), *arguments],
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
        return processes[-1], tmp_path / 'said'

    yield launch
    for process in processes:
        # The session is its own: nobody else is in it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_empty(process):
    """Tell whether a launch file that has ended left nothing running."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_for(process, said, text, times=1):
    """Wait until a text was said so many times; return all that was."""
    deadline = time.monotonic() + TIMEOUT
    while said.read_text().count(text) < times:
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.1)
    return said.read_text()


@pytest.fixture
def urdf(tmp_path):
    from robots import nested_humanoid_urdf

    path = tmp_path / 'robot.urdf'
    path.write_text(nested_humanoid_urdf())
    return path


@pytest.fixture
def parameters(tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text('/**: {ros__parameters: {imus: [head], contacts: [sole]}}')
    return path


def test_estimation(start, urdf, parameters):
    process, said = start(
        'estimation',
        f'params_file:={parameters}',
        f'robot_description_file:={urdf}',
        'namespace:=left',
        'rviz:=true',
    )
    text = wait_for(process, said, '6 joints, 3 FT sensors, 1 IMUs, 4 submodels')
    assert 'left.wrench_estimator' in text
    assert 'rviz2 is not installed' in text
    assert 'robot_state_publisher is not installed' in text
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0
    assert 'process has finished cleanly' in said.read_text()


VIEWER = """
import json, sys, yaml
words = sys.argv[1:]
files = [after for word, after in zip(words, words[1:]) if word == '--params-file']
parameters = {}
for file in files:
    for section in yaml.safe_load(open(file)).values():
        parameters.update(section['ros__parameters'])
with open(CALLS, 'a') as calls:
    calls.write(json.dumps([words, parameters]) + chr(10))
"""


@pytest.fixture
def viewers(prefix, tmp_path):
    """Install stand-ins that end at once; return a function that reads how each was called."""
    for name in ('rviz2', 'robot_state_publisher'):
        (prefix / 'share' / 'ament_index' / 'resource_index' / 'packages' / name).touch()
        program = prefix / 'lib' / name / name
        program.parent.mkdir()
        write_program(program, VIEWER.replace('CALLS', repr(str(tmp_path / f'{name}.calls'))))

    def call_of(name):
        (line,) = (tmp_path / f'{name}.calls').read_text().splitlines()
        return json.loads(line)

    return call_of


def test_rviz_and_the_publisher_of_the_model_are_started(start, viewers, urdf, parameters):
    # A colon would make a mapping of the text where it is taken for YAML.
    urdf.write_text(urdf.read_text() + '<!-- note: a colon -->\n')
    process, said = start(
        'estimation',
        f'params_file:={parameters}',
        f'robot_description_file:={urdf}',
        'namespace:=left',
        'use_sim_time:=true',
        'rviz:=true',
    )
    wait_for(process, said, '6 joints, 3 FT sensors')
    text = wait_for(process, said, 'has finished cleanly', times=2)
    assert 'not installed' not in text
    words, found = viewers('rviz2')
    assert Path(words[words.index('-d') + 1]).samefile(ROOT / 'config' / 'wrench_estimator.rviz')
    assert '__ns:=/left' in words
    assert found == {'use_sim_time': True}
    words, found = viewers('robot_state_publisher')
    assert '__ns:=/left' in words
    assert found == {'use_sim_time': True, 'robot_description': urdf.read_text()}
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def test_rviz_without_a_description_file_needs_no_publisher(start, viewers, parameters):
    process, said = start('estimation', f'params_file:={parameters}', 'rviz:=true')
    wait_for(process, said, 'waiting for the robot description')
    wait_for(process, said, 'has finished cleanly')
    assert viewers('rviz2')[1] == {'use_sim_time': False}
    assert 'robot_state_publisher' not in said.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def test_viewers_that_are_not_wanted_are_not_started(start, viewers, urdf, parameters):
    process, said = start(
        'estimation', f'params_file:={parameters}', f'robot_description_file:={urdf}'
    )
    wait_for(process, said, '6 joints, 3 FT sensors')
    assert 'rviz2' not in said.read_text() and 'robot_state_publisher' not in said.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def processes_of(session):
    """Yield command line and niceness of the processes of a session."""
    for folder in Path('/proc').iterdir():
        with suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == session:
                words = (folder / 'cmdline').read_text().split('\0')
                yield words, os.getpriority(os.PRIO_PROCESS, int(folder.name))


def test_the_identifier_starts_beside_the_estimator(start, urdf, tmp_path):
    shared, own = tmp_path / 'shared.yaml', tmp_path / 'identifier.yaml'
    state = tmp_path / 'state.json'
    shared.write_text('/**: {ros__parameters: {fixed_link: root, contacts: [sole]}}')
    own.write_text(f'/**/parameter_identifier: {{ros__parameters: {{state_file: {state}}}}}')
    process, said = start(
        'estimation',
        f'params_file:={shared}',
        f'robot_description_file:={urdf}',
        'namespace:=left',
        'identify:=true',
        f'identifier_params_file:={own}',
    )
    text = wait_for(process, said, '6 joints, 3 FT sensors, 0 IMUs, 4 submodels', times=2)
    assert 'left.parameter_identifier' in text and 'left.wrench_estimator' in text
    time.sleep(0.5)
    niceness = {
        Path(word).name: nice
        for words, nice in processes_of(os.getsid(process.pid))
        for word in words[:2]
        if Path(word).name in ('wrench_estimator', 'parameter_identifier')
    }
    assert niceness['parameter_identifier'] == niceness['wrench_estimator'] + 10
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0
    assert said.read_text().count('process has finished cleanly') == 2


def test_by_itself_the_identifier_is_not_started(start, urdf, parameters):
    process, said = start(
        'estimation', f'params_file:={parameters}', f'robot_description_file:={urdf}'
    )
    wait_for(process, said, '6 joints, 3 FT sensors')
    assert 'parameter_identifier' not in said.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def test_estimation_without_a_description_waits(start, parameters):
    process, said = start('estimation', f'params_file:={parameters}', 'use_sim_time:=true')
    wait_for(process, said, 'waiting for the robot description on /robot_description')
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT) == 0


def test_a_wrong_choice_is_refused(start):
    process, said = start('estimation', 'rviz:=perhaps')
    assert process.wait(TIMEOUT) != 0
    assert 'perhaps' in said.read_text()
    assert is_empty(process)


def test_demo_ends_with_the_robot(start):
    pytest.importorskip('mujoco', reason='needs the simulator')
    pytest.importorskip('icub_models', reason='needs the robot description of icub-models')
    process, said = start('demo', 'duration:=2.0', 'scene:=standing', 'rviz:=true')
    assert process.wait(2 * TIMEOUT) == 0
    text = said.read_text()
    assert "robot 'iCub'" in text
    assert 'robot_state_publisher is not installed' in text
    assert text.count('finished cleanly') == 2
    assert is_empty(process)


def test_demo_gives_its_model_to_rviz(start, viewers):
    pytest.importorskip('mujoco', reason='needs the simulator')
    pytest.importorskip('icub_models', reason='needs the robot description of icub-models')
    from inertial_estimation.simulation.description import icub_urdf

    process, said = start('demo', 'duration:=0.5', 'rviz:=true')
    assert process.wait(2 * TIMEOUT) == 0
    assert said.read_text().count('finished cleanly') == 4
    assert viewers('robot_state_publisher')[1]['robot_description'] == icub_urdf()
    assert viewers('rviz2')[0][0] == '-d'
    assert is_empty(process)


def test_replay_plays_and_ends_with_the_bag(start, urdf, parameters, tmp_path):
    calls = tmp_path / 'calls'
    player = tmp_path / 'bin' / 'ros2'
    player.parent.mkdir()
    write_program(
        player,
        f'import sys, time\nopen({str(calls)!r}, "w").write("\\n".join(sys.argv[1:]))\n'
        'time.sleep(3.0)\n',
    )
    process, said = start(
        'replay',
        'bag:=some_bag',
        'rate:=0.5',
        'start_offset:=1.5',
        f'params_file:={parameters}',
        f'robot_description_file:={urdf}',
        path=str(player.parent),
    )
    assert process.wait(TIMEOUT) == 0
    words = calls.read_text().split('\n')
    assert words[:8] == [
        'bag', 'play', 'some_bag', '--clock', '--rate', '0.5', '--start-offset', '1.5',
    ]  # fmt: skip
    assert Path(words[words.index('--qos-profile-overrides-path') + 1]).is_file()
    assert '3 FT sensors' in said.read_text()
    assert 'finished cleanly' in said.read_text()


PLAYER = """
import sys, time
from pathlib import Path

import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rosbags.highlevel import AnyReader
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

KINDS = {kind.__name__: kind for kind in (JointState, WrenchStamped)}
assert sys.argv[1:3] == ['bag', 'play'] and '--clock' in sys.argv
rate, offset = (float(sys.argv[sys.argv.index(key) + 1]) for key in ('--rate', '--start-offset'))
rclpy.init()
node = Node('player')
clock = node.create_publisher(Clock, '/clock', 10)
with AnyReader([Path(sys.argv[3])]) as bag:
    topics = {
        c.topic: node.create_publisher(KINDS[c.msgtype.split('/')[-1]], c.topic, 10)
        for c in bag.connections
    }
    while not all(publisher.get_subscription_count() for publisher in topics.values()):
        time.sleep(0.1)
    first, start = bag.start_time + round(1e9 * offset), time.monotonic()
    for connection, stamp, data in bag.messages(start=first, stop=first + SECONDS * 10**9):
        time.sleep(max(0.0, 1e-9 * (stamp - first) / rate - (time.monotonic() - start)))
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(stamp, 10**9)
        clock.publish(message)
        topics[connection.topic].publish(bytes(data))
rclpy.shutdown()
"""
SECONDS, OFFSET = 6, 40.0
"""A part of the log in which the robot stands on its left foot and no sensor is frozen [s]."""
LEAST_HEARD = 50
LEAST_EQUAL = 0.7
"""Live, a reading may come after the joint state that it precedes in the bag."""


def test_replay_of_a_real_log(start, context, tmp_path):
    rosbags = pytest.importorskip('rosbags', reason='needs rosbags to play a bag without rosbag2')
    data = ROOT.parent / 'shared' / 'data'
    if not data.is_dir():
        pytest.skip('needs the log in ../shared')
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from sensor_msgs.msg import MultiDOFJointState

    from inertial_estimation.ros.conversions import stamp_to_ns

    assert rosbags
    (tmp_path / 'bin').mkdir()
    write_program(tmp_path / 'bin' / 'ros2', PLAYER.replace('SECONDS', str(SECONDS)))
    node, heard = Node('listener', context=context), []
    node.create_subscription(
        MultiDOFJointState, 'wrench_estimator/external_wrenches', heard.append, 100
    )
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    process, said = start(
        'replay',
        f'bag:={data / "icub_yoga_left" / "bag"}',
        f'start_offset:={OFFSET}',
        f'params_file:={ROOT / "config" / "icub_yoga_left.yaml"}',
        f'robot_description_file:={data / "models" / "icub_v2_5.urdf"}',
        path=str(tmp_path / 'bin'),
    )
    while process.poll() is None:
        executor.spin_once(timeout_sec=0.1)
    executor.shutdown()
    node.destroy_node()
    assert process.returncode == 0, said.read_text()
    # The player waits for the estimator, not for the listener.
    assert len(heard) > LEAST_HEARD
    expected = estimates_of_the_library(data)
    equal = [
        np.array_equal(rows(message), expected[stamp], equal_nan=True)
        for message in heard
        if (stamp := stamp_to_ns(message.header.stamp)) in expected
    ]
    assert np.mean(equal) > LEAST_EQUAL
    assert np.isfinite(rows(heard[-1])).all()


def rows(message):
    """Return the wrenches of a message as an array."""
    return [
        [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
        for w in message.wrench
    ]


def estimates_of_the_library(data):
    """Return the wrenches of each stamp of the same part of the log, in the order of the bag."""
    from rosbags.highlevel import AnyReader

    settings = EstimatorSettings.from_yaml(ROOT / 'config' / 'icub_yoga_left.yaml')
    robot = build_robot(settings, (data / 'models' / 'icub_v2_5.urdf').read_text())
    assembler, estimator = SampleAssembler(robot, settings), build_estimator(settings, robot)
    fts = {settings.ft_of(sensor.name).topic: k for k, sensor in enumerate(robot.ft_sensors)}
    joints, wrenches = Decoder('joints'), Decoder('ft')
    found = {}
    with AnyReader([data / 'icub_yoga_left' / 'bag']) as bag:
        first = bag.start_time + round(1e9 * OFFSET)
        for connection, _, raw in bag.messages(start=first, stop=first + SECONDS * 10**9):
            if connection.topic in fts:
                reading = wrenches.decode(bytes(raw))
                assembler.push_ft(fts[connection.topic], reading.stamp_ns, reading.values)
                continue
            index = settings.joint_states.topics.index(connection.topic)
            sample = assembler.push_joints(index, *joints.decode(bytes(raw)))
            if sample is not None:
                found[sample.stamp_ns] = estimator.update(sample).wrenches
    return found


def test_replay_without_a_player_says_what_to_do(start, urdf, parameters):
    from shutil import which

    if which('ros2'):
        pytest.skip('ros2 is installed')
    process, said = start('replay', 'bag:=some_bag', f'params_file:={parameters}')
    assert process.wait(TIMEOUT) != 0
    assert 'inertial-estimation replay' in said.read_text()
    assert is_empty(process)


def test_qos_of_the_player_is_what_it_knows():
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    profiles = yaml.safe_load((ROOT / 'config' / 'replay_qos.yaml').read_text())
    assert profiles['/robot_description']['durability'] == 'transient_local'
    for profile in profiles.values():
        assert set(profile) == {'history', 'depth', 'reliability', 'durability'}
