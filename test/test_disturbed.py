# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``rows.reject`` through ``identify``: pushes on a real arm that no log states."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from simulated_arm import efforts_of

from inertial_estimation.logs import reduction
from inertial_estimation.logs.identify import identify
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.log_reader import LogReader

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / 'shared' / 'data'
# What a push leaves within the limit is harmless: starts and ends of weak ones.
FOUND = 0.98
# Of clean samples, margins of 0.2 s and more on both sides of as many pushes of a second or two.
LOST = 0.25


def pushes(rng, t, frames, share):
    """Return wrenches of half a second to three for a share of the time, and when."""
    wrenches = {frame: np.zeros((len(t), 6)) for frame in frames}
    bad = np.zeros(len(t), dtype=bool)
    while bad.mean() < share:
        length = rng.uniform(0.5, 3.0)
        start = rng.uniform(0.0, t[-1] - length)
        now = (t >= start) & (t < start + length)
        if bad[now].any() or bad.mean() + now.mean() > share + 0.05:
            continue
        force = rng.normal(size=3)
        force *= rng.uniform(10.0, 50.0) / np.linalg.norm(force)
        done = (t[now] - start) / length
        rise = np.minimum(1.0, 8.0 * np.minimum(done, 1.0 - done))
        wrench = np.append(force, np.cross(rng.uniform(-0.1, 0.1, 3), force))
        wrenches[frames[rng.integers(len(frames))]][now] += rise[:, None] * wrench
        bad |= now
    return wrenches, bad


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
def test_pushes_on_a_real_log_are_rejected(tmp_path, monkeypatch):
    """Friction, filters and the URDF are what they are; only the pushes are made up."""
    log = DATA / 'panda_excitation' / 'log.npz'
    urdf = (DATA / 'models' / 'panda_wrist_ft.urdf').read_text()
    given = yaml.safe_load((ROOT / 'config' / 'identify_panda.yaml').read_text())
    settings = []
    for reject in (0, 4):
        given['rows']['reject'] = reject
        (tmp_path / 'settings.yaml').write_text(yaml.safe_dump(given))
        settings.append(IdentifySettings.from_yaml(tmp_path / 'settings.yaml'))
    plain, rejecting = settings
    reader = LogReader(urdf, plain, (), LogSlice.parse(log), no_progress)
    raw = reader.read(LogSlice.parse(log)).samples
    still = np.zeros_like(raw.positions)
    still = replace(raw, velocities=still, accelerations=still, efforts=still)
    t = (raw.stamp_ns - raw.stamp_ns[0]) * 1e-9
    frames = [f'panda_link{k}' for k in (4, 5, 6, 7)]
    wrenches, bad = pushes(np.random.default_rng(2), t, frames, 0.4)
    extra = efforts_of(reader.robot, still, wrenches) - efforts_of(reader.robot, still)
    with np.load(log) as columns:
        np.savez(tmp_path / 'pushed.npz', **dict(columns) | {'torque': columns['torque'] + extra})
    rounds, find_outliers = [], reduction.find_outliers

    def watched(builder, observed, *rest):
        found = find_outliers(builder, observed, *rest)
        rounds.append((found[0], observed.samples.stamp_ns))
        return found

    monkeypatch.setattr(reduction, 'find_outliers', watched)
    clean = identify(urdf, [log], plain).fit.blocks[0]
    found = identify(urdf, [tmp_path / 'pushed.npz'], rejecting)
    spoilt = identify(urdf, [tmp_path / 'pushed.npz'], plain)
    assert 'disturbed' in {one.code for one in found.findings}
    rejected, stamps = rounds[-1]
    disturbed = np.interp((stamps - raw.stamp_ns[0]) * 1e-9, t, bad.astype(float)) > 0.5
    assert rejected[disturbed].mean() > FOUND
    assert rejected[~disturbed].mean() < LOST

    def residual(x):
        left, size = clean.evidence.residuals(x), clean.evidence.signals()
        return np.sqrt(sum(v**2 for v in left.values()) / sum(v**2 for v in size.values()))

    # Of the undisturbed log: what is left of it, of which half may not be seen.
    best = residual(clean.answer.x)
    assert residual(found.fit.blocks[0].answer.x) < 1.2 * best
    assert residual(spoilt.fit.blocks[0].answer.x) > 4.0 * best
