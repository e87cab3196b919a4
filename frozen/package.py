# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
All that the frozen runs ask of the package, in and out as plain arrays by name.

Whoever renames or reshapes something edits the function here that uses it; the runs and their
numbers stay. `use` finds a class or function wherever it stands in the package, so what only moves
needs no edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from store import Numbers, series

Array = np.ndarray
QUALITIES = ('contact_quality', 'torque_quality', 'external_torque_quality', 'submodel_quality')


@cache
def use(*names: str, near: str = '') -> Any:
    """
    Return a class or function of the package by its name, of today or of before.

    What the package exports goes first; `near` is a part of the path of the file that defines it.
    """
    import inertial_estimation

    for name in names:
        if not near and name in inertial_estimation.__all__:
            return getattr(inertial_estimation, name)
        found = [file for file in _definitions().get(name, ()) if near in file]
        if len(found) == 1:
            module = found[0].removesuffix('.py').removesuffix('/__init__').replace('/', '.')
            return getattr(import_module(f'inertial_estimation.{module}'), name)
        if found:
            raise LookupError(f'{name} is defined in {", ".join(found)}: tell which with near')
    raise LookupError(f'the package defines no {" and no ".join(names)}{near and " in " + near}')


@cache
def _definitions() -> dict[str, list[str]]:
    """Return the files that define a class or function, by its name."""
    found: dict[str, list[str]] = {}
    for file in sorted(_root().rglob('*.py')):
        text = file.read_text(encoding='utf-8')
        for name in re.findall(r'^(?:class|def) (\w+)', text, re.MULTILINE):
            found.setdefault(name, []).append(file.relative_to(_root()).as_posix())
    return found


def _name_of(thing: Any, *names: str) -> str:
    """Return the first of the names of today and of before that something has."""
    return next(name for name in names if hasattr(thing, name) or name in _fields(thing))


def _fields(thing: Any) -> tuple[str, ...]:
    return tuple(getattr(thing, '__dataclass_fields__', ()))


def _root() -> Path:
    import inertial_estimation

    return Path(inertial_estimation.__file__).parent


def configs() -> Path:
    """Return the folder of the parameter files that belong to the package in use."""
    return _root().parent / 'config'


# Robots and samples


def make_robot(urdf: str, **options: Any) -> Any:
    """Return a robot; imus, fixed_link, gravity as `Robot.from_urdf` takes them."""
    Robot = use('Robot')

    return Robot.from_urdf(urdf, **options)


def names(robot: Any) -> dict[str, list[str]]:
    """Return the names of joints, links, IMUs, FT sensors and submodels in the robot's order."""
    return {
        'joints': list(robot.joint_names),
        'links': list(robot.link_names),
        'imus': [imu.name for imu in robot.imus],
        'fts': [sensor.name for sensor in robot.ft_sensors],
        'submodels': [submodel.name for submodel in robot.submodels],
    }


def submodel_links(robot: Any) -> dict[str, list[str]]:
    """Return the links of each submodel in the order of its parameters."""
    return {one.name: [robot.link_names[k] for k in one.links] for one in robot.submodels}


def parameters(robot: Any) -> Array:
    """Return inertial parameters in the order of the links, (n_links, 10)."""
    return np.array(robot.parameters)


def with_parameters(robot: Any, values: Array) -> Any:
    """Return the robot with other inertial parameters."""
    return robot.with_parameters(values)


def make_batch(robot: Any, columns: Mapping[str, Any], **more: Any) -> Any:
    """
    Return a batch from arrays with names.

    `columns` holds joints, imus, fts (names) and stamp_ns, positions, velocities, accelerations,
    angular_velocities, proper_accelerations, angular_accelerations, ft_readings in their order.
    """
    SampleBatch = use('SampleBatch')

    own = names(robot)
    order = {
        kind: [list(columns[kind]).index(name) for name in own[kind]]
        for kind in ('joints', 'imus', 'fts')
    }

    def taken(name: str, kind: str) -> Array:
        return np.array(columns[name], dtype=float)[:, order[kind]]

    return SampleBatch(
        stamp_ns=np.array(columns['stamp_ns'], dtype=np.int64),
        positions=taken('positions', 'joints'),
        velocities=taken('velocities', 'joints'),
        accelerations=taken('accelerations', 'joints'),
        angular_velocities=taken('angular_velocities', 'imus'),
        proper_accelerations=taken('proper_accelerations', 'imus'),
        angular_accelerations=taken('angular_accelerations', 'imus'),
        ft_readings=taken('ft_readings', 'fts'),
        **more,
    )


def bare_batch(stamp_ns: Array, q: Array, dq: Array, ddq: Array, **columns: Array) -> Any:
    """Return a batch without sensors, but for what is given."""
    SampleBatch = use('SampleBatch')

    n = len(stamp_ns)
    none = {
        'angular_velocities': np.zeros((n, 0, 3)),
        'proper_accelerations': np.zeros((n, 0, 3)),
        'angular_accelerations': np.zeros((n, 0, 3)),
        'ft_readings': np.zeros((n, 0, 6)),
    }
    return SampleBatch(
        stamp_ns=stamp_ns, positions=q, velocities=dq, accelerations=ddq, **(none | columns)
    )


