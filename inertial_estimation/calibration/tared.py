# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets from the model as what sensors are calibrated with, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.supported_offsets import SupportedOffsets

METHOD = 'offsets from the model'


def tared(
    found: SupportedOffsets,
    before: Mapping[str, SensorCalibration],
    date: str,
    doubts: Iterable[str] = (),
) -> dict[str, SensorCalibration]:
    """Return the calibrations of the sensors whose offsets were found."""
    said = tuple(f'doubtful: {doubt}' for doubt in doubts)
    changed = {}
    for k, (name, sensor) in enumerate(before.items()):
        if not found.found[k]:
            continue
        step = Provenance(
            method=_method(found.supports),
            date=date,
            n_samples=int(found.n_samples[k]),
            temperature=float(found.temperatures[k]),
            spread=tuple(found.spread[k].tolist()),
            notes=(*notes(found, k, name), *said),
        )
        earlier = sensor.provenance[:-1] if is_tared(sensor) else sensor.provenance
        changed[name] = replace(sensor, offset=found.offsets[k], provenance=(*earlier, step))
    return changed


def is_tared(sensor: SensorCalibration) -> bool:
    """Tell whether a tare was the last step that led to a calibration."""
    return bool(sensor.provenance) and sensor.provenance[-1].method.startswith(METHOD)


def notes(found: SupportedOffsets, k: int, name: str) -> tuple[str, ...]:
    """Return what whoever uses an offset must know."""
    said = []
    if not found.unique[k]:
        said.append(
            'not unique: the shortest wrenches of the supports were taken for true; told are '
            f'{", ".join(found.told) or "no sums"}'
        )
    if found.assumed[k]:
        said.append('rests on joints that nobody reports')
    if name in found.poses:
        said.append(found.poses[name].verdict)
    return tuple(said)


def in_words(found: SupportedOffsets, names: Sequence[str], doubts: Iterable[str] = ()) -> str:
    """Return what was found, how well it is known, and what was left out."""
    said = [
        f'{name}: offset {_sizes(found.offsets[k])}, spread {_sizes(found.spread[k])}, known to '
        f'{_sizes(found.deviations[k])} as far as the model is right, {found.n_samples[k]} '
        'instants' + ''.join(f'; {note}' for note in notes(found, k, name))
        for k, name in enumerate(names)
        if found.found[k]
    ]
    if others := [name for k, name in enumerate(names) if not found.found[k]]:
        said.append(f'not changed: {_with_reasons(others, found.silent)}')
    left_out = [f'{reason} {n}' for reason, n in found.left_out.items() if n]
    said.append(f'left out: {", ".join(left_out) or "none"}')
    said += [f'doubtful: {doubt}' for doubt in doubts]
    return '. '.join(said)


def _with_reasons(names: Iterable[str], reasons: Mapping[str, str]) -> str:
    """Return names, each with the reason if there is one."""
    return ', '.join(f'{name} ({reasons[name]})' if name in reasons else name for name in names)


def _method(supports: Sequence[str]) -> str:
    """Name what was done."""
    kind = 'supports' if len(supports) > 1 else 'one support'
    return f'{METHOD}, {kind}: {", ".join(supports)}'


def _sizes(wrench: np.ndarray) -> str:
    """Return the lengths of force and moment."""
    force, moment = np.linalg.norm(wrench.reshape(2, 3), axis=1)
    return f'{force:.3g} N {moment:.2g} Nm'
