# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Outliers in time: the least trimmed fit, and samples with unknown wrenches.

In the end ``rows.reject`` through ``identify``: pushes on a real arm that no log states.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from simulated_arm import efforts_of

from inertial_estimation import Information, identify
from inertial_estimation.identification.outliers import (
    WindowEquations,
    least_trimmed,
)
from inertial_estimation.logs import reduction
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.reduction import LogReader

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / 'shared' / 'data'
# What a push leaves within the limit is harmless: starts and ends of weak ones.
FOUND = 0.98
# Of clean samples, margins of 0.2 s and more on both sides of as many pushes of a second or two.
LOST = 0.25
UNKNOWNS, WINDOWS, EQUATIONS = 8, 60, 20
NOISE = {'fine': 0.05, 'coarse': 2.0}
# Half of 1200 equations of the finer kind for 8 unknowns: five deviations of an estimate.
CLOSE = 5 * NOISE['fine'] / np.sqrt(WINDOWS * EQUATIONS / 2)
# Of the median window, each of 20 equations.
SPREAD = 0.15


def regressors(rng, levers=1.0):
    """Return the window of each equation, and regressors."""
    window = np.repeat(np.arange(WINDOWS), EQUATIONS)
    return window, rng.normal(size=(len(window), UNKNOWNS)) * np.resize(levers, WINDOWS)[
        window, None
    ]


def prior_of(x, weight):
    return Information.of(weight * np.eye(UNKNOWNS), weight * x)


@pytest.mark.parametrize('share', [0.0, 0.2, 0.45])
@pytest.mark.parametrize('off', [0.1, 3.0])
@pytest.mark.parametrize('lever', [1.0, 4.0])
def test_cleaner_half_is_found(rng, share, off, lever):
    """
    All disturbed windows follow another truth, the worst case, and have larger regressors.

    A fit to all windows then agrees with them and not with the clean ones.
    """
    truth, pushed = rng.normal(size=(2, UNKNOWNS))
    bad = np.zeros(WINDOWS, dtype=bool)
    while bad.mean() < share:
        start = rng.integers(WINDOWS)
        bad[start : start + min(3, round(share * WINDOWS) - bad.sum())] = True
    kinds = {}
    for kind, noise in NOISE.items():
        window, Y = regressors(rng, np.where(bad, lever, 1.0))
        y = Y @ truth + noise * rng.normal(size=len(window)) + bad[window] * (Y @ pushed)
        kinds[kind] = WindowEquations(np.column_stack([Y, y]), window)
    wrong = truth + off * rng.normal(size=UNKNOWNS)
    prior = prior_of(wrong, 1e-3)
    found = least_trimmed(kinds, WINDOWS, prior, wrong)
    assert not (found.kept & bad).any()
    assert found.kept.sum() == WINDOWS // 2
    np.testing.assert_allclose(found.x, truth, atol=CLOSE)
    if share < 0.3:
        # Beyond that the median window is among the worst of the clean ones.
        assert found.noise == pytest.approx(NOISE, rel=SPREAD)
    # Windows without equations do not count.
    moved = {kind: WindowEquations(one.system, 2 * one.window) for kind, one in kinds.items()}
    other = least_trimmed(moved, 2 * WINDOWS, prior, wrong)
    np.testing.assert_allclose(other.x, found.x, atol=1e-12)


@pytest.mark.parametrize('nearer', [0, 1])
def test_prior_decides_between_equal_halves(rng, nearer):
    truths, (window, Y) = rng.normal(size=(2, UNKNOWNS)), regressors(rng)
    y = np.einsum('ni,ni->n', Y, truths[window % 2]) + NOISE['fine'] * rng.normal(size=len(window))
    kinds = {'one': WindowEquations(np.column_stack([Y, y]), window)}
    found = least_trimmed(kinds, WINDOWS, prior_of(truths[nearer], 30.0), truths[nearer])
    np.testing.assert_allclose(found.x, truths[nearer], atol=CLOSE)


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
