# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings of ``identify``: how logs become equations.

    robot: {fixed_link: base}            # as Robot.from_urdf takes it; for tables of numbers
    log: {time: t, joints: [...], ...}   # the columns of an npz or csv, see `layout`
    parameters: robot.yaml               # the node's parameter file, for bags, instead of both
    preparation: {cutoff: 10.0}          # see `Preparation`
    rows: {efforts: all, friction: [viscous, coulomb], external: {tip: [0, 0, 0, 0, 0, 0]}}
    bounds:                              # all optional, of links that are known beforehand
      mass: {upper_arm: [1.0, 3.0], hand: [0.2, .inf]}   # [kg]
      center_of_mass: {hand: {lower: [-0.1, -0.1, 0], upper: [0.1, 0.1, 0.2]}}   # box [m]
      ellipsoids:                          # that hold all mass of a link, in its axes [m]
        hand: {center: [0, 0, 0.1], semi_axes: [0.1, 0.1, 0.2]}
        upper_arm: [[-25, 0, 0, 0], [0, -25, 0, 0], [0, 0, -4, 0], [0, 0, 0, 1]]   # see below
      total_mass: [4.0, 6.0]               # of a submodel, or {submodel: [4.0, 6.0]} [kg]
      extras: {viscous: [0, .inf], elbow.coulomb: [0, 5]}  # a term of all joints, or one unknown
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

Of four rows of four numbers Q, the points x with ``[x; 1]' Q [x; 1] >= 0`` are inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.files import is_parameter_file, load_mapping
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import Block, EquationChoice
from inertial_estimation.identification.equations.friction import (
    OF_A_COUPLING,
    Coupling,
    JointModel,
)
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.mass_points import PER_AXIS
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.known_wrenches import KnownWrench, knows_ground
from inertial_estimation.logs.layout import Layout
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.setting_values import (
    anything,
    box,
    dataclass_of,
    each,
    flag,
    interval,
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


def _chosen(
    given: Collection[str] | str, kind: str, name: str, known: Sequence[str]
) -> tuple[str, ...]:
    """Return names among the known ones of a kind; `ALL` is every one."""
    for one in () if given == ALL else given:
        if one not in known:
            raise NameNotFound(kind, one, known, f"'{name}' names it" if name else '')
    return tuple(known) if given == ALL else tuple(given)


def _terms(given: Any, name: str, known: Iterable[Term]) -> tuple[Term, ...]:
    """Return terms of friction and drives by their names."""
    return tuple(map(Term, _chosen(given, 'term', name, [term.value for term in known])))


def _coupling(value: object, name: str) -> Coupling:
    """Read a drive that loads two joints."""
    body = record({'joints': list_of(text), 'terms': _names}, ['joints'])(value, name)
    terms = _terms(body.get('terms', ALL), f'{name}.terms', OF_A_COUPLING)
    return Coupling(body['joints'], terms)


def _tensor(value: object, name: str) -> tuple[float, ...]:
    """Read moments and products of inertia."""
    entries = record(dict.fromkeys(TENSOR, number()), ('ixx', 'iyy', 'izz'))(value, name)
    return tuple(entries.get(key, 0.0) for key in TENSOR)


def _mass(value: object, name: str) -> Array:
    """Read a least and a greatest mass."""
    found = interval(value, name)
    if found[1] <= 0.0:
        raise ConfigError(f"'{name}' ends at {found[1]:g} kg, and no body has a mass like that")
    return found


def _corners(value: object, name: str) -> Array:
    """Read a box."""
    corners = dict.fromkeys(('lower', 'upper'), numbers((3,), infinite=True))
    body = record(corners, corners)(value, name)
    return box([body[key] for key in corners], name, infinite=True)


def _ellipsoid(value: object, name: str) -> Array:
    """Read an ellipsoid as the matrix Q, (4, 4)."""
    if isinstance(value, Mapping):
        keys = dict.fromkeys(('center', 'semi_axes'), numbers((3,)))
        center, axes = (record(keys, keys)(value, name)[key] for key in keys)
        if not (axes > 0.0).all():
            raise ConfigError(f"'{name}.semi_axes' is {axes.tolist()}, expected numbers above 0")
        # (x - center) in semi-axes has a length of one at most.
        to_ball = np.column_stack([np.diag(1.0 / axes), -center / axes])
        return np.asarray(np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball)
    Q: Array = numbers((4, 4))(value, name)
    # One direction that grows, three that shrink, and these fill the space of points.
    shrinks = bool((np.linalg.eigvalsh(Q[:3, :3]) < 0.0).all())
    if not (np.array_equal(Q, Q.T) and shrinks and np.linalg.eigvalsh(Q)[-1] > 0.0):
        raise ConfigError(
            f"'{name}' is no ellipsoid: its first three rows and columns must be negative "
            "definite, and somewhere inside [x; 1]' Q [x; 1] above 0"
        )
    return Q


BOUNDS = {
    'mass': each(_mass),
    'center_of_mass': each(_corners),
    'ellipsoids': each(_ellipsoid),
    'total_mass': one_or_each(_mass),
    'extras': each(interval),
}
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


@dataclass(frozen=True)
class EquationSettings:
    """Equations, and their unknowns beside the inertial parameters; names or `ALL` of them."""

    wrenches: bool | tuple[str, ...] = True
    base_link: bool = False
    """Use the six equations of the whole robot's base link alone [A 33]."""
    efforts: tuple[str, ...] | str = ()
    friction: tuple[str, ...] | str = ()
    gains: tuple[str, ...] | str = ()
    offsets: tuple[str, ...] | str = ()
    sign_width: float = 0.0
    dead_zone: float | Mapping[str, float] = 0.0
    couplings: tuple[Coupling, ...] = ()
    contacts: tuple[str, ...] = ()
    """Frames where an unknown wrench acts throughout the logs."""
    external: Mapping[str, KnownWrench] = field(default_factory=dict)
    """Wrenches of the environment that are known, by frame, but for those of the layout."""
    reject: float = 0.0
    """Standard deviations from which equations are rejected as disturbed; 0: none are."""
    frozen_after: float | None = None
    """Time from which repeated readings of tables are frozen [s]; 0: never; None: default."""

    def __post_init__(self) -> None:
        for name, default in (('wrenches', True), ('efforts', ()), ('offsets', ())):
            if self.base_link and getattr(self, name) != default:
                raise ConfigError(
                    "'rows.base_link' leaves only the equations of the base link, but "
                    f"'rows.{name}' is {getattr(self, name)!r}"
                )
        if 0.0 < self.reject < MIN_REJECT:
            raise ConfigError(
                f"'rows.reject' is {self.reject:g}, expected 0 or from {MIN_REJECT:g}"
            )


@dataclass(frozen=True)
class ShapeSettings:
    """Where the links of `mass_points` may have their mass."""

    mesh_folders: tuple[Path, ...] = ()
    boxes: Mapping[str, Box] = field(default_factory=dict)
    """By link, for those without geometry."""
    points: int = PER_AXIS
    hulls: bool = False


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
    'rows': lambda value, name: EquationSettings(**record(ROWS)(value, name)),
    'bounds': record(BOUNDS),
    'shapes': record(SHAPES),
    'payloads': each(LoggedPayload.read),
}


