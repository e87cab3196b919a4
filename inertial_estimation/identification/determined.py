# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which combinations of unknowns rows could determine, and which of them a log does.

What rows of these kinds can tell at all shows at random states, where everything moves: their
base parameters [S 29-39]. A log that does not excite some of them leaves the prior to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.rows import Block, RowBuilder
from inertial_estimation.model.base_parameters import (
    BaseParameters,
    conditioning_order,
    unexcited_directions,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

EXCITED = 1e-6
"""
Singular values of the rows of a log, its columns scaled to length one, below this share of the
largest say nothing: filters and stamps leave more than round-off.
"""
SPARE = 20
"""Random states beyond the number of unknowns."""


@dataclass(frozen=True, eq=False)
class Determined:
    """What rows tell of the unknowns of one block."""

    base: BaseParameters
    """Combinations that rows of these kinds can determine."""
    missing: tuple[str, ...]
    """Of these the ones that they do not, named by the unknowns that stand for them."""

    @property
    def possible(self) -> int:
        """Number of combinations that rows of these kinds can determine."""
        return self.base.rank

    @property
    def reached(self) -> int:
        """Number of those that they do determine."""
        return self.base.rank - len(self.missing)


def tellable(builder: RowBuilder, seed: int = 0) -> list[BaseParameters]:
    """
    Return what the rows of each block can determine at all.

    Parameters
    ----------
    builder : RowBuilder
        Builds them.
    seed : int
        Of the random states.

    Returns
    -------
    list of BaseParameters
        One for each block; without any combination where there are no rows.

    """
    unknowns = max(len(block.unknowns) for block in builder.blocks)
    slowest = max([model.dead_zone for model in builder.models.values()], default=0.0)
    fastest = 1.0 + 10.0 * slowest
    samples = random_samples(builder.robot, unknowns + SPARE, fastest, seed)
    found = []
    for block, rows in zip(builder.blocks, builder.rows(samples), strict=True):
        information = Information.empty(len(block.unknowns))
        for Y, y, _ in rows.values():
            information = information.add(Y, y)
        found.append(BaseParameters.of_regressor(information.R, _order(block)))
    return found


def determined(block: Block, base: BaseParameters, rows: Information) -> Determined:
    """
    Return which combinations some rows determine.

    Parameters
    ----------
    block : Block
        Whose unknowns they are.
    base : BaseParameters
        What they could, of `tellable`.
    rows : Information
        All kinds, in units of their noise.

    Returns
    -------
    Determined

    """
    kept = rows.R[:, base.independent]
    unseen = unexcited_directions(kept, EXCITED)
    # The last ones in an order that conditions well: what is left to determine the others by.
    order = np.arange(base.rank)
    seen = set(BaseParameters.of_null_space(unseen, order).independent.tolist())
    names = block.unknowns.names
    lost = [names[base.independent[k]] for k in order.tolist() if k not in seen]
    return Determined(base, tuple(lost))


def random_samples(robot: Robot, n: int, fastest: float = 1.0, seed: int = 0) -> SampleBatch:
    """
    Return states in which everything moves, with readings that nothing explains.

    Parameters
    ----------
    robot : Robot
        Whose joints and sensors they are of.
    n : int
        How many.
    fastest : float
        Joint velocities are up to this much [rad/s or m/s].
    seed : int
        Of the random numbers.

    Returns
    -------
    SampleBatch

    """
    rng = np.random.default_rng(seed)
    joints, imus = len(robot.joint_names), len(robot.imus)
    return SampleBatch(
        stamp_ns=np.arange(n, dtype=np.int64),
        positions=rng.normal(size=(n, joints)),
        velocities=rng.uniform(-fastest, fastest, (n, joints)),
        accelerations=rng.normal(size=(n, joints)),
        angular_velocities=rng.normal(size=(n, imus, 3)),
        proper_accelerations=10.0 * rng.normal(size=(n, imus, 3)),
        angular_accelerations=rng.normal(size=(n, imus, 3)),
        ft_readings=rng.normal(size=(n, len(robot.ft_sensors), 6)),
        efforts=rng.normal(size=(n, joints)),
    )


def in_words(missing: Sequence[str], most: int = 6) -> str:
    """
    Return names of what is missing, not all if there are many.

    Parameters
    ----------
    missing : sequence of str
        The names.
    most : int
        How many to say.

    Returns
    -------
    str

    """
    rest = len(missing) - most
    more = f' and {rest} more' if rest > 0 else ''
    return ', '.join(missing[:most]) + more


def _order(block: Block) -> NDArray[np.intp]:
    """Return the order of a block's columns that conditions well."""
    return conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
