# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Old names of readers of messages."""

from functools import partial

from inertial_estimation.logs.bag import MessageReader

imu_reader = partial(MessageReader, 'imu')
wrench_reader = partial(MessageReader, 'ft')
temperature_reader = partial(MessageReader, 'temperature')
