# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of numbers, the signals in their columns, and the layout that names them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.files import load_mapping
from inertial_estimation.config.schema import Names, Numbers, Reader, Texts, Vector, record
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.model.link_motions import link_poses
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import apply, wrench_transform
from inertial_estimation.model.urdf import pose_from_xyz_rpy
from inertial_estimation.sample import SampleBatch

CURRENTS = ('A', 'mA')
DEGREE = np.pi / 180
UNITS: dict[str, dict[str, float]] = {
    'time': {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9},
    'positions': {'rad': 1.0, 'deg': DEGREE, 'm': 1.0, 'mm': 1e-3},
    'velocities': {'rad/s': 1.0, 'deg/s': DEGREE, 'm/s': 1.0, 'mm/s': 1e-3, 'rpm': np.pi / 30},
    'efforts': {'Nm': 1.0, 'N m': 1.0, 'Nmm': 1e-3, 'N mm': 1e-3, 'N': 1.0, 'A': 1.0, 'mA': 1e-3},
    'temperature': {'degC': 1.0},
    'wrench': {'N, N m': 1.0},
    'gyroscope': {'rad/s': 1.0, 'deg/s': DEGREE},
    'accelerometer': {'m/s^2': 1.0, 'g': 9.80665},
}
"""Units of each kind of signal, in SI."""
MAX_VALUE = 9e9
"""Of any signal, in SI; stamps are nanoseconds in 64 bits."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file by name, each with one or more values a sample."""

    path: str
    columns: Mapping[str, Array]

    def column(self, name: str, wanted_by: str) -> Array:
        """Return a column, shape (n, k)."""
        if name not in self.columns:
            known = ', '.join(self.columns)
            raise LogError(f"{self.path} has no column '{name}' for {wanted_by}; it has {known}")
        values = self.columns[name]
        if values.ndim > 2 or values.dtype.kind not in 'fiu' or not len(values):
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} holds no numbers")
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def load_table(path: str | Path) -> Table:
    """Read a table of numbers."""
    path = Path(path)
    if path.suffix not in TABLES:
        raise LogError(f"'{path}' is no table ({', '.join(TABLES)})")
    try:
        return Table(str(path), TABLES[path.suffix](path))
    except OSError as error:
        raise LogError(f'cannot read {path}: {error.strerror or error}') from error
    except Exception as error:
        # Damage shows as whatever the parts of NumPy, zipfile and csv happen to raise.
        raise LogError(f'{path} is no {path.suffix[1:]} of numbers: {error}') from error


def _load_npz(path: Path) -> dict[str, Array]:
    """Return the arrays that are no pickles."""
    if path.is_file() and not is_zipfile(path):
        raise ValueError('it is no zip archive')
    found = {}
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            with suppress(ValueError):
                found[name] = file[name]
    return {name: one for name, one in found.items() if one.ndim}


def _load_csv(path: Path) -> dict[str, Array]:
    """Return the columns of a file with a header."""
    with path.open(newline='', encoding='utf-8-sig') as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        values = []
        for row in filter(None, rows):
            if len(row) != len(header):
                raise ValueError(f'line {rows.line_num} has {len(row)} cells, not {len(header)}')
            try:
                values.append([float(cell) if cell.strip() else np.nan for cell in row])
            except ValueError as error:
                raise ValueError(f'line {rows.line_num}: {error}') from error
    if not values or len({*header}) < len(header):
        raise ValueError('it holds no rows, or columns of one name')
    return dict(zip(header, np.array(values).T, strict=True))


