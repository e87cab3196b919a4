# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings of ``identify``: how logs become equations.

    robot: {fixed_link: base}            # as Robot.from_urdf takes it; for tables of numbers
    log: {time: t, joints: [...], ...}   # the columns of an npz or csv, see `layout`
    parameters: robot.yaml               # the node's parameter file, for bags, instead of both
    preparation: {cutoff: 10.0}          # see `Preparation`
    rows: {efforts: all, friction: [viscous, coulomb], external: {tip: [0, 0, 0, 0, 0, 0]}}
    bounds: {mass: {hand: [0.2, 0.5]}}   # see `identify_bounds`
    shapes:                              # of mass_points
      mesh_folders: [../meshes]          # where package:// and relative names of meshes begin
      boxes: {hand: [[-0.1, -0.1, 0], [0.1, 0.1, 0.2]]}   # corners in the link [m]
      points: 3                          # along each edge of a box
      hulls: false                       # true: fill convex hulls instead of their boxes
    payloads:
      plate:
        frame: tool0
        mass: 2.805                      # [kg]; unknown where it is left out
        logs: ['*_payload.npz']          # names of files or folders; * stands for anything
        center_of_mass: [0, 0, 0.05]     # in the frame [m]; likewise
        inertia: {ixx: 0.01, iyy: 0.01, izz: 0.01}   # about it, in the frame's axes; likewise
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.config.files import is_parameter_file, load_mapping
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.equations.friction import (
    OF_A_COUPLING,
    Coupling,
    JointModel,
)
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.solvers.mass_points import PER_AXIS
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.identify_bounds import BOUNDS
from inertial_estimation.logs.known_wrenches import KnownWrench, knows_ground
from inertial_estimation.logs.layout import Layout
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.setting_values import (
    anything,
    box,
    chosen,
    dataclass_of,
    each,
    flag,
    list_of,
    number,
    numbers,
    one_or_each,
    record,
    text,
    whole,
)
from inertial_estimation.model.geometry import Box
from inertial_estimation.model.robot import Robot

ALL = 'all'
FROZEN_AFTER = 0.2
"""Default time from which a reading of a table that is equal to the bit is frozen [s]."""
MIN_REJECT = 2.0
"""Standard deviations below which noise would be rejected."""
TENSOR = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


def _names(value: object, name: str) -> Any:
    """Read a list of names, or `ALL`."""
    return ALL if value == ALL else list_of(text)(value, name)


def _coupling(value: object, name: str) -> Coupling:
    """Read a drive that loads two joints."""
    body = record({'joints': list_of(text), 'terms': _names}, ['joints'])(value, name)
    terms = _terms(body.get('terms', ALL), f'{name}.terms', OF_A_COUPLING)
    return Coupling(body['joints'], terms)


def _terms(given: Any, name: str, known: Iterable[Term]) -> tuple[Term, ...]:
    """Return terms of friction and drives by their names."""
    return tuple(map(Term, chosen(given, name, [term.value for term in known])))


def _tensor(value: object, name: str) -> tuple[float, ...]:
    """Read moments and products of inertia."""
    entries = record(dict.fromkeys(TENSOR, number()), ('ixx', 'iyy', 'izz'))(value, name)
    return tuple(entries.get(key, 0.0) for key in TENSOR)


PAYLOAD = {
    'frame': text, 'logs': list_of(text), 'mass': number(),
    'center_of_mass': lambda value, name: tuple(numbers((3,))(value, name).tolist()),
    'inertia': _tensor,
}  # fmt: skip


@dataclass(frozen=True)
class LoggedPayload:
    """A payload, and the logs that it is in."""

    payload: Payload
    logs: tuple[str, ...]
    """Names of files or folders, in which * stands for anything."""

    def is_in(self, log: LogSlice) -> bool:
        """Return true if the robot carried it while a log was recorded."""
        return any(fnmatchcase(log.path.name, pattern) for pattern in self.logs)

    @classmethod
    def read(cls, value: object, name: str) -> LoggedPayload:
        """Read a payload."""
        body = record(PAYLOAD, ('frame', 'logs'))(value, name)
        if not (logs := body.pop('logs')):
            raise ConfigError(f"'{name}.logs' is empty")
        return cls(Payload(name.partition('.')[2], **body), logs)


