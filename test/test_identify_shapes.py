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
DRAWN = {'drawn': COLLISION + VISUAL, 'seen': VISUAL}
BOX = [[-0.2, -0.1, -0.1], [0.3, 0.1, 0.2]]
SETTINGS = """
robot: {fixed_link: base}
log: {time: t, joints: [j_drawn, j_seen, j_told, j_bare], positions: q, efforts: e}
preparation: {cutoff: 0}
rows: {efforts: all}
"""


@pytest.fixture
def folder(tmp_path, rng):
    """Write a log of an arm that moves, its description with other masses, and settings."""
    samples = moving(rng, 8.0, RATE)
    efforts = efforts_of(arm(), samples)
    np.savez(tmp_path / 'log.npz', t=samples.stamp_ns * 1e-9, q=samples.positions, e=efforts)
    (tmp_path / 'robot.urdf').write_text(arm_urdf((2.5, 1.2, 1.3, 0.6), DRAWN))
    return tmp_path


def points_of(folder, shapes):
    """Return the report of a run with a group ``shapes``, and its points."""
    (folder / 'logs.yaml').write_text(f'{SETTINGS}shapes: {shapes}\n')
    assert run(folder, folder / 'log.npz', '--method', 'mass_points') == 0
    found = report(folder)
    return found, found['points']


def test_points_come_from_the_best_shape_of_each_link(folder, capsys):
    found, points = points_of(folder, f'{{boxes: {{told: {BOX}}}, points: 4}}')
    sources = {link: one['source'] for link, one in points.items()}
    assert list(sources.values()) == ['cuboid', 'collision', 'visual', 'config', 'cuboid']
    assert {one['count'] for one in points.values()} == {4**3}
    np.testing.assert_allclose(points['drawn']['center'], [0.1, 0, 0])
    np.testing.assert_allclose(points['drawn']['half_lengths'], [0.2, 0.1, 0.1])
    np.testing.assert_allclose(points['seen']['half_lengths'], [0.3, 0.15, 0.1])
    np.testing.assert_allclose(points['told']['center'], np.mean(BOX, axis=0))
    for link in ('drawn', 'seen', 'told'):
        body, box = found['links'][link], points[link]
        center = np.array([body[f'mc_{axis}'] for axis in 'xyz']) / body['m']
        off = np.abs(center - box['center'])
        assert (off <= np.array(box['half_lengths']) + INSIDE).all(), link
    for row in found['submodels'][0]['rows'].values():
        assert row['fit'] < DIFFERENCES * row['signal']


def test_meshes_are_found_in_folders_of_the_settings(folder):
    pytest.importorskip('coal')
    corners = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 1]])
    facets = ''.join(
        'facet normal 0 0 0 outer loop '
        + ' '.join(f'vertex {x} {y} {z}' for x, y, z in corners[[*face]])
        + ' endloop endfacet\n'
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    (folder / 'parts' / 'arm').mkdir(parents=True)
    (folder / 'parts' / 'arm' / 'bare.stl').write_text(f'solid a\n{facets}endsolid a\n')
    mesh = '<visual><geometry><mesh filename="package://arm/bare.stl"/></geometry></visual>'
    (folder / 'robot.urdf').write_text(arm_urdf(drawn=DRAWN | {'bare': mesh}))
    bare = points_of(folder, '{mesh_folders: [parts]}')[1]['bare']
    assert bare['source'] == 'visual'
    np.testing.assert_allclose(bare['half_lengths'], [0.05, 0.1, 0.05], rtol=1e-6)