def assumed_state() -> int:
    """Return the state of a joint whose position is assumed."""
    SensorState = use('SensorState')

    return int(SensorState.ASSUMED)


# Estimation


def make_contact(frame: str, kind: str = 'wrench', **options: Any) -> Any:
    """Return a contact: wrench, force, axial_force, known; point, direction, wrench, name."""
    Contact = use('Contact')

    return Contact(frame, kind, **options)


def make_calibration(robot: Any, by_sensor: Mapping[str, Mapping[str, Array]]) -> Any:
    """Return a calibration from matrix, offset, coefficients, reference of each sensor."""
    FtCalibration = use('FtCalibration')

    values = [by_sensor[name] for name in names(robot)['fts']]
    return FtCalibration(*(
        np.array([one[key] for one in values])
        for key in ('matrix', 'offset', 'coefficients', 'reference')
    ))  # fmt: skip


def make_estimator(robot: Any, contacts: Sequence[Any], calibration: Any = None) -> Any:
    """Return an estimator."""
    WrenchEstimator = use('WrenchEstimator')

    return WrenchEstimator(robot, contacts, calibration=calibration)


def estimates(
    estimator: Any, batch: Any, touches: Sequence[Any] | None = None, keep: int = 24
) -> Numbers:
    """Return what the estimator makes of a batch."""
    return named_estimate(estimator, raw_estimate(estimator, batch, touches), keep)


def raw_estimate(estimator: Any, batch: Any, touches: Sequence[Any] | None = None) -> Any:
    """Return the same as the object of the package."""
    given = None if touches is None else estimator.with_touches(touches)
    return estimator.batch(batch, given)


def one_by_one(
    estimator: Any, batch: Any, touches: Sequence[Any] | None = None, keep: int = 24
) -> Numbers:
    """Return what single updates make of a batch."""
    given = None if touches is None else estimator.with_touches(touches)
    found = [estimator.update(batch[k], given) for k in range(len(batch))]
    whole = found[0]._replace(**{
        name: np.array([getattr(one, name) for one in found])
        for name in found[0]._fields
        if name != 'contacts'
    })  # fmt: skip
    return named_estimate(estimator, whole, keep)


def named_estimate(estimator: Any, estimate: Any, keep: int) -> Numbers:
    """Return the numbers of an estimate by the names of contacts, joints, submodels, sensors."""
    own = names(estimator.robot)
    contacts = [contact.name for contact in estimate.contacts]
    found: Numbers = {}
    columns = (
        ('wrench', contacts, estimate.wrenches),
        ('torque', own['joints'], estimate.torques),
        ('external_torque', own['joints'], estimate.external_torques),
        ('residual', own['submodels'], estimate.residuals),
        ('rank', own['submodels'], estimate.ranks),
        ('contact_quality', contacts, estimate.contact_quality),
        ('torque_quality', own['joints'], estimate.torque_quality),
        ('external_torque_quality', own['joints'], estimate.external_torque_quality),
        ('submodel_quality', own['submodels'], estimate.submodel_quality),
        ('used_ft', own['fts'], estimate.used_fts),
        ('used_imu', own['imus'], estimate.used_imus),
    )
    for kind, labels, values in columns:
        found |= _by_name(kind, labels, values, keep)
    return found


def _by_name(kind: str, labels: Sequence[str], values: Array, keep: int) -> Numbers:
    """Return columns by name: vectors each on its own, scalars in one array sorted by name."""
    values = np.asarray(values, dtype=float)
    if values.ndim == 3:
        found: Numbers = {}
        for k, label in enumerate(labels):
            found |= series(f'{kind}/{label}', values[:, k], keep)
        return found
    order = sorted(range(len(labels)), key=lambda k: labels[k])
    return series(f'{kind}/sorted by name', values[:, order], keep)


def standard_deviations(
    estimator: Any, batch: Any, noise: Mapping[str, Array], roots: Array | None = None
) -> Numbers:
    """Return standard deviations; noise holds joint (3, 3), imu (3, 3), ft (6,)."""
    NoiseModel = use('NoiseModel')
    Uncertainty = use('Uncertainty')

    model = NoiseModel.uniform(
        estimator.robot, joint=noise['joint'], imu=noise['imu'], ft=noise['ft']
    )
    found = Uncertainty(estimator, model, roots).of_batch(batch)
    own = names(estimator.robot)
    return {
        **_by_name('wrench', [one.name for one in found.contacts], found.wrenches, 8),
        **_by_name('torque', own['joints'], found.torques, 8),
        **_by_name('external_torque', own['joints'], found.external_torques, 8),
        **_by_name('residual', own['submodels'], found.residuals, 8),
    }


def inner_wrenches(estimator: Any, batch: Any, joints: Sequence[str]) -> Numbers:
    """Return wrenches through joints and net wrenches of all links."""
    InternalWrenches = use('InternalWrenches')

    estimate, inner = estimator.batch(batch), InternalWrenches(estimator)
    return {
        **_by_name('through', joints, inner.of(batch, estimate, list(joints)), 8),
        **_by_name('net', names(estimator.robot)['links'], inner.net(batch, estimate), 4),
    }


