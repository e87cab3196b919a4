# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What may refit the bodies of a robot that works."""

METHODS = ('entropic', 'semidefinite', 'pullback', 'euclidean')
"""Of `solvers.methods`: those that are quick, and in which a prior weighs."""
