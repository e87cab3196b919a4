# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External wrenches and joint torques from FT sensors and IMUs, inertial parameters, calibration.

    robot = Robot.from_urdf('icub.urdf', imus=['head'])
    estimator = WrenchEstimator(robot, [Contact('l_sole'), Contact('r_sole')])
    estimate = estimator.update(sample)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inertial_estimation.calibration.affine import fit_affine
    from inertial_estimation.calibration.in_situ_matrix import AddedMass, in_situ_matrix
    from inertial_estimation.calibration.in_situ_offset import in_situ_offset
    from inertial_estimation.calibration.offset_from_model import offset_from_model
    from inertial_estimation.calibration.temperature import fit_temperature
    from inertial_estimation.calibration.tool import ToolMotion, fit_tool
    from inertial_estimation.config import EstimatorSettings, IdentifierSettings
    from inertial_estimation.errors import InertialEstimationError
    from inertial_estimation.estimation.contacts import Contact, ContactKind
    from inertial_estimation.estimation.dependence import dependence_table
    from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
    from inertial_estimation.estimation.internal_wrenches import InternalWrenches
    from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
    from inertial_estimation.findings import Finding
    from inertial_estimation.identification.equations.builder import (
        EquationBuilder,
        EquationChoice,
    )
    from inertial_estimation.identification.excitation.design import design_excitation
    from inertial_estimation.identification.information import Information
    from inertial_estimation.identification.problem import Bounds, Identification, Problem
    from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
    from inertial_estimation.identification.recursion.settings import RecursionSettings
    from inertial_estimation.identification.solvers.methods import solve
    from inertial_estimation.identification.unknowns import Unknowns
    from inertial_estimation.logs.identify import identify
    from inertial_estimation.logs.identify_settings import IdentifySettings
    from inertial_estimation.logs.log import Log
    from inertial_estimation.logs.open_log import open_log
    from inertial_estimation.logs.replay import replay
    from inertial_estimation.logs.results import Replay
    from inertial_estimation.model.free_floating import FreeFloatingModel
    from inertial_estimation.model.ft_calibration import FtCalibration
    from inertial_estimation.model.identifiable import base_parameters
    from inertial_estimation.model.parameter_update import ParameterUpdate
    from inertial_estimation.model.regressor import submodel_regressors
    from inertial_estimation.model.robot import Robot
    from inertial_estimation.model.sensors import FtSensor, FtSpec, Imu, LinkSensorSpec
    from inertial_estimation.sample import Sample, SampleBatch, SensorState
    from inertial_estimation.signals.assembler import SampleAssembler
    from inertial_estimation.uncertainty.deviations import Uncertainty
    from inertial_estimation.uncertainty.sensor_noise import NoiseModel

# fmt: off
__all__ = [
    'AddedMass', 'Bounds', 'Contact', 'ContactKind', 'EquationBuilder', 'EquationChoice',
    'EstimatorSettings', 'Finding', 'FreeFloatingModel', 'FtCalibration', 'FtSensor', 'FtSpec',
    'Identification', 'IdentifierSettings', 'IdentifySettings', 'Imu', 'InertialEstimationError',
    'Information', 'InternalWrenches', 'LinkSensorSpec', 'Log', 'NoiseModel', 'ParameterUpdate',
    'Problem', 'Quality', 'RecursionSettings', 'RecursiveIdentifier', 'Replay', 'Robot', 'Sample',
    'SampleAssembler', 'SampleBatch', 'SensorState', 'ToolMotion', 'Uncertainty', 'Unknowns',
    'WrenchEstimate', 'WrenchEstimator', 'base_parameters', 'dependence_table',
    'design_excitation', 'fit_affine', 'fit_temperature', 'fit_tool', 'identify', 'in_situ_matrix',
    'in_situ_offset', 'offset_from_model', 'open_log', 'replay', 'solve', 'submodel_regressors',
]
# fmt: on

_MODULES = {
    'calibration.affine': ('fit_affine',),
    'calibration.in_situ_matrix': ('AddedMass', 'in_situ_matrix'),
    'calibration.in_situ_offset': ('in_situ_offset',),
    'calibration.offset_from_model': ('offset_from_model',),
    'calibration.temperature': ('fit_temperature',),
    'calibration.tool': ('ToolMotion', 'fit_tool'),
    'config': ('EstimatorSettings', 'IdentifierSettings'),
    'errors': ('InertialEstimationError',),
    'estimation.contacts': ('Contact', 'ContactKind'),
    'estimation.dependence': ('dependence_table',),
    'estimation.estimate': ('Quality', 'WrenchEstimate'),
    'estimation.internal_wrenches': ('InternalWrenches',),
    'estimation.wrench_estimator': ('WrenchEstimator',),
    'findings': ('Finding',),
    'identification.equations.builder': ('EquationBuilder', 'EquationChoice'),
    'identification.excitation.design': ('design_excitation',),
    'identification.information': ('Information',),
    'identification.problem': ('Bounds', 'Identification', 'Problem'),
    'identification.recursion.identifier': ('RecursiveIdentifier',),
    'identification.recursion.settings': ('RecursionSettings',),
    'identification.solvers.methods': ('solve',),
    'identification.unknowns': ('Unknowns',),
    'logs.identify': ('identify',),
    'logs.identify_settings': ('IdentifySettings',),
    'logs.log': ('Log',),
    'logs.open_log': ('open_log',),
    'logs.replay': ('replay',),
    'logs.results': ('Replay',),
    'model.free_floating': ('FreeFloatingModel',),
    'model.identifiable': ('base_parameters',),
    'model.parameter_update': ('ParameterUpdate',),
    'model.regressor': ('submodel_regressors',),
    'model.robot': ('Robot',),
    'model.ft_calibration': ('FtCalibration',),
    'model.sensors': ('FtSensor', 'FtSpec', 'Imu', 'LinkSensorSpec'),
    'sample': ('Sample', 'SampleBatch', 'SensorState'),
    'signals.assembler': ('SampleAssembler',),
    'uncertainty.deviations': ('Uncertainty',),
    'uncertainty.sensor_noise': ('NoiseModel',),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command and the nodes start faster."""
    if name not in _HOMES:
        raise AttributeError(f"module 'inertial_estimation' has no attribute '{name}'")
    value = getattr(import_module(f'inertial_estimation.{_HOMES[name]}'), name)
    globals()[name] = value
    return value