ROWS = {
    'wrenches': lambda value, name: (
        value if isinstance(value, bool) else list_of(text)(value, name)
    ),
    'base_link': flag,
    **dict.fromkeys(('efforts', 'friction', 'gains', 'offsets'), _names),
    'sign_width': number(),
    'dead_zone': one_or_each(number()),
    'couplings': list_of(_coupling),
    'contacts': list_of(text),
    'external': each(KnownWrench.read),
    'reject': number(0.0),
    'frozen_after': number(0.0),
}
ROBOT = {
    'joints': list_of(text),
    **dict.fromkeys(('locked_positions', 'ft_sensors', 'imus', 'fixed_link', 'gravity'), anything),
}
SHAPES = {
    'mesh_folders': list_of(text),
    'boxes': each(lambda value, name: Box.around(box(value, name))),
    'points': whole(PER_AXIS),
    'hulls': flag,
}
GROUPS = {
    'robot': record(ROBOT),
    'preparation': dataclass_of(Preparation),
    'rows': record(ROWS),
    'bounds': record(BOUNDS),
    'shapes': record(SHAPES),
    'payloads': each(LoggedPayload.read),
}


@dataclass(frozen=True)
class ShapeSettings:
    """Where the links of `mass_points` may have their mass."""

    mesh_folders: tuple[Path, ...] = ()
    boxes: Mapping[str, Box] = field(default_factory=dict)
    """By link, for those without geometry."""
    points: int = PER_AXIS
    hulls: bool = False


