# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Methods on logs of real arms: the default predicts as well as any other."""

import json
from dataclasses import replace

import numpy as np
import pytest
from shared_data import SHARED

from bench.arms import ARMS, CONFIGS, mounted
from inertial_estimation import IdentifySettings, identify
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.problem import Grade
from inertial_estimation.identification.unknowns import Term

DATA = SHARED / 'data'
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')
# What another part of the log, or another filter, changes in a held-out error.
NOISE = 1.03
METHODS = {
    'entropic': ('entropic', {}),
    'least squares': ('least_squares', {}),
    'LMI, no prior': ('semidefinite', {'prior': 'none'}),
    'LMI, Euclidean': ('semidefinite', {'prior': 'euclidean'}),
    'LMI, pullback': ('semidefinite', {'prior': 'pullback'}),
}
# Rank; held-out residual over effort as published; least squares' own, reached elsewhere [%].
PUBLISHED = {
    'Panda': (64, 1.354, 1.2), 'UR10e': (58, 4.48, 4.9), 'TX40': (61, 5.326, 4.7),
    'TIAGo': (73, 0.784, 1.03),
}  # fmt: skip


def error(evidence, x):
    """Return the root of the squares of all residuals over those of efforts [%]."""
    squares = np.zeros(2)
    residuals, signals = evidence.residuals(x), evidence.signals(x)
    for kind, part in evidence.kinds.items():
        if part.count:
            squares += part.count * np.square([residuals[kind], signals[kind]])
    return 100.0 * float(np.sqrt(squares[0] / squares[1]))


@pytest.mark.parametrize('name', ARMS)
def test_default_predicts_as_well_as_the_best_of_the_others(name):
    config, urdf, logs, unseen = ARMS[name]
    settings = IdentifySettings.from_yaml(CONFIGS / f'identify_{config}.yaml')
    found = identify(
        mounted((DATA / urdf).read_text()), [DATA / log for log in logs], settings,
        validate=[DATA / log for log in unseen],
    )  # fmt: skip
    rank, published, fitted = PUBLISHED[name]
    (block,), (known,) = found.fit.blocks, found.determined.values()
    assert block.answer.rank == known.possible == known.seen.rank == rank
    assert found.fit.consistent and block.answer.grade is Grade.OPTIMAL
    # No false alarm.
    codes = {one.code for one in found.findings}
    assert codes <= {'inertia', 'indefinite'} | ({'scale'} if name == 'UR10e' else set())
    answers = {'prior': block.before}
    for method, (solver, options) in METHODS.items():
        (by_method,) = fit(found.fit.robot, [block.evidence], solver, options).blocks
        answers[method] = by_method.answer.x
    errors = {method: error(found.validation[0], x) for method, x in answers.items()}
    assert errors['entropic'] == pytest.approx(published, rel=1e-3)
    assert errors['entropic'] <= NOISE * min(errors.values())
    assert errors['entropic'] < min(errors['prior'], errors['least squares'])
    assert error(block.evidence, answers['least squares']) <= fitted


def test_gains_from_a_payload_predict_better_than_published_ones():
    settings = IdentifySettings.from_yaml(CONFIGS / 'identify_ur10e_payload.yaml')
    urdf, logs = (DATA / 'ur10e/ur10e.urdf').read_text(), DATA / 'ur10e/fourier_50s_14h'
    unloaded, loaded = f'{logs}.npz', f'{logs}_payload.npz'
    (payload,), meta = settings.payloads, json.loads((DATA / 'ur10e/meta.json').read_text())

    def with_gains(gains):
        efforts = replace(settings.log.efforts, scale=np.array(gains))
        log = replace(settings.log, efforts=efforts)
        return replace(settings, log=log, rows=replace(settings.rows, gains=()))

    def held_out(settings):
        found = identify(urdf, [unloaded, f'{loaded}@:27'], settings, validate=[f'{loaded}@27:'])
        return error(found.validation[0], found.fit.blocks[0].answer.x)

    def mass(settings):
        """Return the identified mass of the payload, and its deviation."""
        unknown = replace(payload, mass=None)
        found = identify(urdf, [unloaded, loaded], replace(settings, payloads=(unknown,)))
        name = f'{payload.name}.m'
        return found.fit.blocks[0].answer.extras[name], found.deviations[name]

    answer = identify(urdf, [unloaded, loaded], settings).fit.blocks[0].answer
    own = with_gains(
        [value for extra, value in zip(answer.unknowns.extras, answer.extras.values())
         if extra.term is Term.DRIVE_GAIN]
    )  # fmt: skip
    value, deviation = mass(own)
    # These gains come from that mass.
    assert abs(value - payload.mass) < 2 * deviation
    for key in ('drive_gains_literature', 'drive_gains_peer'):
        published = with_gains([float(gain) for gain in meta[key]])
        assert held_out(settings) < held_out(published)
        # By several deviations: the mass scales with the gains.
        value, deviation = mass(published)
        assert abs(value - payload.mass) > 10 * deviation