def dependence(robot: Any, contacts: Sequence[Any]) -> Numbers:
    """Return which sensors, joints and links every result rests on, as zeros and ones."""
    dependence_table = use('dependence_table', 'find_grounds')

    table = dependence_table(robot, contacts)
    own, found = names(robot), {}
    for kind, results in (('torque', table.torques), ('wrench', table.wrenches)):
        for one in results:
            for of in ('fts', 'imus', 'joints', 'links'):
                known = {robot.fixed_frame} if of == 'imus' and robot.fixed_frame else own[of]
                found[f'{kind}/{one.name}/{of}'] = np.array([
                    float(name in getattr(one, of)) for name in sorted(known)
                ])  # fmt: skip
    return found


def momentum_figures(estimator: Any, batch: Any) -> Numbers:
    """Return how much of the change of momentum the wrenches leave unexplained."""
    MomentumCheck = use('MomentumCheck')

    check, estimate = MomentumCheck(estimator.robot), estimator.batch(batch)
    for k in range(len(batch)):
        own = {n: v if n == 'contacts' else v[k] for n, v in estimate._asdict().items()}
        check.add(batch[k], type(estimate)(**own))
    found = check.report()
    return {
        'windows': np.array(float(found.windows)),
        'unexplained': np.array(found.unexplained),
        'change': np.array(found.change),
    }


def expected_readings(estimator: Any, batch: Any, keep: int) -> Numbers:
    """Return what each sensor reads besides what all others say."""
    found, own = use('sensor_residuals')(estimator, batch), names(estimator.robot)
    return {
        **_by_name('angular_velocity', own['imus'], found.angular_velocities, keep),
        **_by_name('proper_acceleration', own['imus'], found.proper_accelerations, keep),
        **_by_name('ft_reading', own['fts'], found.ft_readings, keep),
    }


def link_sensor(name: str, frame: str, point: Sequence[float], measures: str) -> Any:
    """Return an IMU at a point of a link; measures both, accelerometer or gyroscope."""
    pose = np.eye(4)
    pose[:3, 3] = point
    return use('LinkSensorSpec')(name, frame, pose, measures)


def array_estimator(robot: Any, contacts: Sequence[Any]) -> Any:
    """Return an estimator that takes angular accelerations from arrays of accelerometers."""
    return use('WrenchEstimator')(robot, contacts, acceleration_arrays=True)


def equations_of_motion(
    robot: Any, q: Array, dq: Array, pose: Array, base_velocity: Array, frame: str
) -> Numbers:
    """Return equations of motion about a frame in each representation, and momentum."""
    state = use('FreeFloating', 'FreeFloatingModel')(robot).state(q, dq, pose, base_velocity)
    forms = use('Representation')
    order = np.argsort(names(robot)['joints'])
    rows = np.concatenate([np.arange(6), 6 + order])
    found: Numbers = {}
    for form in ('LEFT', 'RIGHT', 'MIXED'):
        one = state.equations(frame, getattr(forms, form))
        acceleration = np.zeros(6 + len(q))
        acceleration[rows] = np.cos(np.arange(6.0 + len(q)))
        found |= {
            f'velocity/{form}': one.velocity[rows],
            f'mass matrix/{form}': one.mass_matrix[np.ix_(rows, rows)],
            f'coriolis/{form}': one.coriolis_matrix[np.ix_(rows, rows)],
            f'gravity/{form}': one.gravity_forces[rows],
            f'inverse dynamics/{form}': one.inverse_dynamics(acceleration)[rows],
            f'jacobian/{form}': state.jacobian(frame, one, getattr(forms, form))[:, rows],
            f'acceleration/{form}': state.acceleration(
                frame, one, acceleration, getattr(forms, form)
            ),
        }
    central = use('centroidal')(state)
    found |= {
        'com/position': central.com,
        'com/velocity': central.com_velocity,
        'com/inertia': central.inertia,
        'com/momentum': central.momentum,
        'pose': state.pose(frame),
    }
    return found


# Streams


class Streams:
    """Samples from messages; joints in two parts, with states and rates."""

    def __init__(
        self, joints: Sequence[str], fts: Sequence[str], imus: Sequence[str], **options: Any
    ) -> None:
        settings = use('EstimatorSettings').from_dict(options)
        robot = SimpleNamespace(
            joint_names=tuple(joints),
            ft_sensors=[SimpleNamespace(name=name) for name in fts],
            imus=[SimpleNamespace(name=name, measures='both') for name in imus],
        )
        self._assembler = use('SampleAssembler')(robot, settings)
        self._joints, self._fts, self._imus = tuple(joints), list(fts), list(imus)
        self._samples: list[Any] = []

    def push_ft(self, name: str, stamp_ns: int, wrench: Array) -> None:
        """Take a reading."""
        self._assembler.push_ft(self._fts.index(name), stamp_ns, wrench)

    def push_imu(self, name: str, stamp_ns: int, rate: Array, acceleration: Array) -> None:
        """Take a reading."""
        self._assembler.push_imu(self._imus.index(name), stamp_ns, rate, acceleration)

    def push_joints(
        self, part: int, stamp_ns: int, joints: Sequence[str], q: Array, v: Array
    ) -> None:
        """Take positions and velocities."""
        none = np.empty(0)
        sample = self._assembler.push_joints(part, stamp_ns, tuple(joints), q, v, none)
        if sample is not None:
            self._samples.append(sample)

    def numbers(self) -> Numbers:
        """Return all samples, and rates."""
        columns = (
            ('position', self._joints, 'positions'),
            ('velocity', self._joints, 'velocities'),
            ('acceleration', self._joints, 'accelerations'),
            ('angular_velocity', self._imus, 'angular_velocities'),
            ('proper_acceleration', self._imus, 'proper_accelerations'),
            ('angular_acceleration', self._imus, 'angular_accelerations'),
            ('ft_reading', self._fts, 'ft_readings'),
            ('joint_state', self._joints, 'joint_states'),
            ('imu_state', self._imus, 'imu_states'),
            ('ft_state', self._fts, 'ft_states'),
        )
        found = series('time', np.array([s.stamp_ns / 1e9 for s in self._samples])[:, None])
        for kind, labels, name in columns:
            values = np.array([getattr(sample, name) for sample in self._samples], dtype=float)
            found |= _by_name(kind, labels, values, 24)
        rates = self._assembler.rates()
        found['rates'] = np.concatenate([rates.joints, rates.imus, rates.fts])
        return found


