# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What draws pictures into files, if it is installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from inertial_estimation.config.files import check_writable
from inertial_estimation.errors import CallError, ConfigError


def pyplot() -> Any:
    """Import what draws, into files only."""
    try:
        import_module('matplotlib').use('agg')
        return import_module('matplotlib.pyplot')
    except ImportError as error:
        raise ConfigError(
            f"a picture needs matplotlib ({error}); in the checkout, run pip install '.[plots]'"
        ) from error


def require(path: Path) -> None:
    """Refuse a picture that could not be drawn, before anything is run."""
    plots = pyplot()
    known = plots.figure().canvas.get_supported_filetypes()
    plots.close('all')
    if path.suffix.lstrip('.') not in known:
        raise CallError(f"a picture '{path}' cannot be drawn: take one of {', '.join(known)}")
    check_writable(path)
