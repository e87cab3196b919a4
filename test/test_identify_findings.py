# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``identify``: findings on faults put into the log of a simulated arm, and its file of settings.

Of that, what is refused, the bounds, and the shapes of `mass_points`.
"""

import numpy as np
import pytest
import yaml
from identify_command import codes, refused, report, run
from robots import arm_with_wrist_sensor_urdf
from simulated_arm import LINKS, arm, arm_urdf, efforts_of, moving

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.logs.identify_settings import IdentifySettings, submodel_bounds
from inertial_estimation.model.robot import Robot

JOINTS = [f'j_{link}' for link in LINKS]
DEGREES = 180 / np.pi
SECONDS, RATE = 12.0, 100.0
NOISE = 0.02
"""Of efforts [Nm], about a hundredth of them."""
VISCOUS = 0.5


@pytest.fixture
def folder(tmp_path, rng):
    """Write an arm with end stops, a good log of it, and what it holds."""
    body = """<link name="base"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01"
      izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    stops = '<limit lower="-3" upper="3" effort="100" velocity="5"/><axis '
    urdf = arm_urdf().replace('type="continuous"', 'type="revolute"').replace('<axis ', stops)
    (tmp_path / 'robot.urdf').write_text(urdf.replace('<link name="base"/>', body))
    write_log(tmp_path / 'log.npz', rng)
    write_settings(tmp_path)
    return tmp_path


def write_log(path, rng):
    samples = moving(rng, SECONDS, RATE)
    efforts = efforts_of(arm(), samples) + VISCOUS * samples.velocities
    columns = {'t': samples.stamp_ns * 1e-9, 'q': samples.positions, 'v': samples.velocities}
    np.savez(path, **columns, e=efforts + rng.normal(0.0, NOISE, efforts.shape))


def write_settings(folder, **rows):
    columns = {'time': 't', 'positions': 'q', 'velocities': 'v', 'efforts': 'e'}
    given = {
        'robot': {'fixed_link': 'base'},
        'log': {'joints': JOINTS, **columns},
        'preparation': {'cutoff': 10.0, 'measured_velocities': True},
        'rows': {'efforts': 'all', 'friction': ['viscous'], **rows},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(given))


def change(folder, changed, name='log.npz'):
    """Write a log with columns that are a function of those of the good one."""
    log = dict(np.load(folder / 'log.npz'))
    np.savez(folder / name, **log | changed(log))


def column(k, f, values):
    """Return values of which one column is changed."""
    found = values.copy()
    found[:, k] = f(found[:, k])
    return found


def rows_of(folder):
    (block,) = report(folder)['submodels']
    return {kind.split()[1]: row for kind, row in block['rows'].items()}


def stuck(e):
    """Repeat one value for four seconds."""
    return np.concatenate([e[:400], np.repeat(e[400:401], 400), e[800:]])


def some_missing(q):
    return np.where((np.arange(len(q)) % 100 < 5)[:, None], np.nan, q)


@pytest.mark.parametrize(
    ('changed', 'subject'),
    [
        (lambda log: {'q': DEGREES * log['q'], 'v': DEGREES * log['v']}, 'j_drawn: position'),
        (
            lambda log: {'v': column(0, lambda v: np.sin(0.043 * np.arange(len(v))), log['v'])},
            'j_drawn: positions change',
        ),
        (lambda log: {'e': 1000.0 * log['e']}, 'base: all effort'),
        (lambda log: {'t': 1e3 * log['t']}, 'time: rate 0.1 Hz'),
        (lambda log: {key: 0 * log[key] for key in 'qv'}, 'j_drawn: does not move'),
    ],
)
def test_impossible_logs_are_refused(folder, capsys, changed, subject):
    change(folder, changed)
    assert subject in refused(folder, capsys, folder / 'log.npz')


@pytest.mark.parametrize(
    ('changed', 'code', 'subject'),
    [
        (lambda log: {'e': 10.0 * log['e']}, 'scale', 'base'),
        (lambda log: {'e': column(1, np.negative, log['e'])}, 'scale', 'base'),
        (lambda log: {'q': some_missing(log['q'])}, 'missing', 'j_bare'),
        (lambda log: {'v': column(0, stuck, log['v'])}, 'frozen', 'j_drawn'),
        (lambda log: {'e': column(1, lambda e: np.clip(e, -0.5, 0.5), log['e'])},
         'frozen', 'j_seen'),
        (lambda log: {'e': log['e'] - 1.5 * log['v'] * [0, 1, 0, 0]},
         'indefinite', 'j_seen.viscous'),
    ],
)  # fmt: skip
def test_faults_are_found(folder, changed, code, subject):
    change(folder, changed)
    assert run(folder, folder / 'log.npz') == 0
    assert (code, subject) in codes(folder)