class Touches:
    """Contacts that are felt, from messages."""

    def __init__(self, robot: Any, **options: Any) -> None:
        settings = use('EstimatorSettings').from_dict(options)
        self._stream = use('ContactStream')(robot, settings)

    def push(self, stamp_ns: int, frame: str, point: Array) -> None:
        """Take a message."""
        self._stream.push(stamp_ns, frame, point)

    def at(self, stamp_ns: int) -> Array:
        """Return number, mean point and sum of lengths of names of frames of what is felt."""
        found = self._stream.at(stamp_ns)
        points = np.array([one.point for one in found]).reshape(-1, 3)
        mean = points.mean(axis=0) if len(points) else np.zeros(3)
        return np.array([len(found), *mean, sum(sum(map(ord, one.frame)) for one in found)])


# Logs


class Log(NamedTuple):
    """A bag as it was read."""

    robot: Any
    settings: Any
    recording: Any

    @property
    def times(self) -> Array:
        """Seconds after the first FT message."""
        return np.array(self.recording.times)

    @property
    def batch(self) -> Any:
        """Samples."""
        return self.recording.samples


def read_log(bag: Path, urdf: Path | str, config: str | Mapping[str, Any], **changes: Any) -> Log:
    """
    Return a bag, read as the node would.

    `urdf` is a path or text, `config` the name of a parameter file or parameters by dotted names,
    `changes` are settings other than these.
    """
    given = use('load_parameters')(configs() / config, '') if isinstance(config, str) else config
    settings = use('EstimatorSettings').from_dict({**given, **changes})
    text = urdf.read_text(encoding='utf-8') if isinstance(urdf, Path) else urdf
    robot = use('build_robot')(settings, text)
    return Log(robot, settings, use('open_log', 'read_samples')(bag, robot, settings))


def sample_numbers(log: Log, start: float, stop: float, keep: int = 24) -> Numbers:
    """Return the samples of a part of a log."""
    batch, own = _part(log, start, stop).samples, names(log.robot)
    columns = (
        ('position', 'joints', batch.positions),
        ('velocity', 'joints', batch.velocities),
        ('acceleration', 'joints', batch.accelerations),
        ('angular_velocity', 'imus', batch.angular_velocities),
        ('proper_acceleration', 'imus', batch.proper_accelerations),
        ('angular_acceleration', 'imus', batch.angular_accelerations),
        ('ft_reading', 'fts', batch.ft_readings),
    )
    found = {'count': np.array(float(len(batch)))}
    for kind, of, values in columns:
        if own[of]:
            found |= _by_name(kind, own[of], values, keep)
    if batch.efforts is not None:
        found |= _by_name('effort', own['joints'], batch.efforts, keep)
    return found


def _part(log: Log, start: float, stop: float) -> Any:
    TimeRange = use('TimeRange')

    return log.recording.within(TimeRange(start, stop))


def replay_numbers(
    log: Log,
    part: tuple[float, float],
    source: str = 'settings',
    offset_part: tuple[float, float] = (-np.inf, np.inf),
    support: str = '',
    through: Sequence[str] = (),
    net: Sequence[str] = (),
    deviations: bool = False,
) -> Numbers:
    """Return what a replay finds; source of offsets: settings, model or torques."""
    replay, OffsetRequest, TimeRange = _replay(), use('OffsetRequest'), use('TimeRange')
    run, computed = replay(
        log, TimeRange(*part), OffsetRequest(source, TimeRange(*offset_part), support),
        list(through), list(net), deviations,
    )  # fmt: skip
    estimator = free_estimator(log)
    own = names(log.robot)
    found = named_estimate(estimator, run.estimate, 24)
    for key, value in named_estimate(estimator, run.clean, 4).items():
        if key.startswith(('wrench', 'torque/')):
            found[f'without frozen/{key}'] = value
    for k, name in enumerate(own['fts']):
        found[f'offset/{name}'] = np.array(computed.calibration.offsets[k])
        found[f'assumed/{name}'] = np.array(float(computed.assumed[k]))
    fit = computed.fit
    if fit is not None:
        found |= {
            'offset fit/deviations': np.array(fit.deviations),
            'offset fit/rank': np.array(float(fit.rank)),
            'offset fit/samples': np.array(float(fit.n_samples)),
        }
    if run.through is not None:
        found |= _by_name('through', through, run.through.wrenches, 8)
    if run.net is not None:
        found |= _by_name('net', net, run.net.wrenches, 8)
    if deviations:
        spread = run.deviations
        contacts = [contact.name for contact in run.estimate.contacts]
        found |= _by_name('deviation/wrench', contacts, spread.wrenches, 4)
        found |= _by_name('deviation/torque', own['joints'], spread.torques, 4)
        found |= _by_name('deviation/residual', own['submodels'], spread.residuals, 4)
    return found


