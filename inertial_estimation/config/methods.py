# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Methods of identification by their names; `identification.solvers.methods` solves with them."""

METHODS = (
    'entropic', 'semidefinite', 'mass_points', 'manifold', 'pullback', 'euclidean',
    'least_squares',
)  # fmt: skip
LIVE_METHODS = ('entropic', 'semidefinite', 'pullback', 'euclidean')
"""Those with a prior that are fast enough for refits."""
