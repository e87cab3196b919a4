# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Pictures of directions that were reached: what they count, and that an SVG is one.

Not covered: how they look.
"""

from xml.etree import ElementTree

import numpy as np
from hanging_body import GRAVITY
from turned_body import AROUND, TurnedBody

from inertial_estimation.calibration.collection import Collection
from inertial_estimation.calibration.coverage import DIRECTIONS
from inertial_estimation.calibration.coverage_pictures import (
    ASKED,
    DOUBTED,
    MISSING,
    REACHED,
    USED,
    _flat,
    coverage_lines,
    coverage_svg,
)


def circles(text, colour):
    root = ElementTree.fromstring(text)
    return [one for one in root if one.tag.endswith('circle') and one.get('fill') == colour]


def test_characters_show_every_direction_once(rng):
    found, body = Collection(), TurnedBody(rng)
    assert ''.join(coverage_lines(found.coverage())).count(MISSING) == 25
    body.go_through(found, AROUND[:5])
    lines = coverage_lines(found.coverage())
    said = ''.join(lines)
    assert len({len(line) for line in lines}) == 1
    assert (said.count(REACHED), said.count(ASKED), said.count(MISSING)) == (5, 3, 18)


def test_a_mark_stands_where_its_direction_is(rng):
    found, body = Collection(), TurnedBody(rng)
    body.hold(found, GRAVITY * np.array([0.0, -1.0, -1.0]) / np.sqrt(2), 0.5)
    lines = coverage_lines(found.coverage())
    assert [REACHED in line for line in lines] == [False, False, False, False, True]
    field = lines[-1].index(REACHED) // 20
    assert field == 2 and lines[-1].index(REACHED) == lines[1].index('0', 40)


def test_an_svg_holds_every_moment(rng):
    found, body = Collection(), TurnedBody(rng)
    body.go_through(found, AROUND[:26])
    body.touch = np.array([5.0, 0.0, 0.0, 0.0, 0.5, 0.0])
    body.go_through(found, AROUND[:2])
    text = coverage_svg({'<none> & "more"': found, 'empty': Collection()})
    agree = found.judge()
    assert len(circles(text, USED)) == agree.sum()
    assert len(circles(text, DOUBTED)) == (~agree).sum() > 0
    assert '&lt;none&gt; &amp;' in text
    assert ElementTree.fromstring(coverage_svg({})).tag.endswith('svg')


def test_areas_of_the_sphere_stay_areas_of_the_disc(rng):
    z = rng.uniform(0.0, 1.0, 20_000)
    angle = rng.uniform(0.0, 2 * np.pi, len(z))
    across = np.sqrt(1.0 - z**2)
    flat = _flat(np.column_stack([across * np.cos(angle), across * np.sin(angle), z]))
    # Even on the sphere is even on the disc, whose inner half has the radius sqrt(1/2); 5 sigma.
    share = (np.linalg.norm(flat, axis=1) < np.sqrt(0.5)).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(len(z))
    np.testing.assert_allclose(_flat(DIRECTIONS[[NAME_Z]]), 0.0, atol=1e-15)


NAME_Z = int(np.argmax(DIRECTIONS[:, 2]))