@dataclass(frozen=True, eq=False)
class IdentifySettings:
    """Settings of ``identify``."""

    robot: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout | None = None
    """Columns of tables of numbers; None: the logs are bags."""
    parameters: Path | None = None
    """The node's parameter file, for bags."""
    preparation: Preparation = field(default_factory=Preparation)
    rows: EquationSettings = field(default_factory=EquationSettings)
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
        _chosen(list(entries), 'setting of the file', '', ('log', 'parameters', *GROUPS))
        if ('log' in entries) == ('parameters' in entries):
            raise ConfigError("expected either 'log', for tables, or 'parameters', for bags")
        if 'parameters' in entries and 'robot' in entries:
            raise ConfigError("'robot' and 'parameters' exclude each other")
        groups = {key: read(entries.get(key) or {}, key) for key, read in GROUPS.items()}
        payloads, shapes = tuple(groups.pop('payloads').values()), groups.pop('shapes')
        folders = tuple(folder / name for name in shapes.get('mesh_folders', ()))
        for one in folders:
            if not one.is_dir():
                raise ConfigError(f"'shapes.mesh_folders' names {one}, which is no folder")
        if shapes:
            groups['shapes'] = ShapeSettings(**shapes | {'mesh_folders': folders})
        if 'log' in entries:
            for wrench in groups['rows'].external.values():
                if wrench.topic:
                    raise ConfigError(
                        f"'{wrench.name}' names topic '{wrench.topic}', but the logs are no bags"
                    )
            return cls(**groups, payloads=payloads, layout=Layout.read(entries['log']))
        if groups['rows'].frozen_after is not None:
            raise ConfigError("'rows.frozen_after' is for tables, ft.<name>.frozen_after for bags")
        return cls(**groups, payloads=payloads, parameters=folder / str(entries['parameters']))

    def choice(self, robot: Robot) -> EquationChoice:
        """Return the equations to build."""
        rows, zone = self.rows, self.rows.dead_zone
        external = (*rows.external, *(self.layout.external if self.layout else ()))
        ground_known = knows_ground(robot, external)
        if rows.base_link and robot.fixed_frame and not ground_known:
            raise ConfigError(
                f"'rows.base_link' needs the wrench of the ground at '{robot.fixed_frame}' under "
                "'rows.external', or a robot that is not fixed"
            )
        sensors = [sensor.name for sensor in robot.ft_sensors]
        if rows.offsets == ALL and not sensors:
            raise ConfigError("'rows.offsets' is all, but there is no FT sensor")
        efforts = _chosen(rows.efforts, 'joint', 'rows.efforts', robot.joint_names)
        gains = _chosen(rows.gains, 'joint', 'rows.gains', robot.joint_names)
        if self.layout is not None:
            self.layout.require_torques([name for name in efforts if name not in gains])
        wrenches = rows.wrenches
        if not isinstance(wrenches, bool):
            submodels = [submodel.name for submodel in robot.submodels]
            wrenches = _chosen(wrenches, 'submodel', 'rows.wrenches', submodels)
        return EquationChoice(
            wrenches=wrenches,
            ground_known=ground_known,
            efforts=efforts,
            joint=JointModel(
                _terms(rows.friction, 'rows.friction', Term),
                rows.sign_width,
                0.0 if isinstance(zone, Mapping) else zone,
            ),
            dead_zones=zone if isinstance(zone, Mapping) else {},
            couplings=rows.couplings,
            gains=gains,
            offsets=_chosen(rows.offsets, 'FT sensor', 'rows.offsets', sensors),
            payloads=tuple(one.payload for one in self.payloads),
        )

    def require_logs(self, logs: Sequence[LogSlice]) -> None:
        """Raise for payloads that are in none of the logs."""
        for one in self.payloads:
            if not any(map(one.is_in, logs)):
                names = ', '.join(dict.fromkeys(log.path.name for log in logs))
                raise ConfigError(
                    f"payload '{one.payload.name}' is in {', '.join(one.logs)}, none of the logs "
                    f'({names})'
                )


