# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What speaks against a matrix from added masses: wrong orders, units and signs, and nothing else.

Not covered: the command, in `test_calibrate_in_situ`.
"""

import re
from itertools import permutations

import numpy as np
import pytest
from hanging_body import CENTRE, MATRIX, counts, data_sets, wrenches
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.added_mass_rows import AddedMassRows
from inertial_estimation.calibration.added_masses import AddedMass, matrix_from_added_masses
from inertial_estimation.calibration.former_matrix import change, prior_matrix
from inertial_estimation.calibration.in_situ_steps import matrix_step, matrix_warnings
from inertial_estimation.calibration.matrix_doubts import LASTING, matrix_doubts, prior_warnings
from inertial_estimation.calibration.weighing import Weighed

NONE, FAR_OUT, SIDE = (0.0, (0.0, 0.0, 0.0)), (0.51, (0.3, 0.0, 0.05)), (0.51, (0.0, 0.2, 0.05))
EQUAL = (NONE, FAR_OUT, SIDE)
DIFFERENT = (NONE, (0.5, FAR_OUT[1]), (0.7, SIDE[1]))
PLAY = 0.005
"""Half of the play of data sheets, over the largest force or moment of the swing."""
S_R_A = Rotation.random(random_state=4).as_matrix()


def off(rng, size=0.1):
    """Return a workshop matrix that is off as those of real legs, moments over 0.1 m."""
    scale = np.repeat([1.0, 0.1], 3)
    return (np.eye(6) + scale[:, None] * size * rng.uniform(-1, 1, (6, 6)) / scale) @ MATRIX


def with_loads_of(sets, order):
    """Return data sets with loads in another order."""
    return [one._replace(mass=sets[k].mass, centre=sets[k].centre)
            for one, k in zip(sets, order, strict=True)]  # fmt: skip


def stated(order):
    """Return what is said of an order: which log has which load, so that it is right again."""
    back = np.argsort(order)
    return [f'{k + 1} that of {back[k] + 1}' for k in range(len(order)) if back[k] != k]


@pytest.mark.parametrize('added', [EQUAL, DIFFERENT])
def test_every_wrong_order_is_told_with_the_right_one(rng, added):
    sets, former = data_sets(rng, added, noise=1.0, n=300), off(rng)
    for order in permutations(range(3)):
        found = matrix_from_added_masses(
            with_loads_of(sets, order), workshop=former, rotation=np.eye(3)
        )
        said = matrix_doubts(found, former)
        if order == (0, 1, 2):
            assert not said
        else:
            assert len(said) == 1 and 'wrong order' in said[0]
            assert f'({", ".join(stated(order))})' in said[0]


def test_without_a_former_matrix_what_is_left_tells_an_order(rng):
    sets = data_sets(rng, DIFFERENT, noise=1.0, n=300)
    found = matrix_from_added_masses(with_loads_of(sets, (0, 2, 1)))
    (said,) = matrix_doubts(found)
    assert '(2 that of 3, 3 that of 2)' in said


def test_two_equal_masses_in_the_wrong_order_are_a_mirrored_body(rng):
    """Nothing is left of the equations, so that a former matrix alone tells."""
    found = matrix_from_added_masses(with_loads_of(data_sets(rng, EQUAL), (0, 2, 1)))
    mirrored = np.array(FAR_OUT[1]) + SIDE[1] - CENTRE
    # Round-off through a matrix of condition 200.
    np.testing.assert_allclose(found.body.centre, mirrored, atol=1e-8)
    ratio = found.matrix @ np.linalg.inv(MATRIX)
    np.testing.assert_allclose(ratio[:3], np.eye(6)[:3], atol=1e-6)
    np.testing.assert_allclose(ratio[3:, 3:], -np.eye(3), atol=1e-8)
    assert not matrix_doubts(found)
    assert 'wrong order' in matrix_doubts(found, MATRIX)[0]
    # Nor does anything tell that the right order is right.
    right = matrix_from_added_masses(data_sets(rng, EQUAL))
    for one in (found, right):
        (said,) = prior_warnings(one)
        assert '(2 that of 3, 3 that of 2)' in said and not prior_warnings(one, MATRIX)
        assert said in matrix_step(one, '2026-11-22').provenance[0].notes
    assert not prior_warnings(matrix_from_added_masses(data_sets(rng, DIFFERENT, noise=1.0)))


@pytest.mark.parametrize('rotation', [S_R_A, None])
def test_a_rotation_that_nobody_told_is_no_doubt(rng, rotation):
    sets, former = data_sets(rng, EQUAL, noise=1.0, n=300), off(rng)
    turned = [one._replace(accelerations=one.accelerations @ S_R_A) for one in sets]
    if rotation is None:
        turned = [one._replace(centre=S_R_A.T @ one.centre) for one in turned]
    found = matrix_from_added_masses(turned, rotation=rotation)
    assert not matrix_doubts(found, former)
    wrong = matrix_from_added_masses(with_loads_of(turned, (0, 2, 1)), rotation=rotation)
    assert 'wrong order' in matrix_doubts(wrong, former)[0]


@pytest.mark.parametrize(
    ('change', 'why', 'loads'),
    [
        ({'mass': 1000.0}, 'forces are 1e+03 times', 'kilograms'),
        ({'centre': 1000.0}, 'moments are 1e+03 times', 'metres'),
        ({'mass': 1e-3}, 'forces are 0.001 times', None),
    ],
)
def test_another_unit_leaves_nothing_and_is_told(rng, change, why, loads):
    sets = [
        one._replace(**{name: getattr(one, name) * times for name, times in change.items()})
        for one in data_sets(rng, EQUAL)
    ]
    found = matrix_from_added_masses(sets, rotation=np.eye(3))
    assert (found.residuals < 1.0).all()
    (said,) = matrix_doubts(found, MATRIX)
    assert said.startswith(why)
    # Without a former matrix the size of loads alone tells.
    told = matrix_doubts(found)
    assert len(told) == (2 if loads else 0) and all(loads in text for text in told)


def test_heavy_loads_are_no_doubt_beside_a_matrix_that_holds(rng):
    sets = data_sets(rng, [NONE, (60.0, FAR_OUT[1]), (60.0, SIDE[1])])
    found = matrix_from_added_masses(sets, rotation=np.eye(3))
    assert not matrix_doubts(found, MATRIX)
    assert sum('60 kg' in text for text in matrix_warnings(found, MATRIX)) == 2
    assert sum('60 kg' in text for text in matrix_doubts(found)) == 2


def test_readings_of_the_other_side_are_told(rng):
    found = matrix_from_added_masses(data_sets(rng, EQUAL), direction=-1, rotation=np.eye(3))
    assert 'about the opposite' in matrix_doubts(found, MATRIX)[0]


def test_a_former_matrix_of_another_sensor_is_told(rng):
    found = matrix_from_added_masses(data_sets(rng, EQUAL), rotation=np.eye(3))
    assert 'of another sensor' in matrix_doubts(found, MATRIX[:, ::-1])[0]


def with_play(wanted, play):
    """Return what a sensor reads that follows only as far as its play."""
    read, at = np.empty_like(wanted), wanted[0]
    for k, one in enumerate(wanted):
        at = read[k] = np.clip(at, one - play, one + play)
    return read


@pytest.mark.parametrize(
    'centre', [(0.2, 0.1, 0.05), (0.25, 0.0, 0.05), (0.3, 0.05, 0.05), (0.3, 0.0, 0.1)]
)
@pytest.mark.parametrize('former', [None, MATRIX])
def test_a_centre_that_is_not_as_stated_contradicts_the_others(rng, centre, former):
    sets = data_sets(rng, EQUAL, noise=1.0)
    assert not matrix_doubts(matrix_from_added_masses(sets, rotation=np.eye(3)), former)
    sets[1] = sets[1]._replace(centre=np.array(centre))
    found = matrix_from_added_masses(sets, rotation=np.eye(3))
    assert np.linalg.norm(found.matrix @ np.linalg.inv(MATRIX) - np.eye(6), 2) > 0.1
    said = matrix_doubts(found, former)
    assert 'contradict each other' in said[0] and 'times the noise' in said[0]


def sets_with_play(play):
    """Return data sets of a body that turns, with noise."""
    sets = []
    turns = np.linspace(0.0, 6.0 * np.pi, 3000)
    for k, (mass, centre) in enumerate(EQUAL):
        tilt = turns * 0.37 + k
        g = 9.80665 * np.column_stack(
            [np.sin(tilt) * np.cos(turns), np.sin(tilt) * np.sin(turns), np.cos(tilt)]
        )
        wanted = wrenches(g, mass, centre)
        largest = np.abs(wanted).reshape(-1, 2, 3).max(axis=(0, 2))
        read = with_play(wanted, play * np.repeat(largest, 3))
        sets.append(AddedMass(str(k), counts(read), -g, mass, np.array(centre)))
    return sets


def left_of(found):
    """Return what is left, as a share of what was added and over what lasts in a data set."""
    rows = AddedMassRows.of(
        [one.slopes for one in found.found],
        [Weighed(one.mass, one.mass * one.centre) for one in found.data_sets],
        found.rotation, found.direction,
    )  # fmt: skip
    weight = rows.weight(found.matrix)
    return (
        rows.share_left(found.matrix, found.body, 0.1),
        rows.over_lasting(weight, found.matrix, found.body),
    )


@pytest.mark.parametrize('play', [0.0015, PLAY, 2 * PLAY])
def test_readings_with_play_leave_far_more_than_noise_and_are_no_contradiction(play):
    found = matrix_from_added_masses(sets_with_play(play), rotation=np.eye(3), workshop=MATRIX)
    assert found.residuals.max() > 5.0
    # Play comes and goes within a data set.
    assert left_of(found)[1] < LASTING / 2.0
    if play <= PLAY:
        assert not matrix_doubts(found, MATRIX) and not matrix_doubts(found)


@pytest.mark.parametrize('n', [300, 3000])
def test_what_is_left_is_noise_if_all_is_as_stated(rng, n):
    over = [
        left_of(matrix_from_added_masses(data_sets(rng, EQUAL, noise=1.0, n=n)))[1]
        for _ in range(20)
    ]
    # The root mean square of 14 numbers; blocks of a log tell it less well.
    assert 0.8 < np.sqrt(np.mean(np.square(over))) < 1.4 and max(over) < 2.5


@pytest.mark.parametrize('off', [{'mass': 0.56}, {'mass': 0.46}, {'centre': (0.27, 0.0, 0.05)}])
def test_what_lasts_over_all_of_a_data_set_is_no_play(rng, off):
    """A tenth of a mass, or 3 cm, leave no more than play does."""
    sets = data_sets(rng, EQUAL, noise=1.0, n=3000)
    sets[1] = sets[1]._replace(**{key: np.array(value) for key, value in off.items()})
    found = matrix_from_added_masses(sets, rotation=np.eye(3))
    assert change(found, MATRIX).largest > 0.09
    share, over = left_of(found)
    assert 0.03 < share < 0.07 and over > LASTING
    (said,) = matrix_doubts(found, MATRIX)
    assert 'contradict each other' in said and 'play' not in said


def test_the_unit_of_readings_does_not_matter_to_what_is_left(rng):
    sets = data_sets(rng, EQUAL, noise=1.0)
    sets[1] = sets[1]._replace(centre=np.array([0.25, 0.0, 0.05]))
    counted = [one._replace(raw=1e4 * one.raw) for one in sets]
    said = [matrix_doubts(matrix_from_added_masses(one)) for one in (sets, counted)]
    assert said[0] == said[1] != ()


MISTAKES = {
    'exchanged': (lambda sets: with_loads_of(sets, (0, 2, 1)), 'wrong order.* off '),
    'millimetres': (
        lambda sets: [one._replace(centre=1e3 * one.centre) for one in sets],
        r'moments are [.\d+e]+ times those of .*metres',
    ),
    'opposite centres': (
        lambda sets: [one._replace(centre=-one.centre) for one in sets],
        'differs from .* by 2[.0-9]* times',
    ),
    'pounds': (
        lambda sets: [one._replace(mass=one.mass / 0.4536) for one in sets],
        r'differs from .* by 1\.[1-4] times',
    ),
    'direction': (lambda sets: sets, 'the opposite of .* other side'),
}  # fmt: skip


@pytest.mark.parametrize('former', [None, np.eye(6)])
@pytest.mark.parametrize('rotation', [np.eye(3), None])
@pytest.mark.parametrize('mistake', MISTAKES)
def test_readings_that_are_wrenches_are_held_against_the_identity(rng, mistake, rotation, former):
    # Off as a sensor that is calibrated badly, which is no mistake.
    gains = off(rng, 0.03) @ np.linalg.inv(MATRIX)
    sets = data_sets(rng, EQUAL, noise=1.0, matrix=gains)
    right = matrix_from_added_masses(sets, rotation=rotation)
    assert not matrix_doubts(right, former)
    np.testing.assert_array_equal(prior_matrix(right), np.eye(6))
    make, why = MISTAKES[mistake]
    direction = -1 if mistake == 'direction' else 1
    found = matrix_from_added_masses(make(sets), rotation=rotation, direction=direction)
    (said,) = matrix_doubts(found, former)
    assert re.search(why, said), said
    assert ('the former matrix' in said) == (former is not None)


@pytest.mark.parametrize('rotation', [np.eye(3), None])
def test_gauges_in_any_unit_are_no_wrenches(rng, rotation):
    """No factor makes them such, but an identity that somebody gave is believed."""
    sets = data_sets(rng, EQUAL, noise=1.0)
    for unit in np.logspace(-3, 1, 9):
        other = [one._replace(raw=unit * one.raw) for one in sets]
        found = matrix_from_added_masses(other, rotation=rotation)
        assert prior_matrix(found) is None and not matrix_doubts(found)
    (said,) = matrix_doubts(matrix_from_added_masses(sets, rotation=rotation), np.eye(6))
    assert 'times those of the former matrix' in said


@pytest.mark.parametrize('share', [0.1, 0.5])
def test_what_a_matrix_changes_is_told(rng, share):
    """All masses off by as much leave nothing."""
    sets = [
        one._replace(mass=(1.0 + share) * one.mass) for one in data_sets(rng, EQUAL, noise=1.0)
    ]
    found = matrix_from_added_masses(sets, rotation=np.eye(3))
    by = change(found, MATRIX)
    # Noise of 400 samples leaves a hundredth.
    assert by == pytest.approx((share, 1.0 + share, 1.0 + share), abs=0.02)
    assert not matrix_doubts(found, MATRIX)
    said = ' '.join(matrix_warnings(found, MATRIX))
    assert ('differs from the former matrix by up to 0.5' in said) == (share > 0.15)
