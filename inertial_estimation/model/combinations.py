# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Linear combinations as text, as ``upper.Ixx - 0.25 (lower.m + hand.m)``."""

from __future__ import annotations

from collections.abc import Sequence

from inertial_estimation.errors import InertialEstimationError

EXACT = 1e-9
"""Factors this near to one are one."""
DIGITS = 4
"""Of factors that are only read."""


def parse_combination(text: str) -> dict[str, float]:
    """Return the factor of each name of a linear combination."""
    found: dict[str, float] = {}
    outer, sign, factor = 1.0, 1.0, 1.0
    wants_name = True
    for token in text.replace('(', ' ( ').replace(')', ' ) ').split():
        if token in '+-':
            sign, factor, wants_name = (1.0 if token == '+' else -1.0), 1.0, True
        elif token == '(':
            outer, sign, factor = sign * factor, 1.0, 1.0
        elif token == ')':
            outer = 1.0
        elif _is_number(token):
            factor = float(token)
        elif not wants_name:
            raise InertialEstimationError(f"'{text}' lacks a sign before '{token}'")
        else:
            found[token] = found.get(token, 0.0) + outer * sign * factor
            sign, factor, wants_name = 1.0, 1.0, False
    if not found or wants_name:
        raise InertialEstimationError(f"'{text}' is no combination such as 'a - 1.1 (b + c)'")
    return found


def written_term(factor: float, name: str) -> str:
    """Return a further term of a combination."""
    size = f'{abs(factor):.9g} ' if abs(abs(factor) - 1.0) > EXACT else ''
    return f'{"-" if factor < 0 else "+"} {size}{name}'


def readable_combination(
    kept: str, terms: Sequence[tuple[float, str]], most: int | None = None
) -> str:
    """Return a combination with few digits, names of one factor together."""
    shared: dict[str, list[str]] = {}
    for factor, name in terms[:most]:
        shared.setdefault(f'{factor:+.{DIGITS}g}', []).append(name)
    text = kept
    for signed, names in shared.items():
        sign, size = signed[0], signed[1:]
        if size == '1':
            text += ''.join(f' {sign} {name}' for name in names)
        else:
            inner = ' + '.join(names)
            text += f' {sign} {size} ' + (inner if len(names) == 1 else f'({inner})')
    cut = 0 if most is None else max(len(terms) - most, 0)
    return f'{text} and {cut} more' if cut else text


def _is_number(token: str) -> bool:
    """Return whether a word is a number."""
    try:
        float(token)
    except ValueError:
        return False
    return True