def _replay() -> Any:
    """Return what replays, of today or of the first edition, as one function."""
    try:
        replay = use('replay', near='logs/replay')
    except LookupError:
        return _first_replay

    def today(
        log: Log, part: Any, offsets: Any, through: list[str], net: list[str], deviations: bool
    ) -> tuple[Any, Any]:
        outputs = replace(
            log.settings.outputs, internal_wrench_joints=through, net_wrench_links=net
        )
        found = replay(
            log.robot, log.recording, replace(log.settings, outputs=outputs), time_range=part,
            offsets=offsets, deviations_rate=None if deviations else 0.0,
        )  # fmt: skip
        return found, found.offsets

    return today


def _first_replay(
    log: Log, part: Any, offsets: Any, through: list[str], net: list[str], deviations: bool
) -> tuple[Any, Any]:
    computed = use('compute_offsets')(offsets, log.recording, log.robot, log.settings)
    recording = log.recording.within(part)
    run = use('run', near='logs/replay')(recording, log.robot, log.settings, computed.calibration)
    run = use('with_through')(run, through)
    run = use('with_net')(run, net)
    if deviations:
        run = use('with_deviations')(run, use('some_rows')(len(recording.times)))
    return run, computed


def free_estimator(log: Log) -> Any:
    """Return the estimator of the settings of a log."""
    build_estimator = use('build_estimator')

    return build_estimator(log.settings, log.robot)


# Calibration


def supported_offsets(
    log: Log, part: tuple[float, float], supports: Sequence[str], accept_split: bool = False,
    moving: bool = False,
) -> Numbers:  # fmt: skip
    """Return offsets from the model while supports carry the robot."""
    from_model = use('offset_from_model', near='calibration/')

    samples = _part(log, *part).without_frozen()
    found = from_model(
        free_estimator(log), samples, list(supports), accept_split=accept_split,
        moving=moving,
    )  # fmt: skip
    numbers = {'undetermined': np.array(float(len(found.undetermined)))}
    for k, name in enumerate(names(log.robot)['fts']):
        numbers |= {
            f'offset/{name}': found.offsets[k],
            f'spread/{name}': found.spread[k],
            f'deviation/{name}': found.deviations[k],
            f'flags/{name}': np.array([found.found[k], found.unique[k], found.n_samples[k]]),
        }
        numbers |= series(f'difference/{name}', found.differences[:, k], 8)
    return {key: np.asarray(value, dtype=float) for key, value in numbers.items()}


def in_situ_offset(wrenches: Array, accelerations: Array, **options: Any) -> Numbers:
    """Return an offset from readings and accelerations alone; options bias, max_acceleration."""
    in_situ = use('in_situ_offset', near='calibration/')

    found = in_situ(wrenches, accelerations, matrix=np.eye(6), **options)
    return {
        'offset': found.offset,
        'covariance': found.covariance,
        'slopes': found.slopes.slopes,
        'drift': found.slopes.drift,
        'spreads': found.singular_values / np.sqrt(found.kept.sum()),
        'unexplained': np.array(found.unexplained),
        'gravity': np.array(found.gravity),
        'bias': found.bias,
        'kept': np.array(float(found.kept.sum())),
    }


def added_mass_matrix(sets: Sequence[Mapping[str, Any]]) -> Numbers:
    """Return a matrix from added masses: raw, accelerations, mass, centre of each set."""
    AddedMass = use('AddedMass')
    in_situ_matrix = use('in_situ_matrix', near='calibration/')

    given = [
        AddedMass(f'set {k}', one['raw'], one['accelerations'], one['mass'], one['centre'])
        for k, one in enumerate(sets)
    ]
    found = in_situ_matrix(given, rotation=np.eye(3), former=np.eye(6))
    return {
        'matrix': found.matrix,
        'deviations': found.deviations,
        'body': np.array([found.body.mass, *found.body.first_moment]),
        'residuals': found.residuals,
        'offsets': np.array([found.matrix @ one.offset for one in found.offsets]),
        'singular_values': found.singular_values,
    }


