# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of ``bench --calibration``."""

from __future__ import annotations

from bench.calibration import (
    axia,
    hanging,
    legs,
    ntnu,
    one_foot,
    sessions,
    tipping,
)
from bench.published.run import Experiment

EXPERIMENTS = (
    Experiment(axia.run, axia.FILES),
    Experiment(ntnu.run, (ntnu.FILE,)),
    Experiment(tipping.run, tipping.FILES),
    Experiment(one_foot.run, one_foot.FILES),
    Experiment(legs.run, (legs.FILE,)),
    Experiment(hanging.run),
    Experiment(sessions.run),
)
