# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings of ``identify``: how logs become equations.

    robot: {fixed_link: base}            # as Robot.from_urdf takes it; for tables of numbers
    log: {time: t, joints: [...], ...}   # the columns of an npz or csv, see `columns`
    parameters: robot.yaml               # the node's parameter file, for bags, instead of both
    preparation: {cutoff: 10.0}          # see `Preparation`
    rows: {efforts: all, friction: [viscous, coulomb], external: {tip: [0, 0, 0, 0, 0, 0]}}
    bounds: {mass: {hand: [0.2, 0.5]}}   # see `identify_bounds`
    shapes: {mesh_folders: [meshes]}     # of mass_points, see `identify_shapes`
    payloads: {plate: {frame: tool0, mass: 2.8, logs: [run2.npz]}}   # see `identify_payloads`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
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
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.frozen_readings import FROZEN_AFTER
from inertial_estimation.logs.identify_bounds import BOUNDS
from inertial_estimation.logs.identify_payloads import LoggedPayload, read_payloads
from inertial_estimation.logs.identify_shapes import SHAPES, ShapeSettings
from inertial_estimation.logs.known_wrenches import (
    Known,
    TopicWrench,
    knows_ground,
    read_known,
)
from inertial_estimation.logs.layout import Layout
from inertial_estimation.logs.setting_values import (
    as_flag,
    as_list,
    as_mapping,
    as_number,
    check_keys,
)
from inertial_estimation.model.robot import Robot

ROBOT = ('joints', 'locked_positions', 'ft_sensors', 'imus', 'fixed_link', 'gravity')
ROWS = ('wrenches', 'base_link', 'efforts', 'friction', 'sign_width', 'dead_zone', 'couplings',
        'gains', 'offsets', 'contacts', 'external', 'reject', 'frozen_after')  # fmt: skip
GROUPS = {
    'robot': ROBOT,
    'preparation': tuple(f.name for f in fields(Preparation)),
    'rows': ROWS,
    'bounds': BOUNDS,
    'shapes': SHAPES,
}
ALL = 'all'


