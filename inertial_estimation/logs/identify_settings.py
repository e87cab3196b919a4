# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of ``identify``: config/identify_panda.yaml has them all, with their meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import is_parameter_file, load_mapping
from inertial_estimation.config.schema import (
    Names,
    NotNegative,
    Reader,
    Vector,
    numbers,
    read,
    record,
)
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import Block, EquationChoice
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.unknowns import OF_A_JOINT, Term
from inertial_estimation.logs.known_wrenches import (
    ConstantWrench,
    WrenchTopic,
    knows_ground,
    read_known,
)
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.table_formats import Layout
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.geometry import PER_AXIS, Box
from inertial_estimation.model.robot import Robot

ALL = ('all',)
MIN_REJECT = 3.0
"""Standard deviations below which noise would be rejected."""
ROBOT = ('joints', 'locked_positions', 'ft_sensors', 'imus', 'fixed_link', 'gravity')
FREE = np.array([[-np.inf] * 3, [np.inf] * 3])
"""Corners of a box without limits."""


def chosen(given: Collection[str], kind: str, name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return names among the known ones of a kind; `ALL` is every one."""
    names = tuple(known) if tuple(given) == ALL else tuple(given)
    for one in names:
        if one not in known:
            raise NameNotFound(kind, one, known, f"'{name}' names it" if name else '')
    return names


# ---- Values -------------------------------------------------------------------------------------


def _ordered(*shape: int) -> Reader:
    """Return the reader of least and greatest values, which may be infinite."""

    def read_ordered(value: Any, name: str) -> Array:
        found: Array = numbers(shape, infinite=True)(value, name)
        if not (found[0] < found[1]).all():
            raise ConfigError(f"'{name}' is {value}, expected the least value before the greatest")
        return found

    return read_ordered


def _ellipsoid(value: Any, name: str) -> Array:
    """Read an ellipsoid as the matrix Q, (4, 4): [x; 1]' Q [x; 1] >= 0 inside."""
    given = record(_Ellipsoid, value, name)
    center, axes = given.center, given.semi_axes
    if not (axes > 0.0).all():
        raise ConfigError(f"'{name}.semi_axes' is {axes.tolist()}, expected numbers above 0")
    # (x - center) in semi-axes has a length of one at most.
    to_ball = np.column_stack([np.diag(1.0 / axes), -center / axes])
    return np.asarray(np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball)


@dataclass(frozen=True, eq=False)
class _Ellipsoid:
    center: Vector
    semi_axes: Vector


def _robot(value: Any, name: str) -> dict[str, Any]:
    """Read arguments of `Robot.from_urdf`, which checks their values."""
    found: dict[str, Any] = read(Mapping[str, Any], value, name)
    chosen(found, f"setting below '{name}'", '', ROBOT)
    if 'joints' in found:
        read(tuple[str, ...], found['joints'], f'{name}.joints')
    return found


def _payloads(value: Any, name: str) -> tuple[LoggedPayload, ...]:
    found = read(Mapping[str, Any], value, name)
    return tuple(record(LoggedPayload, v, f'{name}.{k}', name=k) for k, v in found.items())


BoxOfCorners = Annotated[Box, lambda value, name: Box.around(numbers((2, 3))(value, name))]
Interval = Annotated[Array, _ordered(2)]
Corners = Annotated[Array, _ordered(2, 3)]
Ellipsoid = Annotated[Array, _ellipsoid]


# ---- Groups -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoggedPayload(Payload):
    """A payload, and the logs that it is in."""

    logs: tuple[str, ...] = ()
    """Names of files or folders, in which * stands for anything."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.logs:
            raise ConfigError('logs is empty, expected names of logs')

    def is_in(self, log: LogSlice) -> bool:
        """Return true if the robot carried it while a log was recorded."""
        return any(fnmatchcase(log.path.name, pattern) for pattern in self.logs)


@dataclass(frozen=True)
class EquationSettings:
    """Equations, and their unknowns beside the inertial parameters; names or `ALL` of them."""

    wrenches: bool = True
    base_link: bool = False
    """Use the six equations of the whole robot's base link alone [A 33]."""
    efforts: Names = ()
    friction: Names = ()
    gains: Names = ()
    offsets: Names = ()
    sign_width: NotNegative = 0.0
    dead_zone: NotNegative | Mapping[str, NotNegative] = 0.0
    couplings: tuple[tuple[str, str], ...] = ()
    contacts: tuple[str, ...] = ()
    """Frames where an unknown wrench acts throughout the logs."""
    external: Mapping[str, Annotated[ConstantWrench | WrenchTopic, read_known]] = field(
        default_factory=dict
    )
    """Wrenches of the environment that are known, by frame, but for those of the layout."""
    reject: float = 0.0
    """Standard deviations from which equations are rejected as disturbed; 0: none are."""
    frozen_after: NotNegative = 0.2
    """Time from which repeated readings of tables are frozen [s]; 0: never."""

    def __post_init__(self) -> None:
        if self.reject and self.reject < MIN_REJECT:
            raise ConfigError(f'reject is {self.reject:g}, expected 0 or from {MIN_REJECT:g}')


@dataclass(frozen=True, eq=False)
class BoundSettings:
    """Bounds of parameters by link, submodel or unknown; see `Bounds`."""

    mass: Mapping[str, Interval] = field(default_factory=dict)
    center_of_mass: Mapping[str, Corners] = field(default_factory=dict)
    ellipsoids: Mapping[str, Ellipsoid] = field(default_factory=dict)
    total_mass: Mapping[str, Interval] = field(default_factory=dict)
    extras: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class ShapeSettings:
    """Places where the links of `mass_points` may have their mass."""

    mesh_folders: tuple[Path, ...] = ()
    boxes: Mapping[str, BoxOfCorners] = field(default_factory=dict)
    """By link, for those without geometry."""
    points: int = PER_AXIS

    def __post_init__(self) -> None:
        if self.points < PER_AXIS:
            raise ConfigError(f'points is {self.points}, expected {PER_AXIS} or more')


@dataclass(frozen=True, eq=False)
class IdentifySettings:
    """Settings of ``identify``."""

    robot: Annotated[Mapping[str, Any], _robot] = field(default_factory=dict)
    log: Layout | None = None
    """Columns of tables of numbers; None: the logs are bags."""
    parameters: Path | None = None
    """The node's parameter file, for bags."""
    preparation: Preparation = field(default_factory=Preparation)
    rows: EquationSettings = field(default_factory=EquationSettings)
    bounds: BoundSettings = field(default_factory=BoundSettings)
    shapes: ShapeSettings | None = None
    payloads: Annotated[tuple[LoggedPayload, ...], _payloads] = ()

    @classmethod
    def from_yaml(cls, path: str | Path) -> IdentifySettings:
        """Read a file."""
        path = Path(path)
        entries = load_mapping(path)
        if is_parameter_file(entries) and not {'log', 'parameters'}.intersection(entries):
            return cls(parameters=path)
        try:
            return record(cls, entries, '')._in_folder(path.parent)
        except (ConfigError, NameNotFound) as error:
            raise ConfigError(f'{path}: {error}') from error

    def _in_folder(self, folder: Path) -> IdentifySettings:
        """Return the settings with files beside their own, or refuse what contradicts itself."""
        if (self.log is None) == (self.parameters is None):
            raise ConfigError("expected either 'log', for tables, or 'parameters', for bags")
        if self.parameters is not None and self.robot:
            raise ConfigError("'robot' and 'parameters' exclude each other")
        shapes = self.shapes
        if shapes is not None:
            shapes = replace(shapes, mesh_folders=tuple(folder / x for x in shapes.mesh_folders))
        parameters = self.parameters and folder / self.parameters
        return replace(self, shapes=shapes, parameters=parameters)

    @cached_property
    def node(self) -> EstimatorSettings | None:
        """Settings of the node, for bags."""
        return EstimatorSettings.from_yaml(self.parameters) if self.parameters else None

    def build_robot(
        self,
        urdf: str,
        joints: Sequence[str] | None = None,
        locked: Mapping[str, float] | None = None,
    ) -> Robot:
        """Return the robot of a URDF, with some of its joints, and the positions of others."""
        cut, node = not self.rows.base_link, self.node
        if node is None:
            given = dict(self.robot) | ({} if cut else {'ft_sensors': []})
            if joints is not None:
                positions = {**(self.robot.get('locked_positions') or {}), **(locked or {})}
                given |= {'joints': joints, 'locked_positions': positions}
            return Robot.from_urdf(urdf, **given)
        if joints is not None:
            states = node.joint_states
            assumed = dict(zip(states.assumed, states.assumed_positions, strict=True))
            kept = {name: position for name, position in assumed.items() if name in joints}
            left = replace(states, assumed=tuple(kept), assumed_positions=tuple(kept.values()))
            node = replace(node, joints=tuple(joints), joint_states=left)
        return build_robot(node, urdf, locked_positions=locked, cut=cut)

    def choice(self, robot: Robot, lock: Collection[str] = ()) -> EquationChoice:
        """Return the equations to build, without those of locked joints."""
        rows, zone = self.rows, self.rows.dead_zone
        efforts, gains = (
            chosen([one for one in names if one not in lock], 'joint', where, robot.joint_names)
            for names, where in ((rows.efforts, 'rows.efforts'), (rows.gains, 'rows.gains'))
        )
        zones = zone if isinstance(zone, Mapping) else dict.fromkeys(efforts, zone)
        external = (*rows.external, *(self.log.external if self.log else ()))
        ground_known = knows_ground(robot, external)
        if rows.base_link and robot.fixed_frame and not ground_known:
            raise ConfigError(
                f"'rows.base_link' needs the wrench of the ground at '{robot.fixed_frame}' under "
                "'rows.external', or a robot that is not fixed"
            )
        sensors = [sensor.name for sensor in robot.ft_sensors]
        if self.log is not None:
            self.log.require_torques([name for name in efforts if name not in gains])
        terms = chosen(rows.friction, 'term', 'rows.friction', [one.value for one in OF_A_JOINT])
        return EquationChoice(
            wrenches=rows.wrenches, ground_known=ground_known, efforts=efforts,
            friction=tuple(map(Term, terms)), sign_width=rows.sign_width,
            dead_zones={name: zones[name] for name in zones if name not in lock},
            couplings=tuple(one for one in rows.couplings if not set(one) & set(lock)),
            gains=gains, offsets=chosen(rows.offsets, 'FT sensor', 'rows.offsets', sensors),
            payloads=self.payloads,
        )  # fmt: skip

    def require_logs(self, logs: Sequence[LogSlice]) -> None:
        """Raise for payloads that are in none of the logs."""
        for one in self.payloads:
            if not any(map(one.is_in, logs)):
                names = ', '.join(dict.fromkeys(log.path.name for log in logs))
                raise ConfigError(
                    f"payload '{one.name}' is in {', '.join(one.logs)}, none of the logs ({names})"
                )


def submodel_bounds(bounds: BoundSettings, blocks: Iterable[Block]) -> dict[str, Bounds]:
    """Return the bounds of each submodel."""
    if not any(len(one) for one in vars(bounds).values()):
        return {}
    blocks = list(blocks)
    extras, submodels = bounds.extras, [block.submodel.name for block in blocks]
    links = [name for block in blocks for name in block.unknowns.links]
    unknowns = [extra for block in blocks for extra in block.unknowns.extras]
    terms = dict.fromkeys(extra.term.value for extra in unknowns)
    for kind, named, known in (
        ('link', [*bounds.mass, *bounds.center_of_mass, *bounds.ellipsoids], links),
        ('submodel', bounds.total_mass, submodels),
        ('unknown', extras, [*map(str, unknowns), *terms]),
    ):
        chosen(named, kind, 'bounds', known)

    def stacked(names: Sequence[str], given: Mapping[str, Array], free: Any) -> Array | None:
        if not set(names) & set(given):
            return None
        return np.array([given.get(name, free) for name in names], dtype=np.float64)

    found = {}
    for block in blocks:
        own = block.unknowns
        # An unknown by its own name goes before its term.
        named = {
            str(e): extras.get(str(e), extras.get(e.term.value, FREE[:, 0])) for e in own.extras
        }
        bounded = any(np.isfinite(one).any() for one in named.values())
        found[block.submodel.name] = Bounds(
            mass=stacked(own.links, bounds.mass, FREE[:, 0]),
            center_of_mass=stacked(own.links, bounds.center_of_mass, FREE),
            ellipsoids=stacked(own.links, bounds.ellipsoids, np.full((4, 4), np.nan)),
            total_mass=bounds.total_mass.get(block.submodel.name),
            extras=stacked([*named], named, FREE[:, 0]) if bounded else None,
        )  # fmt: skip
    return found