def affine_fit(
    log: Log, whole: tuple[float, float], sensor: str, fitted: tuple[float, float],
    tested: tuple[float, float],
) -> Numbers:  # fmt: skip
    """Return matrix and offset of a sensor from the model, fitted and tested on parts of a log."""
    sensor_calibrations = use('sensor_calibrations')
    calibrate_affine = use('calibrate_affine')
    predict_wrenches = use('predict_wrenches')
    TimeRange = use('TimeRange')

    predicted = predict_wrenches(_part(log, *whole), log.robot, log.settings)
    calibrations = sensor_calibrations(log.settings, log.robot)
    test = TimeRange(*tested).mask(predicted.times)
    (found,), _ = calibrate_affine(
        predicted, calibrations, TimeRange(*fitted).mask(predicted.times), test=test,
        sensors=(sensor,),
    )  # fmt: skip
    k = names(log.robot)['fts'].index(sensor)
    readings = predicted.samples.ft_readings[:, k] + predicted.wrenches[:, k]
    present = int((test & np.isfinite(readings).all(axis=1)).sum())
    n_tested = found.test['samples']
    return {
        **series('predicted', predicted.wrenches[:, k]),
        'matrix': found.fit.matrix,
        'offset': found.fit.offset,
        'matrix_deviations': found.fit.matrix_deviations,
        'offset_deviations': found.fit.offset_deviations,
        'weight': np.array(found.fit.weight),
        'rms': found.fit.rms,
        'rms_offset_only': found.fit.rms_offset_only,
        'rms_held_out': found.fit.rms_held_out,
        'used': np.array(float(found.fit.used.sum())),
        'tested/rms': found.test['rms'],
        'tested/rms_before': found.test['rms_before'],
        'tested/count': np.array([n_tested, present - n_tested], dtype=float),
    }


def hindsight(log_options: Mapping[str, Any], config: str) -> dict[str, Any]:
    """Return the settings that smooth readings and look at the middle of the window."""
    EstimatorSettings = use('EstimatorSettings')

    settings = EstimatorSettings.from_yaml(configs() / config)
    delay = 0.5 * settings.filter.window
    return {**log_options, 'filter.delay': delay, 'filter.smooth_readings': True}


def temperature_fit(wrenches: Array, predicted: Array, warmth: Array, times: Array) -> Numbers:
    """Return temperature coefficients."""
    fit_temperature = use('fit_temperature')

    found = fit_temperature(wrenches, predicted, warmth, times, reference=25.0)
    keys = ('coefficients', 'deviations', 'offset', 'offset_deviations', 'rms_before', 'rms')
    return {
        **{key: np.asarray(getattr(found, key)) for key in keys},
        'used': np.array(float(found.used.sum())),
    }


def tool_fit(
    bag: Path, ft: str, imu: str, rpy: Sequence[float], accelerometer_offset: Sequence[float],
    inertia: bool = False,
) -> Numbers:  # fmt: skip
    """Return mass, centre, offset and delay of a tool from a bag."""
    SensorCalibration = use('SensorCalibration')
    fit_tool = use('fit_tool')
    TimeRange = use('TimeRange')
    SensorPair = use('SensorPair', 'ToolSource')
    read_tool_log = use('read_tool_log')
    pose_from_xyz_rpy = use('pose_from_xyz_rpy')

    source = SensorPair(ft, imu, pose_from_xyz_rpy(np.zeros(3), np.array(rpy)))
    log = read_tool_log(bag, source, TimeRange(), SensorCalibration(), accelerometer_offset)
    found = fit_tool(log.motion, inertia=inertia)
    keys = (
        'mass', 'mass_deviation', 'centre', 'centre_deviations', 'offset', 'offset_deviations',
        'delay', 'delay_deviation', 'misalignment', 'spreads', 'rms_offset_only',
        'rms_without_delay', 'rms',
    )  # fmt: skip
    if inertia:
        keys += ('inertia', 'inertia_deviations')
    return {
        **{key: np.asarray(getattr(found, key), dtype=float) for key in keys},
        'used': np.array(float(found.used.sum())),
        **series('residuals', found.residuals),
    }


# Identification


def identify_logs(
    logs: Sequence[str], validate: Sequence[str], urdf: str, config: str, method: str,
    options: Mapping[str, Any] | None = None,
) -> Numbers:  # fmt: skip
    """Return what ``identify`` finds in logs."""
    identify = use('identify', near='logs/')
    IdentifySettings = use('IdentifySettings')

    first, *_ = identify.__code__.co_varnames
    given = (list(logs), urdf) if first == 'logs' else (urdf, list(logs))
    report = identify(
        *given, IdentifySettings.from_yaml(configs() / config), method=method,
        validate=list(validate), options=options,
    )  # fmt: skip
    fit = report.fit
    found: Numbers = {
        f'parameters/{name}': row
        for name, row in zip(names(fit.robot)['links'], np.array(fit.parameters), strict=True)
    }
    found |= {f'payload/{name}': np.array(row) for name, row in fit.payloads.items()}
    unseen = {one.block.submodel.name: one for one in report.validation}
    for block in fit.blocks:
        answer, own = block.answer, block.name
        for extra, value in answer.extras.items():
            found[f'extra/{own}/{extra}'] = np.array(value)
        for name, value in zip(answer.unknowns.names, answer.deviations, strict=True):
            found[f'deviation/{own}/{name}'] = np.array(value)
        found[f'rank/{own}'] = np.array(float(answer.rank))
        found[f'mean_square/{own}'] = np.array(answer.mean_square)
        for kind, value in block.noise.deviations.items():
            found[f'noise/{own}/{kind}'] = np.array(value)
        for kind, rows in block.evidence.used.items():
            found[f'rows/{own}/{kind}'] = np.array(float(rows))
        for kind, value in block.evidence.residuals(answer.x).items():
            found[f'residual/{own}/{kind}'] = np.array(value)
        if own in unseen:
            for kind, value in unseen[own].residuals(answer.x).items():
                found[f'validation/{own}/{kind}'] = np.array(value)
        told = report.determined[own]
        found[f'determined/{own}'] = np.array([told.possible, told.seen.rank], dtype=float)
    return found


