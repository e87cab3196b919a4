# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Payloads in the file of ``identify``, and the command with logs with and without one."""

import numpy as np
import pytest
from identify_command import refused, report, run
from robots import arm_with_wrist_sensor_urdf
from simulated_arm import swinging

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.model.robot import Robot

RATE = 500.0
GAINS = np.array([12.0, 0.5, 3.0])
WEIGHED = Payload('disc', 'tip', 2.0)
OTHERS = np.array([0.1, -0.06, 0.2, 0.042, 0.003, 0.055, -0.01, 0.006, 0.032])
"""Its first moment and inertia."""
# The low pass at 20 Hz and central differences change motions below 2 Hz by up to this share.
FILTERED = 1e-2
# Of torques [Nm].
NOISE = 0.3

SETTINGS = """
robot: {fixed_link: base, ft_sensors: []}
log:
  time: t
  joints: [shoulder, elbow, lift]
  positions: {columns: q}
  efforts: {columns: current}
preparation: {cutoff: 20.0, every: 4}
rows: {efforts: all, gains: all}
payloads:
  disc: {frame: tip, mass: 2.0, logs: ['*_disc.npz']}
"""


def write_log(path, payloads, rng):
    """Write the currents of an arm that moves with some payloads."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = swinging(rng, 8.0, RATE)
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, payloads=payloads))
    (rows,) = builder.equations(samples, carried=np.ones((len(samples), len(payloads))))
    x = np.append(robot.parameters[list(robot.submodels[0].links)], OTHERS if payloads else ())
    efforts = [rows[f'effort {name}'] for name in robot.joint_names]
    currents = np.stack([one.Y @ x - one.y for one in efforts], axis=1) / GAINS
    np.savez(path, t=samples.stamp_ns * 1e-9, q=samples.positions, current=currents)


@pytest.fixture
def folder(tmp_path, rng):
    (tmp_path / 'robot.urdf').write_text(arm_with_wrist_sensor_urdf())
    (tmp_path / 'logs.yaml').write_text(SETTINGS)
    write_log(tmp_path / 'run.npz', (), rng)
    write_log(tmp_path / 'run_disc.npz', (WEIGHED,), rng)
    return tmp_path


def add_noise(folder, rng, *more):
    for name in ('run.npz', 'run_disc.npz', *more):
        log = dict(np.load(folder / name))
        log['current'] += rng.normal(0.0, NOISE / GAINS, log['current'].shape)
        np.savez(folder / name, **log)


def both(folder):
    return '--weight', '1e-3', folder / 'run.npz', folder / 'run_disc.npz'


def test_gains_come_from_a_log_without_and_one_with_a_payload(folder, capsys):
    assert run(folder, *both(folder)) == 0
    assert 'Payloads' in capsys.readouterr().out
    found = report(folder)
    assert [log['payloads'] for log in found['logs']] == [[], ['disc']]
    extras = found['submodels'][0]['extras']
    gains = [extras[f'{joint}.drive_gain'] for joint in ('shoulder', 'elbow', 'lift')]
    np.testing.assert_allclose(gains, GAINS, rtol=FILTERED)
    assert found['payloads']['disc']['m'] == 2.0
    assert found['payloads']['disc']['mc_x'] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ('wrong', 'right', 'name'),
    [
        ('mass: 2.0', 'mass: 2000.0', 'torques of the identified parameters'),
        ('columns: current', 'columns: current, scale: [1, -1, 1]', 'elbow.drive_gain'),
    ],
)
def test_impossible_gains_are_refused(folder, capsys, rng, wrong, right, name):
    add_noise(folder, rng)
    (folder / 'logs.yaml').write_text(SETTINGS.replace(wrong, right))
    assert name in refused(folder, capsys, *both(folder))


@pytest.mark.parametrize('known', [True, False])
@pytest.mark.parametrize(
    ('third', 'payloads', 'odd'),
    [
        ('more.npz', (WEIGHED,), True),
        ('more_disc.npz', (), True),
        ('more_disc.npz', (WEIGHED,), False),
    ],
)
def test_log_with_another_payload_is_found(folder, rng, known, third, payloads, odd):
    """With gains to find, or the mass of the payload."""
    write_log(folder / third, payloads, rng)
    add_noise(folder, rng, third)
    if known:
        scale = f'columns: current, scale: {GAINS.tolist()}'
        settings = SETTINGS.replace('columns: current', scale).replace(', gains: all', '')
        (folder / 'logs.yaml').write_text(settings.replace('mass: 2.0, ', ''))
    assert run(folder, *both(folder), f'{folder / third}@2:6') == 0
    findings = report(folder)['findings']
    logs = {one['subject'] for one in findings if one['code'] == 'logs_disagree'}
    assert (f'{folder / third}@2:6' in logs) == bool(logs) == odd