TABLES: dict[str, Callable[[Path], dict[str, Array]]] = {'.npz': _load_npz, '.csv': _load_csv}
"""Readers of tables by file type. All other logs are bags."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scaling:
    """Meaning of raw numbers, ``scale * raw * unit + offset``, as a file states it."""

    name: str
    kind: str
    """Key of `UNITS`."""
    unit: Texts = ()
    """One for all channels, or one for each; none: SI."""
    scale: Numbers | None = None
    """A number, one for each channel, or a matrix from raw numbers to channels."""
    divided_by: Numbers | None = None
    """Inverse of `scale`, for gears of positions."""
    offset: Numbers | None = None
    """A number, or one for each channel, in SI."""

    def __post_init__(self) -> None:
        known = UNITS[self.kind]
        for unit in self.unit:
            if unit not in known:
                raise ConfigError(f"unit is '{unit}', expected one of {', '.join(known)}")
        if self.scale is not None and self.divided_by is not None:
            raise ConfigError('both scale and divided_by are given')
        if (divisor := self.divided_by) is not None and not (
            np.linalg.det(divisor) if divisor.ndim == 2 else divisor.all()
        ):
            raise ConfigError('divided_by is zero or singular')
        if self.offset is not None and self.offset.ndim == 2:
            raise ConfigError('offset is a matrix, expected a number or a list of them')

    @property
    def factor(self) -> Array:
        """Scale from raw numbers."""
        if self.divided_by is None:
            return np.array(1.0) if self.scale is None else self.scale
        is_matrix = self.divided_by.ndim == 2
        return np.asarray(np.linalg.inv(self.divided_by) if is_matrix else 1.0 / self.divided_by)

    def in_si(self, raw: Array, size: int) -> Array:
        """Return values in SI, shape (n, size), of raw (n, n_columns)."""
        factor, unit = self.factor, np.array([UNITS[self.kind][one] for one in self.unit] or [1.0])
        offset, is_matrix = np.zeros(()) if self.offset is None else self.offset, factor.ndim == 2
        if (size, raw.shape[1]) != (factor.shape if is_matrix else (size, size)):
            shape = f' by a matrix {factor.shape}' if is_matrix else ''
            raise LogError(f'{self.name}: {raw.shape[1]} values{shape}, expected {size} channels')
        for what, values in (('scale', factor), ('offset', offset), ('unit', unit)):
            if values.ndim == 1 and len(values) != size and (what != 'unit' or len(values) != 1):
                raise LogError(f'{self.name}: {len(values)} values in {what}, expected {size}')
        scaled = raw @ factor.T if is_matrix else raw * factor
        return np.asarray(scaled * unit + offset)


@dataclass(frozen=True, eq=False, kw_only=True)
class Signal(Scaling):
    """Columns of a signal, and the meaning of their numbers."""

    columns: Names

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            raise ConfigError('it names no columns')

    def read(self, table: Table, size: int, n: int | None = None) -> Array:
        """Return the signal in SI, (n, size); n: number of samples that the time has."""
        parts = [table.column(name, self.name) for name in self.columns]
        for column, part in zip(self.columns, parts, strict=True):
            if len(part) != (n := len(part) if n is None else n):
                what = f"column '{column}' of {self.name} has {len(part)} samples"
                raise LogError(f'{table.path}: {what}, expected {n}')
        values = self.in_si(np.concatenate(parts, axis=1), size)
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if largest > MAX_VALUE:
            raise LogError(f'{table.path}: {self.name} holds {largest:.3g} in SI units')
        return values


def signal(kind: str, of: type[Signal] = Signal) -> Reader:
    """Return the reader of a signal, or of its columns alone."""

    def read_signal(value: Any, name: str) -> Signal:
        body = value if isinstance(value, Mapping) else {'columns': value}
        return record(of, body, name, name=name, kind=kind)

    return read_signal


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownWrench:
    """A wrench of the environment on the robot, [force; torque] [N, Nm]."""

    name: str
    """Of the setting: two groups, and the frame where it acts."""
    xyz: Vector = field(default_factory=lambda: np.zeros(3))
    rpy: Vector = field(default_factory=lambda: np.zeros(3))
    """Of its point and axes in that frame [m, rad]."""
    axes: str = ''
    """Frame whose axes it has instead; empty: none."""

    @property
    def frame(self) -> str:
        """Frame where it acts."""
        return self.name.split('.', 2)[2]

    @property
    def F_H_W(self) -> Array:
        """Pose in that frame of its point and axes, (4, 4) [m]."""
        return pose_from_xyz_rpy(self.xyz, self.rpy)

    def at_frame(self, robot: Robot, samples: SampleBatch, wrench: Array) -> Array:
        """Return wrenches (n, 6) about the origin of the frame in its axes."""
        pose = np.tile(self.F_H_W, (len(wrench), 1, 1))
        if self.axes:
            poses = link_poses(robot, samples.positions)
            to, of = (
                (poses[link] @ L_H_F)[:, :3, :3]
                for link, L_H_F in map(robot.frame, (self.frame, self.axes))
            )
            pose[:, :3, :3] = to.swapaxes(1, 2) @ of
        return apply(wrench_transform(pose), wrench)


@dataclass(frozen=True, eq=False, kw_only=True)
class WrenchColumns(Signal, KnownWrench):
    """Columns of a table."""


Placed = tuple[Sequence[str], Signal | None]
"""Names of joints or sensors, and the signal that holds the channels of each."""


@dataclass(frozen=True, eq=False)
class ImuColumns:
    """Signals of an IMU."""

    accelerometer: Annotated[Signal, signal('accelerometer')]
    gyroscope: Annotated[Signal, signal('gyroscope')] | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals of a log."""

    time: Annotated[Signal, signal('time')]
    joints: Names = ()
    positions: Annotated[Signal, signal('positions')] | None = None
    velocities: Annotated[Signal, signal('velocities')] | None = None
    efforts: Annotated[Signal, signal('efforts')] | None = None
    ft_sensors: Mapping[str, Annotated[Signal, signal('wrench')]] = field(default_factory=dict)
    temperatures: Mapping[str, Annotated[Signal, signal('temperature')]] = field(
        default_factory=dict
    )
    imus: Mapping[str, ImuColumns] = field(default_factory=dict)
    external: Mapping[str, Annotated[WrenchColumns, signal('wrench', WrenchColumns)]] = field(
        default_factory=dict
    )

    @classmethod
    def from_yaml(cls, path: str | Path) -> Layout:
        """Read the section `log` of a file of `identify`."""
        try:
            if (section := load_mapping(Path(path)).get('log')) is None:
                raise ConfigError("there is no section 'log'")
            return record(cls, section, 'log')
        except (ConfigError, NameNotFound) as error:
            raise ConfigError(f'{path}: {error}') from error

    def require_torques(self, joints: Sequence[str]) -> None:
        """Raise for currents without scale."""
        efforts = self.efforts
        if efforts is None or efforts.scale is not None or efforts.divided_by is not None:
            return
        units = efforts.unit * len(self.joints) if len(efforts.unit) == 1 else efforts.unit
        for joint, unit in zip(self.joints, units, strict=False):
            if joint in joints and unit in CURRENTS:
                raise ConfigError(
                    f"'{efforts.name}.unit' of joint '{joint}' is '{unit}', a current without "
                    f"'{efforts.name}.scale' [N m/A], and '{joint}' is not in 'rows.gains'"
                )

    def timed(self, table: Table) -> tuple[Table, dict[str, dict[str, int]]]:
        """Return the rows with a time, and the number of others as a problem of the time."""
        known = np.isfinite(self.time.read(table, 1)[:, 0])
        lost = np.flatnonzero(~known)
        if not known.any():
            raise LogError(f'{table.path}: no row has a time in {self.time.name}')
        if not len(lost):
            return table, {}
        columns = {
            name: one[known] if len(one) == len(known) else one
            for name, one in table.columns.items()
        }
        problem = {f'rows without a time, the first is row {lost[0] + 1}': len(lost)}
        return replace(table, columns=columns), {self.time.name: problem}

    def of_table(self, table: Table, robot: Robot) -> SampleBatch:
        """Return the samples of a table whose rows have times."""
        seconds = self.time.read(table, 1)[:, 0]
        n = len(seconds)

        def placed(kind: str, known: Sequence[str], size: int, parts: Iterable[Placed]) -> Array:
            values = np.full((n, len(known), size), np.nan)
            for names, one in parts:
                for name in names:
                    if name not in known:
                        raise NameNotFound(kind, name, known)
                if one is not None:
                    channels = one.read(table, size * len(names), n)
                    columns = [known.index(name) for name in names]
                    values[:, columns] = channels.reshape(n, len(names), size)
            return values

        def of_joints(one: Signal | None) -> Array:
            return placed('joint', robot.joint_names, 1, [(self.joints, one)])[..., 0]

        def of_fts(size: int, signals: Mapping[str, Signal]) -> Array:
            names = [sensor.name for sensor in robot.ft_sensors]
            return placed('FT sensor', names, size, [((k,), one) for k, one in signals.items()])

        rates, accelerations = (
            placed('IMU', [imu.name for imu in robot.imus], 3,
                   [((name,), getattr(one, key)) for name, one in self.imus.items()])
            for key in ('gyroscope', 'accelerometer')
        )  # fmt: skip
        return SampleBatch(
            stamp_ns=np.round(seconds * 1e9).astype(np.int64),
            positions=of_joints(self.positions), velocities=of_joints(self.velocities),
            accelerations=of_joints(None), angular_velocities=rates,
            proper_accelerations=accelerations, angular_accelerations=np.full_like(rates, np.nan),
            ft_readings=of_fts(6, self.ft_sensors), efforts=of_joints(self.efforts),
            ft_temperatures=of_fts(1, self.temperatures)[..., 0] if self.temperatures else None,
        )  # fmt: skip