def identify_body(
    motion: Mapping[str, Array], wrenches: Array, prior: Array, method: str,
    options: Mapping[str, Any] | None = None,
) -> Numbers:  # fmt: skip
    """
    Return what is found of one body from its motion and the wrench on it.

    `motion` holds times, angular_velocities, proper_accelerations, angular_accelerations; all in
    the frame of the body.
    """
    fit = use('fit', near='identification/fit')
    gather = use('gather', near='identification/')
    RowBuilder = use('EquationBuilder', 'RowBuilder')

    robot = make_robot('<robot name="tool"><link name="tool"/></robot>', imus=['tool'])
    robot = with_parameters(robot, prior[None])
    none = np.zeros((len(wrenches), 0))
    samples = bare_batch(
        np.round(1e9 * motion['times']).astype(np.int64), none, none, none,
        **{
            key: motion[key][:, None]
            for key in ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
        },
    )  # fmt: skip
    seen = gather(RowBuilder(robot), samples, external={'tool': wrenches})
    answer = fit(robot, seen, method, dict(options or {})).blocks[0].answer
    return {
        'parameters': answer.parameters[0],
        'deviations': answer.deviations,
        'mean_square': np.array(answer.mean_square),
        'rank': np.array(float(answer.rank)),
    }


def without_prior() -> dict[str, Any]:
    """Return the options of the semidefinite method without a prior."""
    return {'prior': 'none'}


def one_row() -> dict[str, Any]:
    """Return the options of a prior that weighs as much as one row."""
    return {'weight': 1.0}


def torque_regressor(robot: Any, q: Array, dq: Array, ddq: Array) -> Array:
    """Return the regressor of the joint torques, (n, n_joints, 10 n_links)."""
    submodel_regressors = use('submodel_regressors')

    samples = bare_batch(np.arange(len(q)), q, dq, ddq)
    (found,) = submodel_regressors(robot, samples, robot.submodels)
    return np.array(found.torques)


def base_grouping(Y: Array) -> Numbers:
    """Return which columns are independent, and the grouping of all into them."""
    BaseParameters = use('BaseParameters')

    found = BaseParameters.of_regressor(Y)
    return {'independent': np.array(found.independent, float), 'grouping': found.grouping}


def structural_ranks(robot: Any) -> Numbers:
    """Return how many base parameters the structure of each submodel leaves."""
    null_space = use('null_space')

    found = {}
    for submodel in robot.submodels:
        space = null_space(robot, submodel)
        found[f'rank/{submodel.name}'] = np.array(float(len(space) - space.shape[1]))
        # Any basis of the space has the same projection; links in the order of their names.
        q = np.linalg.qr(space)[0]
        own = [robot.link_names[k] for k in submodel.links]
        rows = [10 * k + i for k in np.argsort(own) for i in range(10)]
        found[f'projection/{submodel.name}'] = np.diagonal(q @ q.T)[rows].copy()
    return found


def friction_arm_fits(
    links: Sequence[str], joints: Sequence[str], Y: Array, y: Array, prior: Array
) -> Numbers:
    """
    Return three fits of an arm with drive inertia, viscous, Coulomb and constant effort per joint.

    Columns of Y: ten of each link, then four of each joint; friction is not negative.
    """
    check_base_parameters = use('check_base_parameters', near='identification/')
    Information = use('Information')
    Bounds = use('Bounds')
    Problem = use('Problem', near='identification/')
    solve = use('solve')
    Extra = use('Extra')
    Term = use('Term')
    Unknowns = use('Unknowns')
    BaseParameters = use('BaseParameters')

    terms = (Term.DRIVE_INERTIA, Term.VISCOUS, Term.COULOMB, Term.OFFSET)
    unknowns = Unknowns(tuple(links), tuple(Extra(j, term) for j in joints for term in terms))
    signed = np.tile(np.array([[0.0, np.inf]] * 3 + [[-np.inf, np.inf]]), (len(joints), 1))
    bounds = Bounds(extras=signed)
    problem = Problem.of(unknowns, Information.of(Y, y), prior, bounds=bounds)
    cones = solve(problem, 'semidefinite', prior='none')
    free = Problem.of(unknowns, Information.of(Y, y), prior)
    entropic = solve(free, 'entropic', weight=1e-3)
    base = BaseParameters.of_regressor(Y)
    values = np.linalg.lstsq(Y[:, base.independent], y, rcond=None)[0]
    checked = check_base_parameters(base, values, unknowns, bounds=bounds)
    return {
        'ols/values': values,
        'nearest/values': checked.nearest,
        'nearest/distance': np.array(checked.distance),
        'nearest/margin': np.array(checked.margin),
        'semidefinite/base': base.of(cones.x),
        'semidefinite/mean_square': np.array(cones.mean_square),
        'entropic/x': entropic.x,
        'entropic/deviations': entropic.deviations,
        'entropic/mean_square': np.array(entropic.mean_square),
    }


