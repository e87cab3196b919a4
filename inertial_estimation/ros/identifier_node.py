# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The lifecycle node ``parameter_identifier``."""

from collections.abc import Sequence

from inertial_estimation.config.identifier import IDENTIFIER_NAME, IdentifierSettings
from inertial_estimation.ros.configured_node import ConfiguredNode, run_node
from inertial_estimation.ros.identifier_pipeline import IdentifierPipeline


class IdentifierNode(ConfiguredNode):
    """
    Finds out what the links weigh while the robot works, and publishes it.

    Parameters
    ----------
    **kwargs
        As for any node: ``namespace``, ``parameter_overrides``, ``context`` and so on.

    Attributes
    ----------
    settings : IdentifierSettings
        As configured last.
    pipeline : IdentifierPipeline or None
        What it consists of while it is configured.

    Raises
    ------
    ConfigError, NameNotFound
        If a parameter is unknown or does not fit.

    """

    def __init__(self, **kwargs) -> None:
        super().__init__(IDENTIFIER_NAME, IdentifierSettings, IdentifierPipeline, **kwargs)
        self.start()


def main(args: Sequence[str] | None = None) -> int:
    """
    Run the node until it is interrupted.

    Parameters
    ----------
    args : sequence of str, optional
        Command line; default: that of the process.

    Returns
    -------
    int
        Exit code: 1 if the command line, a parameter file or the parameters do not fit.

    """
    return run_node(IdentifierNode, IDENTIFIER_NAME, args)
