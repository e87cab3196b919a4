# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which rows of which sensors are built, and what else is unknown in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.rows.friction import Coupling, JointModel
from inertial_estimation.identification.rows.payloads import Payload
from inertial_estimation.model.robot import Robot


@dataclass(frozen=True)
class RowChoice:
    """Which rows to build, and which unknowns beside the links' parameters they have."""

    wrenches: bool | tuple[str, ...] = True
    """Rows of the sums of wrenches: of all submodels that the ground does not hold, or which."""
    ground_known: bool = False
    """
    The wrench of the ground on the fixed link is always among the external ones, so the submodel
    that it holds gives rows of wrenches too.
    """
    efforts: tuple[str, ...] = ()
    """Joints whose efforts give rows."""
    joint: JointModel = field(default_factory=lambda: JointModel(terms=()))
    """Friction and drive inertia of these joints."""
    dead_zones: Mapping[str, float] = field(default_factory=dict)
    """Of joints whose dead zone is another than that of `joint` [rad/s or m/s]."""
    couplings: tuple[Coupling, ...] = ()
    """Drives that load two of these joints."""
    gains: tuple[str, ...] = ()
    """Joints among them whose efforts are a current, to be multiplied by an unknown gain."""
    offsets: tuple[str, ...] = ()
    """FT sensors whose offset is unknown."""
    payloads: tuple[Payload, ...] = ()
    """Bodies that are there at times only."""

    def require_names(self, robot: Robot) -> None:
        """Refuse names that a robot does not have."""
        sensors = [sensor.name for sensor in robot.ft_sensors]
        submodels = [submodel.name for submodel in robot.submodels]
        chosen = self.wrenches if isinstance(self.wrenches, tuple) else ()
        joints = (*self.efforts, *self.gains, *self.dead_zones)
        for kind, names, known in (
            ('joint', joints, robot.joint_names),
            ('FT sensor', self.offsets, sensors),
            ('submodel', chosen, submodels),
        ):
            for name in names:
                if name not in known:
                    raise NameNotFound(kind, name, known)

    def model_of(self, joint: str) -> JointModel:
        """Return friction and dead zone of a joint."""
        dead_zone = self.dead_zones.get(joint, self.joint.dead_zone)
        return replace(self.joint, dead_zone=dead_zone)