@dataclass(frozen=True, eq=False)
class IdentifySettings:
    """Settings of ``identify``."""

    robot: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout | None = None
    """Columns of tables of numbers; None: the logs are bags."""
    parameters: Path | None = None
    """The node's parameter file, for bags."""
    preparation: Preparation = field(default_factory=Preparation)
    rows: Mapping[str, Any] = field(default_factory=dict)
    """Values below ``rows``, as `ROWS` reads them."""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    shapes: ShapeSettings | None = None
    payloads: tuple[LoggedPayload, ...] = ()

    @classmethod
    def from_yaml(cls, path: str | Path) -> IdentifySettings:
        """Read a file."""
        path = Path(path)
        entries = load_mapping(path)
        if is_parameter_file(entries) and not {'log', 'parameters'}.intersection(entries):
            return cls(parameters=path)
        try:
            return cls._of(entries, path.parent)
        except (ConfigError, NameNotFound) as error:
            raise ConfigError(f'{path}: {error}') from error

    @classmethod
    def _of(cls, entries: Mapping[str, Any], folder: Path) -> IdentifySettings:
        """Return the settings of a mapping."""
        known = ('log', 'parameters', *GROUPS)
        for key in entries:
            if key not in known:
                raise NameNotFound('setting of the file', str(key), known)
        if ('log' in entries) == ('parameters' in entries):
            raise ConfigError("expected either 'log', for tables, or 'parameters', for bags")
        if 'parameters' in entries and 'robot' in entries:
            raise ConfigError("'robot' and 'parameters' exclude each other")
        groups = {key: read(entries.get(key) or {}, key) for key, read in GROUPS.items()}
        shapes = groups.pop('shapes')
        folders = tuple(folder / name for name in shapes.get('mesh_folders', ()))
        for one in folders:
            if not one.is_dir():
                raise ConfigError(f"'shapes.mesh_folders' names {one}, which is no folder")
        payloads = tuple(groups.pop('payloads').values())
        found = cls(
            **groups,
            layout=Layout.read(entries['log']) if 'log' in entries else None,
            parameters=folder / str(entries['parameters']) if 'parameters' in entries else None,
            shapes=ShapeSettings(**shapes | {'mesh_folders': folders}) if shapes else None,
            payloads=payloads,
        )
        found._check()
        return found

    def _check(self) -> None:
        """Check that the settings fit together."""
        for one in self.external.values():
            if self.parameters is None and one.topic:
                raise ConfigError(
                    f"'{one.name}' names topic '{one.topic}', but the logs are no bags"
                )
        for key, default in (('wrenches', True), ('efforts', ()), ('offsets', ())):
            if self.base_link and self.rows.get(key, default) != default:
                raise ConfigError(
                    "'rows.base_link' leaves only the equations of the base link, but "
                    f"'rows.{key}' is {self.rows[key]!r}"
                )
        if 0.0 < self.reject < MIN_REJECT:
            raise ConfigError(
                f"'rows.reject' is {self.reject:g}, expected 0 or from {MIN_REJECT:g}"
            )
        if self.layout is None and 'frozen_after' in self.rows:
            raise ConfigError("'rows.frozen_after' is for tables, ft.<name>.frozen_after for bags")

    @property
    def contacts(self) -> tuple[str, ...]:
        """Frames where an unknown wrench acts throughout the logs."""
        return tuple(self.rows.get('contacts', ()))

    @property
    def external(self) -> Mapping[str, KnownWrench]:
        """Wrenches of the environment that are known, by frame, but for those of `layout`."""
        return dict(self.rows.get('external', {}))

    @property
    def base_link(self) -> bool:
        """True if only the six equations of the whole robot's base link are used [A 33]."""
        return bool(self.rows.get('base_link', False))

    @property
    def reject(self) -> float:
        """Standard deviations from which equations are rejected as disturbed; 0: none are."""
        return float(self.rows.get('reject', 0.0))

    @property
    def frozen_after(self) -> float:
        """Time from which repeated readings of tables are frozen [s]; 0: never."""
        return float(self.rows.get('frozen_after', FROZEN_AFTER))

    def choice(self, robot: Robot) -> EquationChoice:
        """Return the equations to build."""
        rows = self.rows
        external = (*self.external, *(self.layout.external if self.layout else ()))
        ground_known = knows_ground(robot, external)
        if self.base_link and robot.fixed_frame and not ground_known:
            raise ConfigError(
                f"'rows.base_link' needs the wrench of the ground at '{robot.fixed_frame}' under "
                "'rows.external', or a robot that is not fixed"
            )
        sensors = [sensor.name for sensor in robot.ft_sensors]
        if rows.get('offsets') == ALL and not sensors:
            raise ConfigError("'rows.offsets' is all, but there is no FT sensor")

        def listed(key: str, known: Sequence[str]) -> tuple[str, ...]:
            return chosen(rows.get(key, ()), f'rows.{key}', known)

        efforts, gains = (listed(key, robot.joint_names) for key in ('efforts', 'gains'))
        if self.layout is not None:
            self.layout.require_torques([name for name in efforts if name not in gains])
        wrenches, dead_zone = rows.get('wrenches', True), rows.get('dead_zone', 0.0)
        if not isinstance(wrenches, bool):
            wrenches = listed('wrenches', [submodel.name for submodel in robot.submodels])
        by_joint = isinstance(dead_zone, Mapping)
        return EquationChoice(
            wrenches=wrenches,
            ground_known=ground_known,
            efforts=efforts,
            joint=JointModel(
                _terms(rows.get('friction', ()), 'rows.friction', Term),
                rows.get('sign_width', 0.0),
                0.0 if by_joint else dead_zone,
            ),
            dead_zones=dead_zone if by_joint else {},
            couplings=rows.get('couplings', ()),
            gains=gains,
            offsets=listed('offsets', sensors),
            payloads=tuple(one.payload for one in self.payloads),
        )


def carried(payloads: Sequence[LoggedPayload], log: LogSlice, n: int) -> np.ndarray:
    """Return the payloads of a log at each of n samples, (n, n_payloads), 0 or 1."""
    return np.tile([float(one.is_in(log)) for one in payloads], (n, 1))


def require_logs(payloads: Iterable[LoggedPayload], logs: Iterable[LogSlice]) -> None:
    """Raise for payloads that are in none of the logs."""
    known = list(logs)
    for one in payloads:
        if not any(map(one.is_in, known)):
            names = ', '.join(dict.fromkeys(log.path.name for log in known))
            raise ConfigError(
                f"payload '{one.payload.name}' is in {', '.join(one.logs)}, none of the logs "
                f'({names})'
            )
