# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parsers of verbs that say themselves what is wrong with a call, with their own usage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

SEVERAL = ('+', '*')
"""Options that take all that follows them."""


class VerbParser(argparse.ArgumentParser):
    """
    Parser of a verb, or of one of its ways.

    argparse hands what a verb does not know back to the top, whose usage tells nothing of it; and
    an option that takes several values takes the log behind them too, which is then missing.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._given: list[str] = []

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and refuse what is not known here."""
        self._given = [] if args is None else list(args)
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f'unrecognized arguments: {" ".join(left)}{self._too_many(left[0])}')
        return found, left

    def error(self, message: str) -> NoReturn:
        """End with usage and message."""
        missing = [
            str(action.metavar) for action in self._get_positional_actions()
            if message.endswith(f'are required: {action.metavar}')
        ]  # fmt: skip
        if missing and (greedy := [one for one in self._given if self._takes(one) in SEVERAL]):
            message += f'; put {missing[0]} first, as {greedy[0]} takes all that follows it'
        super().error(message)

    def _too_many(self, word: str) -> str:
        """Return which option took all that it takes before a word, in brackets, or nothing."""
        before = self._given[: self._given.index(word)] if word in self._given else []
        options = [one for one in before if one.startswith('--')]
        if word.startswith('-') or not options or self._takes(options[-1]) != 1:
            return ''
        return f' ({options[-1]} takes one value)'

    def _takes(self, option: str) -> int | str:
        """Return how many values an option takes, 0 for what is none."""
        action = self._option_string_actions.get(option)
        if action is None or isinstance(action.nargs, (int, str)):
            return 0 if action is None else action.nargs or 0
        return 1
