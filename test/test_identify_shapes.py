# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``identify --method mass_points``: where each link's points come from."""

import numpy as np
import pytest
from identify_command import report, run
from simulated_arm import arm, arm_urdf, efforts_of, moving

RATE = 100.0
# Central differences of motions below 1 Hz at this rate are off by this share of the efforts.
DIFFERENCES = 1e-2
# Centres inside boxes, against the round-off of the solver [m].
INSIDE = 1e-6
COLLISION = (
    '<collision><origin xyz="0.1 0 0"/><geometry><box size="0.4 0.2 0.2"/></geometry></collision>'
)
VISUAL = '<visual><geometry><box size="0.6 0.3 0.2"/></geometry></visual>'
MESH = '<visual><geometry><mesh filename="package://arm/bare.stl"/></geometry></visual>'
BOX = [[-0.2, -0.1, -0.1], [0.3, 0.1, 0.2]]
SETTINGS = f"""
robot: {{fixed_link: base}}
log: {{time: t, joints: [j_drawn, j_seen, j_told, j_bare], positions: q, efforts: e}}
preparation: {{cutoff: 0}}
rows: {{efforts: all}}
shapes: {{boxes: {{told: {BOX}}}, points: 4, mesh_folders: [parts]}}
"""


def test_points_come_from_the_best_shape_of_each_link(tmp_path, rng):
    pytest.importorskip('coal')
    samples = moving(rng, 8.0, RATE)
    efforts = efforts_of(arm(), samples)
    np.savez(tmp_path / 'log.npz', t=samples.stamp_ns * 1e-9, q=samples.positions, e=efforts)
    drawn = {'drawn': COLLISION + VISUAL, 'seen': VISUAL, 'bare': MESH}
    (tmp_path / 'robot.urdf').write_text(arm_urdf((2.5, 1.2, 1.3, 0.6), drawn))
    (tmp_path / 'logs.yaml').write_text(SETTINGS)
    corners = np.array(
        [[-0.1, -0.2, -0.1], [0.3, -0.2, -0.1], [-0.1, 0.2, -0.1], [-0.1, -0.2, 0.1]]
    )
    facets = ''.join(
        'facet normal 0 0 0 outer loop '
        + ' '.join(f'vertex {x} {y} {z}' for x, y, z in corners[[*face]])
        + ' endloop endfacet\n'
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    (tmp_path / 'parts' / 'arm').mkdir(parents=True)
    (tmp_path / 'parts' / 'arm' / 'bare.stl').write_text(f'solid a\n{facets}endsolid a\n')
    assert run(tmp_path, tmp_path / 'log.npz', '--method', 'mass_points') == 0
    found = report(tmp_path)
    points = found['points']
    sources = [one['source'] for one in points.values()]
    assert sources == ['cuboid', 'collision', 'visual', 'config', 'visual']
    assert {one['count'] for one in points.values()} == {4**3}
    np.testing.assert_allclose(points['drawn']['center'], [0.1, 0, 0])
    np.testing.assert_allclose(points['told']['center'], np.mean(BOX, axis=0))
    for link, sizes in (
        ('drawn', [0.2, 0.1, 0.1]), ('seen', [0.3, 0.15, 0.1]), ('bare', [0.2, 0.2, 0.1])
    ):  # fmt: skip
        np.testing.assert_allclose(points[link]['half_lengths'], sizes, rtol=1e-6)
    for link in ('drawn', 'seen', 'told', 'bare'):
        body, box = found['links'][link], points[link]
        center = np.array([body[f'mc_{axis}'] for axis in 'xyz']) / body['m']
        off = np.abs(center - box['center'])
        assert (off <= np.array(box['half_lengths']) + INSIDE).all(), link
    for link, row in found['submodels'][0]['rows'].items():
        assert row['fit'] < DIFFERENCES * row['signal'], link
