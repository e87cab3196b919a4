# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters: ``check URDF --identifiable``, then which ones belong to consistent parameters.

Table 1 of S, certificates, corrections; stated values and ``check URDF --base-parameters``. Last
the WAM of S, its base parameters and Table 6; its measured torques were never published.
"""

import json

import numpy as np
import pytest
from identification_problems import random_bodies
from robots import arm_with_wrist_sensor_urdf, two_link_urdf
from shared_data import SHARED
from wam import WAM, WamArm, link_symbols, table

from inertial_estimation import Bounds, Unknowns, submodel_regressors
from inertial_estimation.cli import main
from inertial_estimation.cli.identifiable import check_identifiable, readable, source_of_urdf
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.feasibility import (
    Consistency,
    Verdict,
    check_base_parameters,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.identifiable import null_space, random_states
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import decompose

ARM = """
robot: {fixed_link: base}
log: {time: t, joints: [shoulder, elbow, lift], positions: {columns: [a, b, c], unit: rad}}
"""


def identifiable(urdf, *more):
    return main(['check', str(urdf), '--identifiable', *map(str, more)])


def test_floating_robot_needs_no_efforts_and_a_bolted_one_does(tmp_path, capsys):
    urdf, out = tmp_path / 'robot.urdf', tmp_path / 'out.json'
    urdf.write_text(two_link_urdf())
    assert identifiable(urdf, '--fixed-link', 'body', '--json', out) == 1
    assert capsys.readouterr().err.count('\n') == 1 and not out.exists()
    assert identifiable(urdf, '--fixed-link', 'body', '--efforts', 'all') == 0
    shown = capsys.readouterr().out
    assert 'Never identifiable' in shown
    assert any('body' in line and 'all' in line for line in shown.splitlines())
    assert identifiable(urdf, '--json', out) == 0
    assert 'body.m + arm.m' in capsys.readouterr().out
    found = json.loads(out.read_text())
    (submodel,) = found['submodels']
    assert found['rank'] == submodel['rank'] == len(submodel['base_parameters']) == 10 + 7
    assert submodel['never'] == []
    assert set(found['predictions']['torques_lacking'].values()) == {0}


def test_known_ground_is_that_of_identify(tmp_path, capsys):
    path, out = tmp_path / 'arm.urdf', tmp_path / 'out.json'
    path.write_text(arm_with_wrist_sensor_urdf())
    more = ('--config', tmp_path / 'rows.yaml', '--json', out)
    plate = 'external: {base: [0, 0, 0, 0, 0, 0]}'
    robot = Robot.from_urdf(path, fixed_link='base')
    base = 10 * 4 - null_space(robot, robot.submodels[0]).shape[1]
    for rows, submodels, lacking in (
        ('{wrenches: true}', {'base': 0, 'tool': 10}, True),
        (f'{{{plate}}}', {'base': base, 'tool': 10}, False),
        # The tool is a part of the slider then.
        (f'{{{plate}, base_link: true}}', {'base': base}, False),
    ):
        (tmp_path / 'rows.yaml').write_text(ARM + f'rows: {rows}')
        assert identifiable(path, *more) == 0
        found = json.loads(out.read_text())
        assert {one['name']: one['rank'] for one in found['submodels']} == submodels
        assert (found['predictions']['wrenches_lacking']['base'] > 0) == lacking
        shown = ' '.join(capsys.readouterr().out.split())
        bases = [base for one in found['submodels'] for base in one['base_parameters']]
        assert all(readable(base) in shown for base in bases if base['terms'])


def test_efforts_and_a_wrist_sensor_of_an_arm(shared_models):
    urdf = (shared_models / 'panda_wrist_ft.urdf').read_text()
    arm = check_identifiable(*source_of_urdf(urdf, efforts=['all'], fixed_link='panda_link0'))
    base, hand = arm['submodels']
    # Seven for each joint; of the first one only the inertia about its axis.
    assert (base['rank'], hand['rank']) == (43, 14)
    assert 'panda_link0.m' in base['never']
    assert arm['predictions']['torques_lacking']['panda_joint1'] == 0
    assert arm['predictions']['wrenches_lacking']['panda_link0'] > 0
    assert any('mimic' in note for note in arm['notes'])
    alone = check_identifiable(*source_of_urdf(urdf, fixed_link='panda_link0'))
    assert [one['rank'] for one in alone['submodels']] == [0, 14]
    assert alone['predictions']['torques_lacking']['panda_joint1'] > 0


# ---- Consistency

TABLE_1 = SHARED / 'data' / 'papers' / 'seed003_table1_3link.csv'
FULL, PHYSICAL = Consistency.FULL, Consistency.PHYSICAL
# Consistent parameters near a boundary may be large, and the solver's tolerance is relative.
SOLVER = 1e-5


class ThreeLinks:
    """The robot of Table 1 and the vectors that are printed."""

    unknowns = Unknowns(tuple(f'link_{k}' for k in (1, 2, 3)))

    def __init__(self):
        if not TABLE_1.is_file():
            pytest.skip('needs ../shared/data')
        self.rows = table(TABLE_1)
        symbols = [symbol for k in (1, 2, 3) for symbol in link_symbols(k)]
        self.base = BaseParameters.parse([row['combination'] for row in self.rows], symbols)

    def values(self, column):
        return np.array([float(row[column]) for row in self.rows])

    def check(self, values, consistency, **options):
        return check_base_parameters(
            self.base, values, self.unknowns, consistency=consistency, **options
        )


@pytest.fixture(scope='module')
def table1():
    return ThreeLinks()


def test_table_1_has_the_printed_verdicts(table1):
    first, second = (table1.check(table1.values(f'beta_t{k}'), PHYSICAL) for k in (1, 2))
    assert (first.verdict, second.verdict) == (Verdict.FEASIBLE, Verdict.INFEASIBLE)
    # Printed: 1.65e-3, and the vector with six digits.
    assert second.distance == pytest.approx(1.65e-3, abs=5e-6)
    np.testing.assert_allclose(second.nearest, table1.values('beta_t2_corrected'), atol=5e-6)
    # With the triangle inequality neither is feasible.
    first, second = (table1.check(table1.values(f'beta_t{k}'), FULL) for k in (1, 2))
    assert first.verdict is second.verdict is Verdict.INFEASIBLE
    assert first.distance == pytest.approx(2.0e-4, rel=0.05)
    assert second.distance == pytest.approx(5.6e-2, rel=0.02)
    # With fewer digits it may be feasible.
    loose = table1.check(table1.values('beta_t1'), FULL, rounding=np.full(table1.base.rank, 5e-3))
    assert loose.verdict is Verdict.FEASIBLE
    assert loose.margin > first.margin


def beyond(certificate, values):
    """Return the distance from the half-space of a certificate; negative: inside."""
    return certificate.offset - certificate.normal @ values


@pytest.mark.parametrize('consistency', Consistency)
def test_certificates_are_proofs_without_the_solver(table1, consistency, rng):
    stated = table1.values('beta_t2')
    found = table1.check(stated, consistency)
    proof = found.certificate
    missed = beyond(proof, stated)
    assert missed > 0
    assert found.margin == pytest.approx(-missed, rel=1e-3)
    assert all(np.linalg.eigvalsh(Z).min() > -1e-9 for Z in proof.multipliers)
    assert proof.mismatch < 1e-6
    again = table1.check(found.nearest, consistency)
    assert again.margin > 0 and again.distance < SOLVER
    # The identity by which the half-space holds all consistent parameters.
    for x in rng.normal(size=(20, 30)):
        matrices = consistency.matrix(table1.unknowns.split(x)[0])
        traces = sum(np.trace(Z @ M) for Z, M in zip(proof.multipliers, matrices, strict=True))
        assert proof.normal @ table1.base.of(x) == pytest.approx(traces, abs=SOLVER)
    for x in random_bodies(rng, 150).reshape(50, 30):
        assert beyond(proof, table1.base.of(x)) < SOLVER


def test_point_mass_on_the_boundary_is_undecided():
    point = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    base = BaseParameters(np.arange(10), np.eye(10))
    found = check_base_parameters(base, point, Unknowns(('link',)))
    assert found.verdict is Verdict.UNDECIDED
    assert found.certificate is None
    assert 0 < found.distance < 1e-4
    assert FULL.margins(found.x) > 0


def test_bounds_count(nested_humanoid):
    one = nested_humanoid.submodels[0]
    unknowns = Unknowns(tuple(nested_humanoid.links[k].name for k in one.links))
    truth = nested_humanoid.parameters[list(one.links)].reshape(-1)
    base = BaseParameters.of_null_space(null_space(nested_humanoid, one))
    most = truth[::10].sum() - 0.1
    assert check_base_parameters(base, base.of(truth), unknowns).verdict is Verdict.FEASIBLE
    bounds = Bounds(total_mass=np.array([0.0, most]))
    light = check_base_parameters(base, base.of(truth), unknowns, bounds=bounds)
    assert light.verdict is Verdict.INFEASIBLE
    assert light.margin == -np.inf
    assert light.distance > 0
    assert light.x[::10].sum() == pytest.approx(most, abs=1e-4)
    # The half-space holds the base parameters of lighter links.
    assert beyond(light.certificate, base.of(truth)) > 0
    for share in (0.1, 0.5, 0.9 * most / (most + 0.1)):
        assert beyond(light.certificate, base.of(share * truth)) < SOLVER


@pytest.mark.parametrize('size', [1.0, 0.1, 0.01])
def test_verdict_does_not_depend_on_the_size_of_links(size):
    """Three links like balls about a point, of 2 kg at a size of one."""
    unknowns = Unknowns(('near', 'middle', 'far'))
    ball = np.array([1.0, 0.5, 0.0, 0.0, 0.01, 0.0, 0.26, 0.0, 0.0, 0.26])
    ball *= 2.0 * size**3 * np.array([1.0, *[size] * 3, *[size**2] * 6])
    scale, mass, moment = np.tile(ball, (3, 1)), ball[0], 0.01 * ball[0] * size**2
    rows = np.eye(30)[[0, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 29, 25]]
    base = BaseParameters.of_regressor(rows)

    def check(x, **options):
        return check_base_parameters(
            base, base.of(x.reshape(-1)), unknowns, mass=mass, moment=moment, **options
        )

    found = check(scale)
    assert found.verdict is Verdict.FEASIBLE and found.distance == 0.0
    assert found.certificate is None
    np.testing.assert_allclose(base.of(found.x), base.of(scale.reshape(-1)), atol=SOLVER)
    rounded = check(scale, rounding=np.full(base.rank, 1e-12))
    assert rounded.verdict is Verdict.FEASIBLE
    assert rounded.distance < SOLVER * np.abs(base.of(scale.reshape(-1))).max()
    spoilt = scale.copy()
    spoilt[-1, [4, 6, 9]] = [3.0, 0.2, 0.2] * spoilt[-1, 6:7]
    worse = check(spoilt)
    assert worse.verdict is Verdict.INFEASIBLE and worse.certificate is not None


@pytest.fixture
def robot(arm_with_wrist_sensor):
    return arm_with_wrist_sensor


@pytest.fixture
def torque_base(robot):
    """Return the combinations that joint torques determine, and their values."""
    whole = decompose(robot.links, robot.ft_sensors, ())[0]
    (found,) = submodel_regressors(robot, random_states(robot, 60), [whole], ground=0)
    base = BaseParameters.of_regressor(found.torques.reshape(-1, 10 * len(robot.links)))
    values = base.of(robot.parameters.reshape(-1))
    return base.combinations(Unknowns(robot.link_names).names), values


def text_of(combinations, values):
    lines = [f'{c},{v:.12g}' for c, v in zip(combinations, values, strict=True)]
    return '\n'.join(['combination,value', *lines])


@pytest.fixture
def run(robot, tmp_path):
    """Return a function that checks text with the command; its exit code and its JSON."""

    def call(text):
        urdf, values, out = (tmp_path / name for name in ('robot.urdf', 'base.csv', 'out.json'))
        urdf.write_text(robot.urdf)
        values.write_text(text)
        words = ['check', urdf, '--base-parameters', values, '--fixed-link', 'base', '--json', out]
        return main([str(word) for word in words]), json.loads(out.read_text())

    return call


def test_friction_alone_does_not_change_the_verdict(torque_base, run):
    combinations, values = torque_base
    extras = {
        'elbow.viscous': -0.2,
        'lift.coulomb': -0.1,
        'shoulder.viscous + 0.5 lift.viscous': -0.3,
        'elbow+shoulder.viscous': -0.1,
        'shoulder.coulomb': 0.4,
        'shoulder.offset': -2.0,
        'elbow.coulomb - lift.drive_inertia': -1.0,
    }
    _, found = run(text_of([*combinations, *extras], [*values, *extras.values()]))
    assert found['full']['verdict'] == found['physical']['verdict'] == 'feasible'
    assert list(found['below_zero']) == list(extras)[:4]


def test_drive_inertia_among_parameters_of_links_is_not_negative(torque_base, run):
    """The base turns about the same axis, about which its inertia is positive."""
    combinations, values = torque_base
    k = next(k for k, name in enumerate(combinations) if name.startswith('upper.Izz'))
    names = [*combinations]
    names[k] += ' + shoulder.drive_inertia'
    for added, verdict in ((0.5, 'feasible'), (-10.0, 'infeasible')):
        _, found = run(text_of(names, values + added * np.eye(len(values))[k]))
        assert found['full']['verdict'] == verdict and not found['below_zero']


def test_only_identifiable_combinations_may_be_stated(robot):
    """The wrist sensor determines all parameters of the tool, torques not all of the lower arm."""
    read = read_base_parameters('combination,value\ntool.Ixx,0.50', robot)
    assert read.rounding.tolist() == [0.005]
    assert check_stated(robot, read).verdict is Verdict.FEASIBLE
    with pytest.raises(ModelError) as error:
        read_base_parameters('combination,value\nlower.Iyy,0.5', robot)
    assert 'lower' in str(error.value)


def test_infeasible_values_come_with_proof_and_nearest(torque_base, run, capsys):
    names, values = torque_base
    bad = values.copy()
    bad[next(k for k, name in enumerate(names) if name.startswith('lower.Iyy'))] -= 10.0
    code, found = run(text_of(names, bad))
    assert code == 1 and 'Nearest' in capsys.readouterr().out
    found = found['full']
    assert found['verdict'] == 'infeasible'
    proof = found['certificate']
    assert proof['stated'] < proof['least']
    near = np.array(list(found['nearest'].values()))
    weights = np.array([proof['weights'][name] for name in found['nearest']])
    assert weights @ near >= proof['least'] - 1e-9 * np.abs(weights).max()
    assert found['distance'] == pytest.approx(np.linalg.norm(near - bad), rel=1e-6)
    assert run(text_of(names, near))[0] == 0


@pytest.mark.parametrize(('deviation', 'code'), [('0.3', 0), ('0.1', 1)])
def test_negative_friction_is_judged_beside_the_cones(torque_base, run, capsys, deviation, code):
    lines = [f'{line},' for line in text_of(*torque_base).splitlines()[1:]]
    lines.append(f'elbow.viscous,-0.2,{deviation}')
    exit_code, found = run('\n'.join(['combination,value,deviation', *lines]))
    assert exit_code == code and 'elbow.viscous' in capsys.readouterr().out
    assert found['full']['verdict'] == found['physical']['verdict'] == 'feasible'
    wanted = {'value': -0.2, 'deviation': float(deviation), 'may_be_zero': code == 0}
    assert found['below_zero']['elbow.viscous'] == wanted


# Groupings are products of a few lengths with few digits.
ROUND_OFF = 1e-12


@pytest.fixture(scope='module')
def arm():
    if not WAM.is_dir():
        pytest.skip('needs ../shared/data')
    return WamArm()


def test_base_parameters_are_those_of_table_3(arm):
    rng = np.random.default_rng(3)
    q, dq, ddq = rng.uniform(-3, 3, (60, 7)), *rng.normal(size=(2, 60, 7))
    W, published = arm.regressor(q, 2 * dq, 5 * ddq).reshape(-1, 98), arm.table3
    found = BaseParameters.of_regressor(W, conditioning_order(7, 28))
    assert found.rank == published.rank == 69
    ours, theirs = (np.argsort(base.independent) for base in (found, published))
    np.testing.assert_array_equal(found.independent[ours], published.independent[theirs])
    np.testing.assert_allclose(found.grouping[ours], published.grouping[theirs], atol=ROUND_OFF)
    # So are the CAD values of Table 6, of which four digits are printed.
    x = np.concatenate([arm.cad_parameters.reshape(-1), np.zeros(28)])
    known = [row for row in arm.table6 if row['cad_without_Ia']]
    values = published.of(x)[[int(row['index']) - 1 for row in known]]
    printed = [float(row['cad_without_Ia']) for row in known]
    np.testing.assert_allclose(values, printed, rtol=6e-4, atol=5e-10)


def check_table6(arm, column, consistency, everything=False, rounded=False):
    values = np.array([float(row[column]) for row in arm.table6])
    # Four digits are printed.
    half_digit = 0.5 * 10.0 ** (np.floor(np.log10(np.abs(values))) - 3)
    found = check_base_parameters(
        arm.table3, values, arm.unknowns, consistency=consistency,
        bounds=arm.bounds(everything), rounding=half_digit if rounded else None,
    )  # fmt: skip
    return found, values, half_digit


@pytest.mark.parametrize('everything', [False, True])
def test_published_estimate_is_only_feasible_for_the_larger_cone(arm, everything):
    (physical, *_), (full, values, half_digit) = (
        check_table6(arm, 'fbpe_ols_extra', kind, everything=everything, rounded=True)
        for kind in (PHYSICAL, FULL)
    )
    assert physical.verdict is Verdict.FEASIBLE
    assert full.verdict is Verdict.INFEASIBLE
    assert full.margin == pytest.approx(-1.1e-2, rel=0.05)
    proof = full.certificate
    assert proof.normal @ values + np.abs(proof.normal) @ half_digit < proof.offset


def test_published_ols_is_infeasible_at_the_published_distance(arm):
    found, *_ = check_table6(arm, 'ols', PHYSICAL)
    assert found.verdict is Verdict.INFEASIBLE
    squared = arm.model['published']['notebook']['BPFC_squared_distance']
    assert found.distance**2 == pytest.approx(squared, rel=1e-3)
