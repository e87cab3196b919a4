# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
In-situ and model offsets on real logs, against the figures that their owners print.

Not covered: matrices with added masses, for which there is no public log.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shared_data import SHARED
from wam import table

from bench.arms import CONFIGS
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.in_situ_offset import in_situ_offset
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.support_loads import link_poses
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot

DATA = SHARED / 'data'
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')

# Seven poses of an ATI Axia80, five digits: weight, force offset, centre of mass z,
# moment offset (github.com/leledeyuan00/Gravity-Compensation-F-T-sensor).
AXIA = (10.80391, -2.13583, -2.76399, -13.07675, 0.05197, -0.15658, -0.07939, 0.12979)
# 24 orientations of an ATI Gamma with an IMU (doi 10.5281/zenodo.11075229).
NTNU_OFFSET = np.array([9.07633, -1.01814, 9.98482, 0.432449, -0.692162, -0.156746])
NTNU_BIAS = np.array([-0.00366, 0.00885, 0.07711])
G = 9.81
# iCub on both feet: offsets of the reference software, and leg minus foot along the leg axis
# with them, as the README of the data has it; the weight in between by the model.
TIPPING = {
    'l_leg_ft': (-4.11735, 111.148, -131.104, -13.423, 1.36924, -1.04304),
    'l_foot_ft': (-52.0296, -5.64247, -18.0923, -0.516052, 9.91345, 0.717567),
    'r_leg_ft': (-5.65084, -10.5031, -24.6174, 1.95779, 2.61084, 0.0036913),
    'r_foot_ft': (-17.4992, -0.910681, 18.0613, -0.824831, 3.32657, -0.252851),
}
LEGS = {('r_leg_ft', 'r_foot_ft'): 42.95, ('l_leg_ft', 'l_foot_ft'): 47.97}
BETWEEN, NEAR = 42.6, 0.5


def columns(name, *groups):
    rows = table(DATA / name)
    return [np.array([[float(row[one]) for one in group] for row in rows]) for group in groups]


def axia(name):
    """Return wrenches (n, 6) in the sensor's frame and proper accelerations (n, 3)."""
    turns, wrenches = columns(
        f'axia80_static/{name}.csv', ('qx', 'qy', 'qz', 'qw'),
        ('fx_base', 'fy_base', 'fz_base', 'tx_base', 'ty_base', 'tz_base'),
    )  # fmt: skip
    S_R_B = Rotation.from_quat(turns).inv().as_matrix()
    turned = np.einsum('nij,nkj->nki', S_R_B, wrenches.reshape(-1, 2, 3)).reshape(-1, 6)
    return turned, 9.80665 * S_R_B[:, :, 2]


def test_axia_spectrum_offset_and_drift_are_the_published():
    found = in_situ_offset(*axia('poses7'))
    # As the description of the data prints them, with their last digits.
    singular_values = (18.2, 14.5, 5.28, 0.0051, 0.0012, 0.00003)
    digits = (0.05, 0.05, 0.005, 0.00005, 0.00005, 0.000005)
    assert (np.abs(found.singular_values - singular_values) <= digits).all()
    assert found.gap > 100.0
    offset = in_situ_offset(*axia('poses7'), matrix=np.eye(6)).offset
    # Gains that differ by 8 % between axes go into an offset of the model.
    np.testing.assert_allclose(offset[:3], AXIA[1:4], atol=0.2)
    np.testing.assert_allclose(offset[3:], AXIA[5:], atol=0.002)
    drift = in_situ_offset(*axia('poses60'), matrix=np.eye(6)).slopes.drift
    assert drift[2] == pytest.approx(-2.3, abs=0.1)
    assert np.abs(np.delete(drift, 2)).max() < 0.02


@pytest.mark.parametrize('source', ['gravity', 'imu'])
def test_ntnu_offset_without_a_model(source):
    wrenches, imu, gravity = columns(
        'ntnu_fts_imu/0-calibration_fts-accel.csv', ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'),
        ('ax', 'ay', 'az'), ('gx', 'gy', 'gz'),
    )  # fmt: skip
    accelerations = -gravity if source == 'gravity' else G * imu
    found = in_situ_offset(wrenches, accelerations, matrix=np.eye(6))
    # Residuals of the published fit are 0.086 N and 0.003 Nm in 24 poses.
    assert (np.abs(found.offset - NTNU_OFFSET) <= np.repeat([0.05, 0.002], 3)).all()
    if source == 'imu':
        np.testing.assert_allclose(found.bias / G, NTNU_BIAS, atol=0.01)


def test_tipping_offsets_leave_the_weight_between_leg_and_foot():
    settings = EstimatorSettings.from_yaml(CONFIGS / 'icub_foot_tipping.yaml')
    robot = build_robot(settings, str(DATA / 'models' / 'icub_genova01.urdf'))
    log = open_log(DATA / 'icub_foot_tipping' / 'setup07' / 'bag', robot, settings)
    samples = log.within(TimeRange(0.0, 2.0)).samples
    names = [sensor.name for sensor in robot.ft_sensors]
    printed = np.array([TIPPING[name] for name in names])
    feet, estimator = ('l_sole', 'r_sole'), build_estimator(settings, robot)
    own = offset_from_model(estimator, samples, feet, accept_split=True).offsets
    poses = link_poses(robot, samples.positions)

    def difference(offsets, pair):
        fts = [robot.ft_sensors[names.index(name)] for name in pair]
        first, second = ((poses[ft.child] @ ft.child_H_sensor)[:, :3, :3] for ft in fts)
        wrenches = samples.ft_readings - offsets
        one, other = (wrenches[:, names.index(name), :3, None] for name in pair)
        between = one - first.swapaxes(1, 2) @ second @ other
        return np.nanmean(between[..., 0], axis=0)

    for pair, measured in LEGS.items():
        assert difference(printed, pair)[2] == pytest.approx(measured, abs=NEAR)
        assert np.linalg.norm(difference(own, pair)) == pytest.approx(BETWEEN, abs=NEAR)
