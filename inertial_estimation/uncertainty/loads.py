# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Every result as a projection of a sum of wrenches: ``value = tau + h . load``.

A *load* is a sum, with the factors of the balance, of the terms of the solver: net wrenches below
tops, FT measurements, and the wrenches of those contacts that do not simply take up the whole
remaining sum of their submodel. The covector `h` is a joint's axis or an axis of the frame in
which a wrench is expressed, and moves with that joint or frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.plan import Plan

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Loads:
    """
    What a plan sums up; it holds no part of the plan's workspace.

    The loads are, in this order, those of the active contacts, of the submodels that have a
    residual, of the joint torques and of the external joint torques.
    """

    measured: Array
    """Factors of the measured terms (tops, then FT sensors), shape (n_loads, n_measured)."""
    shared: Array
    """Factors of the shared contacts, shape (n_loads, n_shared)."""
    moves: Array
    """1 where a joint moves the covector of a load, shape (n_loads, n_joints)."""
    frames: Indices
    """Frames of the first loads: of the active contacts, then of root links, shape (n_frames,)."""
    shared_contacts: Indices
    """Active contacts whose wrench is known, or split from a sum, shape (n_shared,)."""
    shared_sums: Array
    """Factors of the measured terms in the sum of their submodel, (n_shared, n_measured)."""
    residual_rows: Indices
    """Rows of the submodels that have a residual, among the balance's."""
    moved: Array
    """1 where a joint moves a frame of the plan, shape (n_frames of the plan, n_joints)."""


def find_loads(plan: Plan) -> Loads:
    """Lay out the loads of a plan."""
    balance, frames = plan.balance, plan.frames
    n_measured, n_contacts = frames.contacts, len(plan.active)
    owners = np.array(balance.contact_submodel, dtype=np.intp)
    sums = balance.submodel_factors[:, :n_measured]
    shared = np.setdiff1d(np.arange(n_contacts), plan.single)
    free = np.setdiff1d(np.arange(len(sums)), plan.single_rows)
    by_contact = _contact_factors(plan, owners, sums, shared)
    carried = np.equal.outer(free, owners[shared]).astype(np.float64)
    residuals = np.hstack([sums[free], -carried])
    pieces = [by_contact, residuals]
    for kind in (0, 1):
        factors = balance.joint_factors[:, kind]
        own = np.hstack([factors[:, :n_measured], np.zeros((len(factors), len(shared)))])
        pieces.append(own + factors[:, n_measured:] @ by_contact)
    factors = np.vstack(pieces)
    moved = _ancestors(plan)[frames.support]
    places = np.concatenate([frames.contacts + np.arange(n_contacts), frames.roots + free])
    joints = _ancestors(plan)[1:]
    return Loads(
        measured=factors[:, :n_measured].copy(),
        shared=factors[:, n_measured:].copy(),
        moves=np.vstack([moved[places.astype(np.intp)], joints, joints]),
        frames=places.astype(np.intp),
        shared_contacts=shared,
        shared_sums=sums[owners[shared]],
        residual_rows=free,
        moved=moved,
    )


def _contact_factors(plan: Plan, owners: Indices, sums: Array, shared: Indices) -> Array:
    """Return the factors of measured terms and shared contacts in each active contact's wrench."""
    by_contact = np.zeros((len(owners), sums.shape[1] + len(shared)))
    for column, contact in enumerate(shared, start=sums.shape[1]):
        by_contact[contact, column] = 1.0
    for contact, s in zip(plan.single, plan.single_rows, strict=True):
        by_contact[contact, : sums.shape[1]] = sums[s]
        by_contact[contact, sums.shape[1] :] = -(owners[shared] == s).astype(np.float64)
    return by_contact


def _ancestors(plan: Plan) -> Array:
    """Return which joints move each pose of the geometry, shape (n_supports, n_joints)."""
    model: pin.Model = plan.dynamics.geometry.model
    moved = np.zeros((model.njoints, model.njoints - 1))
    for k in range(1, model.njoints):
        moved[k] = moved[model.parents[k]]
        moved[k, model.joints[k].idx_v] = 1.0
    return moved
