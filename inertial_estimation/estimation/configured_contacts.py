# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The contacts that the settings state."""

from __future__ import annotations

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact


def build_contacts(settings: EstimatorSettings) -> list[Contact]:
    """Return the default contacts of the settings."""
    contacts = []
    for name in settings.contacts:
        one = settings.contact_of(name)
        fields = one.point, one.direction, one.wrench, name, one.friction, one.size
        contacts.append(Contact(one.frame, one.kind, *fields))  # type: ignore[arg-type]
    return contacts