def submodel_bounds(bounds: Mapping[str, Any], blocks: Iterable[Block]) -> dict[str, Bounds]:
    """Return the bounds of each submodel, of values that `BOUNDS` read."""
    if not any(len(value) for value in bounds.values()):
        return {}
    blocks = list(blocks)
    totals, extras = bounds.get('total_mass', {}), bounds.get('extras', {})
    submodels = [block.submodel.name for block in blocks]
    if not isinstance(totals, Mapping):
        totals = dict.fromkeys(submodels, totals)
    links = [name for block in blocks for name in block.unknowns.links]
    unknowns = [extra for block in blocks for extra in block.unknowns.extras]
    terms = dict.fromkeys(extra.term.value for extra in unknowns)
    of_links = ('mass', 'center_of_mass', 'ellipsoids')
    for kind, named, known in (
        *(('link', bounds.get(key, {}), links) for key in of_links),
        ('submodel', totals, submodels),
        ('unknown', extras, [*map(str, unknowns), *terms]),
    ):
        for name in named:
            if name not in known:
                raise NameNotFound(kind, name, known, "'bounds' names it")

    def stacked(names: Iterable[str], given: Mapping[str, Array], free: Any) -> Array | None:
        names = list(names)
        if not set(names) & set(given):
            return None
        return np.array([given.get(name, free) for name in names], dtype=np.float64)

    no_mass, no_box = (-np.inf, np.inf), np.array([[-np.inf] * 3, [np.inf] * 3])
    found = {}
    for block in blocks:
        own = block.unknowns
        # An unknown by its own name goes before its term.
        named = {str(e): extras.get(str(e), extras.get(e.term.value, no_mass)) for e in own.extras}
        bounded = any(np.isfinite(one).any() for one in named.values())
        found[block.submodel.name] = Bounds(
            mass=stacked(own.links, bounds.get('mass', {}), no_mass),
            center_of_mass=stacked(own.links, bounds.get('center_of_mass', {}), no_box),
            ellipsoids=stacked(own.links, bounds.get('ellipsoids', {}), np.full((4, 4), np.nan)),
            total_mass=totals.get(block.submodel.name),
            extras=stacked(named, named, no_mass) if bounded else None,
        )
    return found
