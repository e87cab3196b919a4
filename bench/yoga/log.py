# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The log of a real iCub on its left foot, as the node would have read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.real_robots.robots import CONFIGS
from inertial_estimation.building import build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.logs.recording import TimeRange, read_samples
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

CONFIG, BAG, URDF = 'icub_yoga_left.yaml', 'icub_yoga_left/bag', 'models/icub_v2_5.urdf'
ON_ONE_FOOT = TimeRange(13.07, 65.64)
"""While the left sole is flat on the ground and so at rest, after the first FT message [s]."""
FREE = ('r_leg_ft', 'r_foot_ft')
"""FT sensors beyond which nothing touches meanwhile."""


class YogaLog(NamedTuple):
    """The part of the log on one foot."""

    robot: Robot
    samples: SampleBatch
    config: Path
    """Parameter file of the node; likewise below."""
    bag: Path
    urdf: Path
    start_ns: int
    """Stamps between which messages belong to it [ns]."""
    stop_ns: int

    def as_job(self) -> dict[str, Any]:
        """Return what `bench.nodes.played` asks for."""
        return {
            'urdf': self.urdf.read_text(encoding='utf-8'),
            'config': str(self.config),
            'bag': str(self.bag),
            'start_ns': self.start_ns,
            'stop_ns': self.stop_ns,
        }


def data_files(data: Path) -> list[Path]:
    """Return what is read."""
    return [CONFIGS / CONFIG, data / BAG, data / URDF]


def read_log(data: Path, progress: Callable[[float], None] = lambda done: None) -> YogaLog:
    config, bag, urdf = data_files(data)
    missing = [str(path) for path in (config, bag, urdf) if not path.exists()]
    if missing:
        raise ConfigError(
            f'there is no {", no ".join(missing)}: name the folder that holds {BAG} and {URDF}'
        )
    settings = EstimatorSettings.from_yaml(config)
    robot = build_robot(settings, urdf.read_text(encoding='utf-8'))
    whole = read_samples(bag, robot, settings, lambda _, done: progress(done))
    part = whole.within(ON_ONE_FOOT)
    start, stop = (
        whole.origin_ns + round(1e9 * t) for t in (ON_ONE_FOOT.start, ON_ONE_FOOT.stop)
    )  # fmt: skip
    return YogaLog(robot, part.samples, config, bag, urdf, start, stop)
