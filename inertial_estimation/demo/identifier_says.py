# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the identifier of the demo says about itself: the reason where nothing is identified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SILENT = 3.0
"""It speaks once a second: after this it is busy with something that takes long [s]."""


class IdentifierSays:
    """What its diagnostics said last."""

    def __init__(self, name: str, submodel: str) -> None:
        self._names = {
            'recursion': f'{name}: recursion',
            'submodel': f'{name}: submodel {submodel}',
        }
        self._said = dict.fromkeys(self._names, '')
        self._heard = float('nan')
        self._submodel = submodel

    def hear(self, said: Mapping[str, str], now: float) -> None:
        """
        Take diagnostics.

        now [s].
        """
        for key, name in self._names.items():
            if name in said:
                self._said[key], self._heard = said[name], now

    def report(self, now: float) -> dict[str, Any]:
        """
        Return what was said.

        now [s].
        """
        return {
            'submodel_name': self._submodel,
            **self._said,
            'silent_for_s': now - self._heard,
        }


def in_words(said: Mapping[str, Any]) -> str:
    """Return a sentence."""
    if not said['recursion']:
        return 'the identifier has said nothing at all'
    text = (
        f'the identifier says: recursion {said["recursion"]}; submodel {said["submodel_name"]} '
        f'{said["submodel"]}'
    )
    if said['silent_for_s'] > SILENT:
        text += f'; that was {said["silent_for_s"]:.0f} s ago, it has been busy since'
    return text