# Recursive identification

NODE = {
    'weight': 0.1, 'half_life': 600.0, 'force_walk': 0.3, 'warm_up': 3.0, 'gate': 4.0,
    'excited': 4,
}  # fmt: skip
"""Settings of the node as of the first edition."""


class Payload(NamedTuple):
    """What was picked up."""

    mass: float
    center: Array
    mass_deviation: float


class Update(NamedTuple):
    """What a refit says."""

    stamp_ns: int
    parameters: Array
    """(n_links, 10)."""
    refitted: tuple[str, ...]
    """Submodels whose bodies were accepted."""
    offsets: Mapping[str, Array]
    subtracted: Mapping[str, Array]
    offset_deviations: Mapping[str, Array]
    covariance_diagonal: Array
    """Of the parameters, (n_links, 10)."""
    payloads: Mapping[str, Payload]
    extras: Mapping[str, float]
    """Offsets, friction and drives by submodel and name, of the fit."""
    bodies: Mapping[str, Array]
    """Of the fit by submodel, accepted or not, (n_links, 10)."""


class Identifier:
    """The identifier of the node, fed with stretches."""

    def __init__(
        self, robot: Any, *, choice: Any = None, noise_rate: float | None = None, **changes: Any
    ) -> None:
        RecursiveIdentifier = use('RecursiveIdentifier')
        RecursionSettings = use('RecursionSettings')
        RowChoice = use('EquationChoice', 'RowChoice')

        choice = choice or RowChoice(offsets=tuple(names(robot)['fts']))
        rows = _name_of(RecursionSettings, 'equations', 'rows')
        settings = RecursionSettings(**{rows: choice, **NODE, **changes})
        self._identifier = RecursiveIdentifier(robot, settings)
        if noise_rate is not None:
            self._identifier.noise = _state_noise(robot, noise_rate)

    def add(self, batch: Any) -> list[str]:
        """Take in a stretch; return what changed, as text of submodel and kind."""
        return [f'{name} {change.name}' for name, change in self._identifier.add(batch)]

    def set_calibration(self, calibration: Any, tared: Sequence[str]) -> None:
        """Change the calibration of the FT sensors."""
        self._identifier.set_calibration(calibration, tared)

    def refit(self) -> Update | None:
        """Refit."""
        found = self._identifier.refit()
        if found is None:
            return None
        extras: dict[str, float] = {}
        bodies: dict[str, Array] = {}
        for one in getattr(self._identifier, _name_of(self._identifier, 'memories', 'known')):
            name, unknowns = one.block.submodel.name, one.block.unknowns
            x = self._identifier.found.get(name)
            if x is not None:
                bodies[name] = np.array(x[: unknowns.n_inertial]).reshape(-1, 10)
                values = zip(unknowns.extras, x[unknowns.n_inertial :], strict=True)
                extras |= {f'{name}.{extra}': float(value) for extra, value in values}
        payloads = {
            name: Payload(one.mass, np.array(one.center), one.mass_deviation)
            for name, one in self._identifier.payloads().items()
        }
        return Update(
            found.stamp_ns, np.array(found.parameters), tuple(found.refitted), found.offsets,
            found.subtracted, found.offset_deviations, (found.parameter_roots**2).sum(axis=-1),
            payloads, extras,
            bodies,
        )  # fmt: skip


def _state_noise(robot: Any, rate: float) -> Any:
    build_noise = use('build_noise', 'stream_noise')
    EstimatorSettings = use('EstimatorSettings')
    StateNoise = use('StateNoise')
    StreamRates = use('StreamRates')

    settings = EstimatorSettings.from_dict(
        {'joint_states.velocity_source': 'filter', 'filter.window': 0.12}
    )
    counts = [len(names(robot)[kind]) for kind in ('joints', 'imus', 'fts')]
    rates = StreamRates(*(np.full(n, rate) for n in counts))
    model = build_noise(settings, robot, rates).model
    return StateNoise.of(model.joints, model.imus, measures_velocities=False)


def prepared_log(log: str, urdf: str, config: str) -> tuple[Any, Any, Any]:
    """Return robot, filtered samples and choice of rows of a log, as ``identify`` has them."""
    IdentifySettings = use('IdentifySettings')
    prepare_with = use('prepare_with')
    LogReader = use('LogReader')
    Stretch = use('LogSlice', 'Stretch', near='logs/')

    settings, stretch = IdentifySettings.from_yaml(configs() / config), Stretch.parse(log)
    reader = LogReader(urdf, settings, (), stretch, lambda *_: None)
    raw = reader.read(stretch)
    prepared, _ = prepare_with(raw.samples, raw.external, settings.preparation)
    return reader.robot, prepared.samples, settings.choice(reader.robot)


def stretches(batch: Any, seconds: float) -> Iterator[Any]:
    """Yield parts of a batch."""
    times = (batch.stamp_ns - batch.stamp_ns[0]) / 1e9
    edges = np.flatnonzero(np.diff(np.floor(times / seconds)) > 0) + 1
    for first, last in zip([0, *edges], [*edges, len(batch)], strict=True):
        yield batch.take(slice(int(first), int(last)))
