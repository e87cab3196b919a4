# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification from efforts on logs of real arms, against all rows at once.

Not covered: whether the noise that it tells for itself is a good one; how well the bodies predict
other logs, which is in test_real_robots.py.
"""

from pathlib import Path

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.memory import whitened
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import prepare_with
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.log_reader import open_logs

CONFIG = Path(__file__).parents[1] / 'config'
NOISE = 0.1
"""Of every effort [Nm]: the same for both ways, whatever it is."""
SAME = 1e-8
"""Merging in parts and at once differ by round-off, over the size of what is compared."""
ARMS = {
    'panda': (
        'identify_panda.yaml',
        'models/panda_wrist_ft.urdf',
        'panda_excitation/log.npz@0:11',
    ),
    'ur10e': ('identify_ur10e.yaml', 'ur10e/ur10e.urdf', 'ur10e/fourier_30s_12h.npz@6.35:35.1'),
}


@pytest.fixture(scope='module', params=ARMS)
def arm(request):
    """Return robot, prepared log and choice of rows."""
    config, urdf, log = ARMS[request.param]
    if not (SHARED / 'data' / log.partition('@')[0]).exists():
        pytest.skip(f'needs {log} of the shared data')
    settings = IdentifySettings.from_yaml(CONFIG / config)
    stretch = LogSlice.parse(SHARED / 'data' / log)
    text = (SHARED / 'data' / urdf).read_text()
    reader = open_logs(text, settings, (), stretch, lambda *_: None)
    raw = reader.read(stretch)
    prepared, _ = prepare_with(raw.samples, raw.external, settings.preparation)
    return reader.robot, prepared.samples, settings.choice(reader.robot)


def recursive(arm, **others):
    robot, samples, choice = arm
    others.setdefault('noise', {f'effort {joint}': NOISE for joint in choice.efforts})
    identifier = RecursiveIdentifier(robot, RecursionSettings(choice, **others))
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    return identifier


def test_without_forgetting_it_is_the_batch(arm):
    _, samples, _ = arm
    identifier = recursive(arm, warm_up=1.0)
    (known,), (evidence,) = identifier.memories, gather(identifier.builder, samples)
    batch = whitened(evidence, known.noise)
    assert known.information.count == batch.count > 10_000
    found, x = identifier.refit(), next(iter(identifier.found.values()))
    merged, known.information = known.information, batch
    at_once, x_at_once = identifier.refit(), next(iter(identifier.found.values()))
    assert found.refitted == at_once.refitted == (known.block.submodel.name,)
    scale = np.abs(at_once.parameters).max()
    np.testing.assert_allclose(found.parameters, at_once.parameters, atol=SAME * scale)
    # Friction and drives as well.
    np.testing.assert_allclose(x, x_at_once, atol=SAME * np.abs(x_at_once).max())
    # And what rows say of any unknowns, near or far.
    for guess in np.random.default_rng(0).normal(size=(20, batch.n)):
        wanted = batch.squared_residual(x + guess)
        assert merged.squared_residual(x + guess) == pytest.approx(wanted, rel=SAME)


def test_rows_that_fade_say_less(arm):
    whole, faded = recursive(arm, warm_up=1.0), recursive(arm, warm_up=1.0, half_life=2.0)
    assert faded.memories[0].information.count < 0.5 * whole.memories[0].information.count
    assert faded.memories[0].seconds == pytest.approx(whole.memories[0].seconds)


def test_with_a_gate_nothing_passes_for_a_touch(arm):
    """Robots that nobody touched: what friction hides must not look like a push all the time."""
    identifier = recursive(arm, warm_up=3.0, gate=4.0, noise={})
    _, samples, _ = arm
    span = 1e-9 * (samples.stamp_ns[-1] - samples.stamp_ns[0])
    # The last stretch waits for the one after it.
    assert identifier.memories[0].seconds > span - 2.5
    assert identifier.refit().least_margin > 0.0
