# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which forces act on a robot: external wrenches and joint torques from FT sensors and IMUs.

    robot = Robot.from_urdf('icub.urdf', imus=['head'])
    estimator = WrenchEstimator(robot, [Contact('l_sole'), Contact('r_sole')])
    estimate = estimator.update(sample)
"""

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.grounds import find_grounds
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration, FtSpec, LinkSensorSpec
from inertial_estimation.sample import Sample, SampleBatch, SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

__all__ = [
    'Contact',
    'ContactSet',
    'EstimatorSettings',
    'FtCalibration',
    'FtSpec',
    'InertialEstimationError',
    'InternalWrenches',
    'LinkSensorSpec',
    'NoiseModel',
    'Quality',
    'Robot',
    'Sample',
    'SampleAssembler',
    'SampleBatch',
    'SensorState',
    'Uncertainty',
    'WrenchEstimate',
    'WrenchEstimator',
    'find_grounds',
]
