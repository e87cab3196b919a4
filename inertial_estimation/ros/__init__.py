# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes: subscriptions, services, timers. A published quantity is a row of outputs/topics.py."""