def test_bound_of_zero_that_holds_the_answer_is_found(folder):
    change(folder, lambda log: {'e': log['e'] - 1.5 * log['v'] * [0, 1, 0, 0]})
    with (folder / 'logs.yaml').open('a') as file:
        file.write('bounds: {extras: {viscous: [0, .inf]}}')
    assert run(folder, folder / 'log.npz', '--out-urdf', folder / 'out.urdf') == 0
    (found,) = (one for one in report(folder)['findings'] if one['code'] == 'suboptimal')
    assert 'least j_seen.viscous' in found['text'] and found['values']['limit'] == 0.0


@pytest.mark.parametrize('how', ['fitted', 'predicted'])
@pytest.mark.parametrize(
    ('change_of', 'joints'),
    [
        (lambda e: column(2, np.negative, e), JOINTS[2:3]),
        (lambda e: 5 * e, JOINTS),
        (lambda e: e[:, [1, 0, 2, 3]], JOINTS[:2]),
        (lambda e: e, []),
    ],
)
def test_logs_that_contradict_are_found(folder, rng, change_of, joints, how):
    write_log(folder / 'other.npz', rng)
    log = dict(np.load(folder / 'other.npz'))
    np.savez(folder / 'other.npz', **log | {'e': change_of(log['e'])})
    more = ['--validate'] if how == 'predicted' else []
    assert run(folder, folder / 'log.npz', *more, folder / 'other.npz') == 0
    odd = [one for one in report(folder)['findings'] if one['code'] == 'logs_disagree']
    assert {one['values']['what'] for one in odd} == {f'base effort {joint}' for joint in joints}
    assert how == 'predicted' or len({one['subject'] for one in odd}) == (2 if joints else 0)


@pytest.mark.parametrize('how', ['fitted', 'predicted'])
def test_constant_effort_in_one_log_costs_its_equations(folder, how):
    change(folder, lambda log: {'e': column(1, np.zeros_like, log['e'])}, 'dead.npz')
    more = ['--validate'] if how == 'predicted' else []
    assert run(folder, folder / 'log.npz', *more, folder / 'dead.npz') == 0
    found, rows = codes(folder), rows_of(folder)
    assert ('frozen', JOINTS[1]) in found and ('missing', JOINTS[1]) not in found
    assert (rows['j_seen']['count'] < rows['j_drawn']['count']) == (how == 'fitted')
    assert rows['j_seen']['validation'] is None


@pytest.mark.parametrize(('key', 'old'), [('effort', '100'), ('velocity', '5')])
def test_values_beyond_ratings_are_found(folder, key, old):
    urdf = (folder / 'robot.urdf').read_text()
    for new, found in ('0.05', {'rating'}), ('0', set()):
        (folder / 'robot.urdf').write_text(urdf.replace(f'{key}="{old}"', f'{key}="{new}"'))
        assert run(folder, folder / 'log.npz') == 0
        assert {code for code, _ in codes(folder)} == found


def test_frozen_efforts_give_no_equations(folder):
    def rows(found):
        assert run(folder, folder / 'log.npz') == 0
        assert (('frozen', 'j_told') in codes(folder)) == found
        return {name: row['count'] for name, row in rows_of(folder).items()}

    clean = rows(False)
    change(folder, lambda log: {'e': column(2, stuck, log['e'])})
    left = rows(True)
    assert all(left[name] == clean[name] for name in JOINTS if name != 'j_told')
    # The repeated ones, and what the filter spreads them to on both sides (`edges`, 0.2 s).
    assert 399 <= clean['j_told'] - left['j_told'] <= 399 + 2 * 0.2 * RATE + 2
    assert rows_of(folder)['j_told']['fit'] < 3 * NOISE
    write_settings(folder, frozen_after=0)
    assert rows(False) == clean
    assert rows_of(folder)['j_told']['fit'] > 30 * NOISE


# ---- Settings

LOG = """
log: {time: t, joints: [elbow], positions: q}
"""
FRICTION = 'rows: {efforts: [shoulder, elbow], friction: [viscous, coulomb]}\n'


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
    assert extras['shoulder.viscous'] == [0.0, np.inf]
    assert extras['elbow.viscous'] == [0.1, 0.2]
    assert extras['elbow.coulomb'] == [-np.inf, np.inf]
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
