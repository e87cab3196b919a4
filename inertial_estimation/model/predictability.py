# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a set of sensors lets one predict, once all that its readings tell was identified.

Cut at its FT sensors, a robot is identified submodel by submodel. That tells every torque inside
a submodel [T Theorem 7.3] and the equations of motion of the whole robot [T 7.1, 7.2], as far as
the wrench on each submodel is known at times. A bolted base holds one wrench that nobody measures
unless it stands on a force plate: there only joints that report their effort help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import NameNotFound
from inertial_estimation.model.identifiable import (
    excitable,
    random_states,
    structural_null_space,
)
from inertial_estimation.model.independent_columns import unexcited_directions
from inertial_estimation.model.regressor import SubmodelRegressor, submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel, decompose
from inertial_estimation.table import Table

Array = NDArray[np.float64]

SEEN = 1e-9
"""Effects of invisible directions below this share of all effects are round-off."""
STATES = 40
"""Random states that predictions are looked at in; of lacking combinations it counts so many."""


@dataclass(frozen=True)
class Predictability:
    """
    Combinations of parameters that are lacking for each prediction; 0: it can be made.

    At most as many as the random states that were looked at are counted.
    """

    rank: int
    """Combinations of all inertial parameters that the sensors tell."""
    torques: dict[str, int]
    """Of each joint, by the links up to the next FT sensors and their readings [T 7.5]."""
    torques_without_fts: dict[str, int]
    """Of each joint, by all links beyond it: inverse dynamics without external wrenches."""
    wrenches: dict[str, int]
    """Sum of the external wrenches on each submodel, by its name [T 7.2]."""

    def table(self) -> Table:
        """Return what can be predicted, a row for each joint and submodel."""
        rows = [
            (f'torque of {name}', _said(lacking), _said(self.torques_without_fts[name]))
            for name, lacking in self.torques.items()
        ]
        rows += [
            (f'wrench on {name}', _said(lacking), '') for name, lacking in self.wrenches.items()
        ]
        columns = ('prediction', 'with FT readings', 'without')
        return Table(f'identified: {self.rank} combinations', columns, tuple(rows))


def predictability(
    robot: Robot,
    *,
    ft_sensors: Iterable[str] | None = None,
    efforts: Iterable[str] = (),
    base_wrench: bool = False,
    wrenches: Collection[str] | None = None,
    contacts: Iterable[str] = (),
    seed: int = 0,
) -> Predictability:
    """Return what sensors make predictable."""
    names = [sensor.name for sensor in robot.ft_sensors]
    used = names if ft_sensors is None else list(ft_sensors)
    cut = [_index('FT sensor', name, names) for name in used]
    measured = {_index('joint', name, robot.joint_names) for name in efforts}
    touched = {robot.frame(frame)[0] for frame in contacts}
    submodels = decompose(robot.links, robot.ft_sensors, cut)
    whole = decompose(robot.links, robot.ft_sensors, ())
    samples = random_states(robot, max(STATES, 5 * len(robot.links)), seed)
    ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
    bolted = -1 if base_wrench else ground
    *parts, undivided = submodel_regressors(
        excitable(robot), samples, [*submodels, *whole], ground
    )
    free = [submodel.name for submodel in submodels if bolted not in submodel.links]
    summed = free if wrenches is None else wrenches
    invisible = []
    for submodel, rows in zip(submodels, parts, strict=True):
        if touched.intersection(submodel.links):
            null = np.eye(10 * len(submodel.links))
        elif submodel.name in summed:
            null = structural_null_space(robot, submodel)
        else:
            null = _untold(rows, measured)
        invisible.append(_placed(robot, submodel, null))
    N = np.hstack(invisible)
    torques: dict[str, int] = {}
    for submodel, rows in zip(submodels, parts, strict=True):
        torques |= _lacking_torques(robot, submodel, rows, N)
    return Predictability(
        rank=len(N) - N.shape[1],
        torques={name: torques[name] for name in robot.joint_names},
        torques_without_fts=_lacking_torques(robot, whole[0], undivided, N),
        wrenches={
            submodel.name: _lacking(robot, submodel, rows.wrench, N)
            for submodel, rows in zip(submodels, parts, strict=True)
        },
    )


def _untold(rows: SubmodelRegressor, measured: set[int]) -> Array:
    """Return what the torques of some joints do not tell, (10 n_links, k)."""
    n = rows.torques.shape[-1]
    chosen = [k for k, side in enumerate(rows.sides) if side.joint in measured]
    return unexcited_directions(rows.torques[:, chosen].reshape(-1, n)) if chosen else np.eye(n)


def _placed(robot: Robot, submodel: Submodel, columns: Array) -> Array:
    """Return columns over the links of a submodel as columns over all links."""
    placed = np.zeros((len(robot.links), 10, columns.shape[1]))
    k = columns.shape[1]
    placed[list(submodel.links)] = columns.reshape(len(submodel.links), 10, k)
    return placed.reshape(10 * len(robot.links), k)


def _lacking_torques(
    robot: Robot, submodel: Submodel, rows: SubmodelRegressor, N: Array
) -> dict[str, int]:
    """Return what is lacking for the torque of each joint of a submodel."""
    return {
        robot.joint_names[side.joint]: _lacking(robot, submodel, rows.torques[:, k], N)
        for k, side in enumerate(rows.sides)
    }


def _lacking(robot: Robot, submodel: Submodel, rows: Array, N: Array) -> int:
    """Return how many invisible combinations rows over a submodel depend on."""
    n, k = rows.shape[-1], N.shape[1]
    invisible = N.reshape(len(robot.links), 10, k)[list(submodel.links)].reshape(n, k)
    effects = rows.reshape(-1, n) @ invisible
    if not effects.size:
        return 0
    values = np.linalg.svd(effects, compute_uv=False)
    return int(np.sum(values > SEEN * np.linalg.norm(rows)))


def _index(kind: str, name: str, known: Iterable[str]) -> int:
    """Return where a name is among others."""
    names = list(known)
    if name not in names:
        raise NameNotFound(kind, name, names)
    return names.index(name)


def _said(lacking: int) -> str:
    """Return a number of lacking combinations in words."""
    return f'{lacking} lacking' if lacking else 'yes'
