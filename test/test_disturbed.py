# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``rows.reject`` through ``identify``: pushes on a real arm that no log states."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from simulated_arm import efforts_of

from inertial_estimation.logs import reduction
from inertial_estimation.logs.identify import identify as whole_job
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.reduction import LogReader

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / 'shared' / 'data'
# What a push leaves within the limit is harmless: starts and ends of weak ones.
FOUND = 0.98
# Of clean instants, margins of 0.2 s and more on both sides of as many pushes of a second or two.
LOST = 0.25


@pytest.fixture
def run(monkeypatch):
    """Return the job, with the instants that it left out in its last round."""
    seen = {}
    find_outliers = reduction.find_outliers

    def watched(builder, observed, *rest):
        found = find_outliers(builder, observed, *rest)
        seen.update(at=found[0], seconds=observed.samples.stamp_ns * 1e-9)
        return found

    monkeypatch.setattr(reduction, 'find_outliers', watched)

    def identify(log, urdf, settings):
        seen.clear()
        report = whole_job(urdf, [log], settings)
        x = report.fit.blocks[0].answer.x
        return SimpleNamespace(**seen, x=x, findings=report.findings)

    return identify


def settings_of(folder, text):
    (folder / 'settings.yaml').write_text(text)
    return IdentifySettings.from_yaml(folder / 'settings.yaml')


def pushes(rng, t, frames, share, newtons):
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
        force *= rng.uniform(*newtons) / np.linalg.norm(force)
        done = (t[now] - start) / length
        rise = np.minimum(1.0, 8.0 * np.minimum(done, 1.0 - done))
        wrench = np.append(force, np.cross(rng.uniform(-0.1, 0.1, 3), force))
        wrenches[frames[rng.integers(len(frames))]][now] += rise[:, None] * wrench
        bad |= now
    return wrenches, bad


def panda(folder, reject):
    """Return the settings of a real arm."""
    given = yaml.safe_load((ROOT / 'config' / 'identify_panda.yaml').read_text())
    given['rows']['reject'] = reject
    return settings_of(folder, yaml.safe_dump(given))


PANDA = DATA / 'panda_excitation' / 'log.npz', DATA / 'models' / 'panda_wrist_ft.urdf'


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
def test_pushes_on_a_real_log_are_rejected(tmp_path, run):
    """Friction, filters and the description are what they are; only the pushes are made up."""
    log, urdf = PANDA[0], PANDA[1].read_text()
    plain = panda(tmp_path, 0)
    reader = LogReader(urdf, plain, (), LogSlice.parse(log), no_progress)
    raw = reader.read(LogSlice.parse(log)).samples
    still = np.zeros_like(raw.positions)
    still = replace(raw, velocities=still, accelerations=still, efforts=still)
    t = (raw.stamp_ns - raw.stamp_ns[0]) * 1e-9
    frames = [f'panda_link{k}' for k in (4, 5, 6, 7)]
    wrenches, bad = pushes(np.random.default_rng(2), t, frames, 0.4, (10.0, 50.0))
    extra = efforts_of(reader.robot, still, wrenches) - efforts_of(reader.robot, still)
    with np.load(log) as columns:
        np.savez(tmp_path / 'pushed.npz', **dict(columns) | {'torque': columns['torque'] + extra})
    clean = whole_job(urdf, [log], plain).fit.blocks[0]
    found = run(tmp_path / 'pushed.npz', urdf, panda(tmp_path, 4))
    assert 'disturbed' in {one.code for one in found.findings}
    seconds = found.seconds - raw.stamp_ns[0] * 1e-9
    disturbed = np.interp(seconds, t, bad.astype(float)) > 0.5
    assert found.at[disturbed].mean() > FOUND
    assert found.at[~disturbed].mean() < LOST

    def residual(x):
        left, size = clean.evidence.residuals(x), clean.evidence.signals()
        return np.sqrt(sum(v**2 for v in left.values()) / sum(v**2 for v in size.values()))

    spoilt = run(tmp_path / 'pushed.npz', urdf, plain)
    # Of the undisturbed log: what is left of it, of which half may not be seen.
    assert residual(found.x) < 1.2 * residual(clean.answer.x)
    assert residual(spoilt.x) > 4.0 * residual(clean.answer.x)
