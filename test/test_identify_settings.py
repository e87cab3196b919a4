# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The file of settings of ``identify``: what is refused, bounds, the shapes of `mass_points`."""

import numpy as np
import pytest
from identify_command import report, run
from robots import arm_with_wrist_sensor_urdf
from simulated_arm import arm, arm_urdf, efforts_of, moving

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.logs.identify_settings import IdentifySettings, submodel_bounds
from inertial_estimation.model.robot import Robot

LOG = """
log: {time: t, joints: [elbow], positions: q}
"""
FRICTION = 'rows: {efforts: [shoulder, elbow], friction: [viscous, coulomb]}\n'
INF = np.inf


@pytest.fixture
def read(tmp_path):
    """Return a function of text: the choice of equations, and blocks and bounds by submodel."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')

    def call(text):
        path = tmp_path / 'identify.yaml'
        path.write_text(LOG + text)
        found = IdentifySettings.from_yaml(path)
        choice = found.choice(robot)
        blocks = EquationBuilder(robot, choice).blocks
        return choice, blocks, submodel_bounds(found.bounds, blocks)

    return call


def test_dead_zone_is_of_all_efforts_or_of_named_joints(read):
    everywhere = dict.fromkeys(('shoulder', 'elbow', 'lift'), 0.1)
    for zone, wanted in (('0.1', everywhere), ('{elbow: 0.1}', {'elbow': 0.1})):
        choice, *_ = read(f'rows: {{efforts: all, dead_zone: {zone}}}')
        assert choice.dead_zones == wanted


def test_each_bound_goes_to_its_link_joint_or_submodel(read, rng):
    _, (inner, tool), found = read(f"""{FRICTION}
bounds:
  mass: {{lower: [0.5, 2.0], tool: [0.1, .inf]}}
  center_of_mass: {{tool: [[-1, -1, 0], [1, 1, 0.5]]}}
  total_mass: {{base: [1.0, 9.0]}}
  extras: {{viscous: [0.0, .inf], elbow.viscous: [0.1, 0.2]}}
  ellipsoids: {{tool: {{center: [0.1, -0.2, 0.3], semi_axes: [0.2, 0.3, 0.5]}}}}
""")
    one, other = found[inner.submodel.name], found[tool.submodel.name]
    lower = inner.unknowns.links.index('lower')
    np.testing.assert_array_equal(one.mass[lower], [0.5, 2.0])
    assert np.isinf(np.delete(one.mass, lower, axis=0)).all()
    np.testing.assert_array_equal(other.center_of_mass[0], [[-1, -1, 0], [1, 1, 0.5]])
    np.testing.assert_array_equal(one.total_mass, [1.0, 9.0])
    assert one.center_of_mass is one.ellipsoids is other.total_mass is None
    names = [str(extra) for extra in inner.unknowns.extras]
    extras = dict(zip(names, one.extras.tolist(), strict=True))
    assert extras['shoulder.viscous'] == [0.0, INF]
    assert extras['elbow.viscous'] == [0.1, 0.2]
    assert extras['elbow.coulomb'] == [-INF, INF]
    (Q,) = other.ellipsoids
    for direction in rng.standard_normal((20, 3)):
        outward = np.array([0.2, 0.3, 0.5]) * direction / np.linalg.norm(direction)
        for share in (0.99, 1.01):
            x = np.append([0.1, -0.2, 0.3] + share * outward, 1.0)
            assert (x @ Q @ x > 0) == (share < 1)
    assert read(FRICTION)[2] == read(FRICTION + 'bounds: {mass: null}')[2] == {}


@pytest.mark.parametrize(
    'text',
    [
        'rws: {}',
        'rows: {efforts: [elbw]}',
        'robot: {fixed_link: base}\nrows: {base_link: true}',
        'payloads: {disc: {frame: tip, mass: -1.0, logs: [a]}}',
        'bounds: {mass: {hand: [0, 1]}}',
        'bounds: {mass: {tool: [2, 1]}}',
        'bounds: {extras: {elbow.offset: [0, 1]}}',
    ],
)
def test_wrong_file_is_refused(read, text):
    with pytest.raises((ConfigError, NameNotFound)):
        read(text)


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
    for link, source, middle, sizes in (
        ('base', 'cuboid', None, None),
        ('drawn', 'collision', [0.1, 0, 0], [0.2, 0.1, 0.1]),
        ('seen', 'visual', [0, 0, 0], [0.3, 0.15, 0.1]),
        ('told', 'config', np.mean(BOX, axis=0), np.ptp(BOX, axis=0) / 2),
        ('bare', 'visual', [0.1, 0, 0], [0.2, 0.2, 0.1]),
    ):
        box, body = points[link], found['links'][link]
        assert (box['source'], box['count']) == (source, 4**3)
        if sizes is not None:
            np.testing.assert_allclose(box['center'], middle, atol=INSIDE)
            np.testing.assert_allclose(box['half_lengths'], sizes, rtol=1e-6)
            center = np.array([body[f'mc_{axis}'] for axis in 'xyz']) / body['m']
            assert (np.abs(center - middle) <= np.array(sizes) + INSIDE).all(), link
    for kind, row in found['submodels'][0]['rows'].items():
        assert row['fit'] < DIFFERENCES * row['signal'], kind