@dataclass(frozen=True, eq=False)
class IdentifySettings:
    """Settings of ``identify``."""

    robot: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Robot.from_urdf`."""
    layout: Layout | None = None
    """Columns of tables of numbers; None: the logs are bags."""
    parameters: Path | None = None
    """The node's parameter file, for bags."""
    preparation: Preparation = field(default_factory=Preparation)
    rows: Mapping[str, Any] = field(default_factory=dict)
    """What stands under ``rows``."""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    """What stands under ``bounds``, as `identify_bounds.read_bounds` takes it."""
    shapes: ShapeSettings | None = None
    """What stands under ``shapes``; None: nothing does."""
    payloads: tuple[LoggedPayload, ...] = ()
    """Bodies that are there in some of the logs."""

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
        check_keys(entries, ('log', 'parameters', 'payloads', *GROUPS), 'the file')
        if ('log' in entries) == ('parameters' in entries):
            raise ConfigError(
                "name either 'log', the columns of tables of numbers, or 'parameters', the path "
                "of the node's parameter file, for bags"
            )
        if 'parameters' in entries and 'robot' in entries:
            raise ConfigError("'robot' and 'parameters' exclude each other")
        groups = {key: entries.get(key) or {} for key in GROUPS}
        for key, known in GROUPS.items():
            as_mapping(groups[key], key, known)
        return cls(
            robot=_robot(groups['robot']),
            layout=Layout.read(entries['log']) if 'log' in entries else None,
            parameters=folder / str(entries['parameters']) if 'parameters' in entries else None,
            preparation=_read(Preparation, groups['preparation'], 'preparation'),
            rows=groups['rows'],
            bounds=groups['bounds'],
            shapes=ShapeSettings.read(groups['shapes'], folder) if entries.get('shapes') else None,
            payloads=read_payloads(entries.get('payloads') or {}),
        )

    @property
    def contacts(self) -> tuple[str, ...]:
        """Frames where an unknown wrench acts throughout the logs."""
        return tuple(map(str, as_list(self.rows.get('contacts', ()), 'rows.contacts')))

    @property
    def external(self) -> Known:
        """Wrenches of the environment that are known, by frame, but for those of `layout`."""
        known = read_known(self.rows.get('external', {}), 'rows.external')
        for one in known.values():
            if self.parameters is None and isinstance(one, TopicWrench):
                raise ConfigError(
                    f"'{one.place.name}' names topic '{one.topic}', but the logs are no bags: say "
                    f"its columns under 'log.external.{one.place.frame}', or six numbers"
                )
        return known

    @property
    def base_link(self) -> bool:
        """Whether the six equations of the whole robot's base link are all rows [A 33]."""
        alone = as_flag(self.rows.get('base_link', False), 'rows.base_link')
        for key, default in (('wrenches', True), ('efforts', []), ('offsets', [])):
            if alone and self.rows.get(key, default) != default:
                raise ConfigError(
                    f"'rows.base_link' leaves only the equations of the base link, but "
                    f"'rows.{key}' is {self.rows[key]!r}: leave one of them out"
                )
        return alone

    @property
    def reject(self) -> float:
        """Deviations from which rows are taken for disturbed by a contact; 0: none are."""
        value = as_number(self.rows.get('reject', 0.0), 'rows.reject')
        if not (value == 0.0 or 2.0 <= value < np.inf):
            raise ConfigError(f"'rows.reject' is {value:g}, expected 0 (off) or at least 2")
        return value

    @property
    def frozen_after(self) -> float:
        """How long tables repeat a reading until it is taken for frozen [s]; 0: for ever."""
        value = as_number(self.rows.get('frozen_after', FROZEN_AFTER), 'rows.frozen_after')
        if not 0.0 <= value < np.inf:
            raise ConfigError(f"'rows.frozen_after' is {value:g}, expected 0 (off) or more")
        if self.layout is None and 'frozen_after' in self.rows:
            raise ConfigError(
                "'rows.frozen_after' is for tables of numbers: of bags say ft.<name>.frozen_after "
                "in the node's parameter file"
            )
        return value

    def choice(self, robot: Robot) -> EquationChoice:
        """Return which rows to build."""
        rows = self.rows
        external = (*self.external, *(self.layout.external if self.layout else ()))
        ground_known = knows_ground(robot, external)
        if self.base_link and robot.fixed_frame and not ground_known:
            raise ConfigError(
                f"'rows.base_link' is true, but '{robot.fixed_frame}' is fixed, and nothing says "
                'with which wrench the ground holds it: say it under external, or leave out '
                "'fixed_link'"
            )
        sensors = [sensor.name for sensor in robot.ft_sensors]
        model: dict[str, Any] = {k: rows[k] for k in ('sign_width', 'dead_zone') if k in rows}
        slow = model.pop('dead_zone', {})
        if not isinstance(slow, Mapping):
            model['dead_zone'], slow = slow, {}
        terms = _list(rows.get('friction', ()), 'rows.friction', [t.value for t in Term])
        model['terms'] = tuple(Term(term) for term in terms)
        efforts = _list(rows.get('efforts', ()), 'rows.efforts', robot.joint_names)
        if rows.get('offsets') == ALL and not sensors:
            raise ConfigError("'rows.offsets' is all, but there is no FT sensor: leave it out")
        gains = _list(rows.get('gains', ()), 'rows.gains', robot.joint_names)
        if self.layout is not None:
            self.layout.require_torques([name for name in efforts if name not in gains])
        return EquationChoice(
            wrenches=_wrenches(rows.get('wrenches', True), robot),
            ground_known=ground_known,
            efforts=efforts,
            joint=_read(JointModel, model, 'rows'),
            dead_zones={str(k): as_number(v, f'rows.dead_zone.{k}') for k, v in slow.items()},
            couplings=tuple(map(_coupling, as_list(rows.get('couplings', ()), 'rows.couplings'))),
            gains=gains,
            offsets=_list(rows.get('offsets', ()), 'rows.offsets', sensors),
            payloads=tuple(one.payload for one in self.payloads),
        )


def _read(kind: Any, entries: Mapping[str, Any], where: str) -> Any:
    """Return a dataclass with values of the types of its defaults."""
    values = {}
    for key, value in entries.items():
        default = next(f.default for f in fields(kind) if f.name == key)
        wanted = type(default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if wanted is float and is_number:
            values[key] = float(value)
        elif wanted in (int, bool) and type(value) is not wanted:
            raise ConfigError(f"'{where}.{key}' is {value!r}, expected such as {default!r}")
        elif wanted is float:
            raise ConfigError(f"'{where}.{key}' is {value!r}, expected a number")
        else:
            values[key] = value
    return kind(**values)


def _robot(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the robot's settings; the robot checks the rest."""
    for name in as_list(entries.get('joints') or (), 'robot.joints'):
        if not isinstance(name, str):
            raise ConfigError(f"'robot.joints' holds {name!r}, expected names")
    return entries


def _coupling(entry: object) -> Coupling:
    """Return a drive that loads two joints."""
    body = as_mapping(entry, 'rows.couplings', ('joints', 'terms'))
    joints = tuple(map(str, as_list(body.get('joints', ()), 'rows.couplings.joints')))
    known = [term.value for term in OF_A_COUPLING]
    terms = _list(body.get('terms', known), 'rows.couplings.terms', known)
    return Coupling(joints, tuple(map(Term, terms)))  # type: ignore[arg-type]


def _wrenches(value: object, robot: Robot) -> bool | tuple[str, ...]:
    """Return whether sums of wrenches give rows, or of which submodels."""
    if isinstance(value, list):
        return _list(value, 'rows.wrenches', [submodel.name for submodel in robot.submodels])
    if not isinstance(value, bool):
        raise ConfigError(
            f"'rows.wrenches' is {value!r}, expected true or false or a list of submodels"
        )
    return value


def _list(value: object, name: str, everything: Sequence[str]) -> tuple[str, ...]:
    """Return a list of names; ``all`` means every one."""
    if value == ALL:
        return tuple(everything)
    if value is None:
        raise ConfigError(f"'{name}' is empty: list names, say {ALL}, or leave it out")
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"'{name}' is {value!r}, expected a list of names, or {ALL}")
    for one in value:
        if one not in everything:
            raise NameNotFound(f'entry of {name}', str(one), everything)
    return tuple(value)
