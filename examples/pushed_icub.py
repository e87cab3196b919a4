# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Push a simulated iCub that stands on its feet, and compare estimated with true forces.

No ROS is needed: the readings go into the assembler and the estimator as in the node.

    python examples/pushed_icub.py --seconds 10 --picture docs/demo.svg
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from inertial_estimation import Contact, EstimatorSettings, Robot, SampleAssembler, WrenchEstimator
from inertial_estimation.config import FilterSettings, JointStateSettings
from inertial_estimation.config.files import check_writable
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES

RATE = 250
SHOWN = ('chest', 'r_hand', 'l_upper_leg', 'l_sole')
NO_EFFORTS = np.empty(0)
SHORTEST, LONGEST = 2.0, 600.0  # the first push begins after a second


class Pipeline:
    """Samples from readings, estimates from samples, for one choice of IMUs."""

    def __init__(self, simulated, imus):
        self.robot = Robot.from_urdf(simulated.urdf, imus=imus)
        settings = EstimatorSettings(
            imus=tuple(imus),
            joint_states=JointStateSettings(velocity_source='filter'),
            filter=FilterSettings(window=0.12),
        )
        self.assembler = SampleAssembler(self.robot, settings)
        contacts = [Contact(frame) for frame in simulated.contact_frames]
        self.estimator = WrenchEstimator(self.robot, contacts)
        self.ft_rows = [simulated.ft_names.index(ft.name) for ft in self.robot.ft_sensors]
        self.imu_rows = [simulated.imu_names.index(name) for name in imus]
        self.joint_names = simulated.joint_names

    def update(self, readings):
        """Push the readings of one instant; return the wrenches."""
        stamp = readings.stamp_ns
        for k, row in enumerate(self.ft_rows):
            self.assembler.push_ft(k, stamp, readings.ft_readings[row])
        for k, row in enumerate(self.imu_rows):
            rate, acceleration = readings.angular_velocities, readings.proper_accelerations
            self.assembler.push_imu(k, stamp, rate[row], acceleration[row])
        sample = self.assembler.push_joints(
            0, stamp, self.joint_names, readings.positions, readings.velocities, NO_EFFORTS
        )
        return self.estimator.update(sample).wrenches


def simulate(seconds):
    """Return times, contact names, true and estimated forces [N] by the number of IMUs."""
    simulated = SimulatedRobot(SCENES['standing'](seconds, 0), rate_hz=RATE)
    noise = SensorNoise(seed=1)
    pipelines = {
        '1 IMU': Pipeline(simulated, ['root_link']),
        f'{len(simulated.imu_names)} IMUs': Pipeline(simulated, list(simulated.imu_names)),
    }
    times, truth = [], []
    estimates = {name: [] for name in pipelines}
    for _ in range(round(seconds * RATE)):
        snapshot = simulated.step()
        readings = noise.apply(snapshot)
        times.append(1e-9 * snapshot.time_ns)
        truth.append(snapshot.external_wrenches[:, :3])
        for name, pipeline in pipelines.items():
            estimates[name].append(pipeline.update(readings)[:, :3])
    arrays = {name: np.array(forces) for name, forces in estimates.items()}
    return np.array(times), simulated.contact_frames, np.array(truth), arrays


def draw(path, times, contacts, truth, estimates):
    """Draw the magnitude of the force at some contacts, 25 points a second."""
    import matplotlib

    matplotlib.use('svg')
    import matplotlib.pyplot as plt

    # The same picture from the same numbers, byte by byte.
    plt.rcParams.update({'svg.hashsalt': 'inertial_estimation', 'font.size': 9})
    few = slice(None, None, RATE // 25)
    figure, axes = plt.subplots(2, 2, figsize=(9, 4.5), sharex=True, layout='constrained')
    for axis, frame in zip(axes.flat, SHOWN, strict=True):
        row = contacts.index(frame)
        for name, forces in estimates.items():
            axis.plot(times[few], np.linalg.norm(forces[few, row], axis=1), lw=1.4, label=name)
        size = np.linalg.norm(truth[few, row], axis=1)
        axis.plot(times[few], size, 'k--', lw=1, label='truth')
        axis.set_title(frame, fontsize=9)
        axis.set_ylabel('force [N]')
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel('time [s]')
    axes[0, 0].legend(loc='upper right')
    figure.savefig(path, format='svg', metadata={'Date': None})


def main(arguments=None):
    """Run, print the errors, and draw if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[1])
    parser.add_argument('--seconds', type=float, default=10.0, help='length of the scene')
    parser.add_argument('--picture', type=Path, help='SVG file to draw (needs matplotlib)')
    chosen = parser.parse_args(arguments)
    if not SHORTEST <= chosen.seconds <= LONGEST:
        parser.error(f'--seconds is {chosen.seconds}: take {SHORTEST:g} to {LONGEST:g}')
    if chosen.picture and find_spec('matplotlib') is None:
        parser.error('--picture needs matplotlib: pip install matplotlib')
    try:
        if chosen.picture:
            check_writable(chosen.picture)
        times, contacts, truth, estimates = simulate(chosen.seconds)
    except InertialEstimationError as error:
        parser.error(str(error))
    for name, forces in estimates.items():
        error = forces - truth
        error = error[np.isfinite(error).all(axis=(1, 2))]
        rms = np.sqrt((error**2).sum(axis=2).mean())
        print(f'{name:>8}: force error {rms:.2f} N rms over {len(contacts)} contacts')
    if chosen.picture:
        draw(chosen.picture, times, contacts, truth, estimates)


if __name__ == '__main__':
    main()
