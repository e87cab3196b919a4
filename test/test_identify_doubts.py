# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``inertial-estimation identify`` of logs that cannot be what they are said to be.

Not covered: bags, whose signals go through the same checks but for those of tables.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import two_link_urdf
from shared_data import SHARED
from simulated_arm import LINKS, arm, arm_urdf, efforts_of, moving

from inertial_estimation.cli import main
from inertial_estimation.errors import LogError
from inertial_estimation.identification import fit
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.fit_checks import fit_warnings
from inertial_estimation.logs.identify import identify
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.identify_tables import identify_tables
from inertial_estimation.logs.motion_checks import disagreements
from inertial_estimation.logs.signals import read_signal
from inertial_estimation.logs.time_checks import require_possible_rate
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

JOINTS = [f'j_{link}' for link in LINKS]
DATA = SHARED / 'data'
CONFIG = Path(__file__).resolve().parents[1] / 'config'
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
    (tmp_path / 'arm.urdf').write_text(urdf.replace('<link name="base"/>', body))
    samples = moving(rng, SECONDS, RATE)
    efforts = efforts_of(arm(), samples) + VISCOUS * samples.velocities
    np.savez(
        tmp_path / 'log.npz',
        t=samples.stamp_ns * 1e-9,
        q=samples.positions,
        v=samples.velocities,
        e=efforts + rng.normal(0.0, NOISE, efforts.shape),
    )
    write_settings(tmp_path)
    return tmp_path


def write_settings(folder, *, log=None, rows=None, **groups):
    said = {
        'robot': {'fixed_link': 'base'},
        'log': {'time': 't', 'joints': JOINTS, 'positions': {'columns': 'q'},
                'velocities': {'columns': 'v'}, 'efforts': {'columns': 'e'}, **(log or {})},
        'preparation': {'cutoff': 10.0, 'measured_velocities': True, **groups},
        'rows': {'efforts': 'all', 'friction': ['viscous'], **(rows or {})},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(said))


def change(folder, **columns):
    """Replace columns of the log by functions of what they were."""
    with np.load(folder / 'log.npz') as log:
        found = dict(log)
    np.savez(folder / 'log.npz', **found | {name: f(found[name]) for name, f in columns.items()})


def of_column(k, f):
    """Return what changes one column only."""

    def changed(values):
        found = values.copy()
        found[:, k] = f(found[:, k])
        return found

    return changed


def run(folder, *more):
    out = ('--json', folder / 'o.json', '--out-urdf', folder / 'o.urdf')
    arguments = ['identify', folder / 'log.npz', *more, '--robot', folder / 'arm.urdf', '--config',
                 folder / 'logs.yaml', *out]  # fmt: skip
    return main(list(map(str, arguments)))


def refused(folder, capsys):
    assert run(folder) == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert not (folder / 'o.json').exists() and not (folder / 'o.urdf').exists()
    return error


def warned(folder, *more):
    assert run(folder, *more) == 0
    return json.loads((folder / 'o.json').read_text())['warnings']


def test_a_good_log_gives_no_warning(folder):
    assert warned(folder) == []


def test_degrees_that_are_declared_radians_are_beyond_the_limits(folder, capsys):
    change(folder, q=lambda q: DEGREES * q, v=lambda v: DEGREES * v)
    error = refused(folder, capsys)
    assert "position of 'j_drawn' is" in error and 'are -3 and 3' in error
    assert 'unit: deg' in error and 'divided_by' in error


@pytest.mark.parametrize(
    ('change_of', 'named', 'said'),
    [
        (np.negative, JOINTS, 'their sign is turned'),
        (lambda e: 1000 * e, JOINTS, 'units'),
        (lambda e: e[:, [1, 0, *range(2, e.shape[1])]], JOINTS[:2], 'order'),
        (lambda e: e, [], ''),
    ],
)
def test_logs_that_are_not_predicted_are_named(folder, change_of, named, said):
    with np.load(folder / 'log.npz') as log:
        np.savez(folder / 'other.npz', **dict(log) | {'e': change_of(log['e'])})
    found = [
        one
        for one in warned(folder, '--validate', folder / 'other.npz')
        if 'does not predict' in one
    ]
    assert len(found) == bool(named)
    for text in found:
        assert 'other.npz: ' in text and said in text
        assert [name for name in JOINTS if f'effort {name} (' in text] == named


@pytest.mark.parametrize(
    ('change_of', 'named'),
    [
        (of_column(2, np.negative), JOINTS[2:3]),
        (lambda e: 5 * e, JOINTS),
        (lambda e: e[:, [1, 0, *range(2, e.shape[1])]], JOINTS[:2]),
        (lambda e: e, []),
    ],
)
def test_fitted_logs_that_contradict_each_other_are_named(folder, rng, change_of, named):
    """Both of two are, with the joints, as nothing says which is wrong."""
    samples = moving(rng, SECONDS, RATE)
    efforts = efforts_of(arm(), samples) + VISCOUS * samples.velocities
    efforts += rng.normal(0.0, NOISE, efforts.shape)
    np.savez(
        folder / 'other.npz',
        t=samples.stamp_ns * 1e-9,
        q=samples.positions,
        v=samples.velocities,
        e=change_of(efforts),
    )
    said = [one for one in warned(folder, folder / 'other.npz') if 'contradict each other' in one]
    logs = {one.split(': base: ')[0] for one in said}
    assert logs == ({str(folder / name) for name in ('log.npz', 'other.npz')} if named else set())
    assert len(said) == len(logs)
    for name in JOINTS:
        assert any(f'effort {name} (' in one for one in said) == (name in named)


def test_samples_that_are_fitted_twice_or_fitted_and_predicted_are_told(folder):
    """By whatever name the log is called; parts that only touch are none."""
    log, same = folder / 'log.npz', folder / 'same.npz'
    same.symlink_to(log)
    twice = f'{log} and {same}@3:5 hold the same samples: they count twice'
    assert twice in warned(folder, f'{same}@3:5')
    both = f'{same}@3:5 is predicted although {log} holds some of it and is fitted'
    assert both in warned(folder, '--validate', f'{same}@3:5')
    part = ['identify', f'{log}@0:6', '--validate', f'{same}@6:', '--robot', folder / 'arm.urdf',
            '--config', folder / 'logs.yaml', '--json', folder / 'o.json']  # fmt: skip
    assert main(list(map(str, part))) == 0
    assert not any(
        'same' in one for one in json.loads((folder / 'o.json').read_text())['warnings']
    )


@pytest.mark.parametrize('how', ['fitted', 'predicted'])
def test_an_effort_that_never_changes_in_one_log_costs_its_rows_there(folder, how):
    with np.load(folder / 'log.npz') as log:
        np.savez(folder / 'dead.npz', **dict(log) | {'e': of_column(1, np.zeros_like)(log['e'])})
    more = [folder / 'dead.npz']
    said = warned(folder, *(['--validate', *more] if how == 'predicted' else more))
    text = f"dead.npz: effort of '{JOINTS[1]}' is 0 at all 1200 instants"
    assert any(text in one and 'left out here' in one for one in said)
    assert not any('never there' in one for one in said)
    rows = json.loads((folder / 'o.json').read_text())['submodels'][0]['rows']
    counts = [rows[f'effort {name}']['count'] for name in JOINTS]
    assert (counts[1] < counts[0]) == (how == 'fitted')
    unseen = rows[f'effort {JOINTS[1]}']['validation']
    assert unseen is None
    change(folder, e=of_column(1, np.zeros_like))
    (folder / 'o.json').unlink()
    assert run(folder, *more) == 1 and not (folder / 'o.json').exists()


def test_positions_a_little_beyond_their_limits_are_told(folder):
    urdf = (folder / 'arm.urdf').read_text().replace('upper="3"', 'upper="0.3"')
    (folder / 'arm.urdf').write_text(urdf)
    said = warned(folder)
    assert any("position of 'j_seen'" in text and '-3 and 0.3' in text for text in said)


def test_joints_without_end_stops_that_turn_too_often_are_told(folder):
    urdf = (folder / 'arm.urdf').read_text().replace('type="revolute"', 'type="continuous"')
    (folder / 'arm.urdf').write_text(urdf)
    change(folder, q=lambda q: DEGREES * q, v=lambda v: DEGREES * v)
    assert any("'j_drawn' turns by" in text and 'unit: deg' in text for text in warned(folder))


@pytest.mark.parametrize(
    ('columns', 'said'),
    [
        ({'v': lambda v: DEGREES * v}, '0.0175 times as fast'),
        ({'v': lambda v: DEGREES * v}, 'velocities are in degrees'),
        ({'q': lambda q: q / DEGREES}, 'positions are declared as degrees but are not'),
        ({'v': lambda v: v * 30 / np.pi}, 'velocities are in rpm'),
        ({'v': of_column(0, lambda v: 5.0 * v)}, 'the other side of a gear'),
        ({'v': np.negative}, 'in the other direction'),
        (
            {'v': of_column(0, lambda v: np.sin(0.043 * np.arange(len(v))))},
            'not of the same joint',
        ),
        ({'v': np.zeros_like}, 'the velocities stand still'),
    ],
)
def test_velocities_that_are_no_derivatives_are_refused(folder, capsys, columns, said):
    change(folder, **columns)
    error = refused(folder, capsys)
    assert "positions and velocities of 'j_drawn' contradict each other" in error
    assert said in error


@pytest.mark.parametrize('size', [1e3, 1e6])
@pytest.mark.parametrize('used', [True, False])
def test_stamps_in_smaller_units_than_is_said_are_refused(folder, capsys, size, used):
    write_settings(folder, measured_velocities=used)
    change(folder, t=lambda t: size * t)
    error = refused(folder, capsys)
    unit = {1e3: 'ms', 1e6: 'us'}[size]
    assert f"mend 'log.time.unit' if they are in {unit} (100 Hz), else choose a cutoff" in error


def test_stamps_later_than_any_are_refused(folder, capsys):
    change(folder, t=lambda t: 1e9 * t)
    assert "state 'log.time.unit' if it is in ms, us or ns" in refused(folder, capsys)


@pytest.mark.parametrize('unit', ['ms', 'us', 'ns'])
def test_stamps_in_larger_units_than_is_said_are_refused(folder, capsys, unit):
    write_settings(folder, log={'time': {'columns': 't', 'unit': unit}})
    error = refused(folder, capsys)
    assert f'as its stamps say in {unit}, faster than any robot' in error
    assert "mend 'log.time.unit' if they are in s (" in error


def test_slow_logs_that_nothing_filters_are_taken(folder, rng):
    """Postures one by one, as efforts against gravity are measured."""
    write_settings(folder, cutoff=0.0, largest_gap=3.0)
    with np.load(folder / 'log.npz') as log:
        samples, q = moving(rng, SECONDS, RATE), log['q']
    rest = np.zeros_like(q)
    weights = efforts_of(
        arm(), replace(samples, positions=q, velocities=rest, accelerations=rest)
    )  # fmt: skip
    noise = rng.normal(0.0, NOISE, weights.shape)
    change(folder, t=lambda t: 100 * t, v=lambda v: v / 100, e=lambda _: weights + noise)
    assert not any('Hz' in text for text in warned(folder))


def test_slow_logs_that_the_filter_can_use_are_taken():
    """Postures one by one, as efforts against gravity are measured; or anything with one stamp."""
    time = read_signal('t', 'log.time', 'time')
    slow, still = _turning(100.0), _turning(0.0)
    require_possible_rate(slow, time, Preparation(cutoff=0.0, largest_gap=3.0))
    require_possible_rate(still, time, Preparation())
    with pytest.raises(LogError, match='gaps of more than 1 s are not bridged'):
        require_possible_rate(slow, time, Preparation(cutoff=0.0, largest_gap=1.0))


@pytest.mark.parametrize(('size', 'said'), [(1e3, 'shorter'), (1e-3, 'longer')])
def test_a_wrong_unit_of_time_is_among_the_causes_of_wrong_velocities(size, said):
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    (text,) = disagreements(robot, _turning(size), np.inf)
    assert f"stamps are in a unit 1000 times {said} than is said ('unit' of the time)" in text
    assert 'mm' not in text


def _turning(size):
    """Return a joint that turns, and whose stamps, 0.02 s apart, are off by a factor."""
    t = np.arange(0.0, 10.0, 0.02)
    empty = np.zeros((len(t), 0, 3))
    return SampleBatch(
        np.round(size * t * 1e9).astype(np.int64), np.sin(t)[:, None], np.cos(t)[:, None],
        np.zeros((len(t), 1)), empty, empty, empty, np.zeros((len(t), 0, 6)),
    )  # fmt: skip


def test_velocities_that_are_not_used_are_told_only(folder):
    write_settings(folder, measured_velocities=False)
    change(folder, v=lambda v: DEGREES * v)
    said = [text for text in warned(folder) if 'contradict' in text]
    assert len(said) == len(JOINTS)


def test_velocities_are_compared_between_gaps_only(folder):
    """The robot moves on while nothing is recorded; some velocities are missing."""

    def without_middle(values):
        return np.concatenate([values[:400], values[700:]])

    change(folder, t=without_middle, q=without_middle, v=without_middle, e=without_middle)
    change(folder, v=of_column(1, lambda v: np.where(np.arange(len(v)) == 50, np.nan, v)))
    assert not any('contradict' in text for text in warned(folder))


@pytest.mark.parametrize('unit', ['A', ['N m', 'N m', 'mA', 'N m']])
def test_currents_that_nothing_scales_are_refused(folder, capsys, unit):
    write_settings(folder, log={'efforts': {'columns': 'e', 'unit': unit}})
    error = refused(folder, capsys)
    joint, name = ('j_drawn', 'A') if unit == 'A' else ('j_told', 'mA')
    assert f"'log.efforts.unit' of joint '{joint}' is '{name}'" in error
    assert "'log.efforts.scale'" in error and "'rows.gains'" in error


def test_currents_with_a_scale_are_taken(folder):
    change(folder, e=lambda e: e / 7.0)
    write_settings(folder, log={'efforts': {'columns': 'e', 'unit': 'A', 'scale': 7.0}})
    assert warned(folder) == []


@pytest.mark.parametrize('value', [0.0, 1.25])
def test_efforts_that_do_not_change_are_refused(folder, capsys, value):
    change(folder, e=of_column(1, lambda e: np.full_like(e, value)))
    error = refused(folder, capsys)
    assert f"effort of 'j_seen' is {value:g} at all 1200 instants" in error
    assert 'rows.efforts' in error


def test_efforts_of_joints_at_rest_may_be_constant(folder):
    still = of_column(3, lambda values: np.full_like(values, 0.0))
    change(folder, q=still, v=still, e=still)
    assert any("effort of 'j_bare' is 0 at all" in text for text in warned(folder))


@pytest.mark.parametrize('factor', [10.0, 0.1])
def test_efforts_of_another_size_than_predicted_are_told(folder, factor):
    change(folder, e=lambda e: factor * e)
    (said,) = [text for text in warned(folder) if 'what the description predicts' in text]
    assert f'effort j_seen ({factor:.2g})' in said
    for word in ('units', 'gears', 'order of columns', 'signs'):
        assert word in said


def test_masses_that_vanish_are_told(folder):
    change(folder, e=lambda e: 0.01 * e)
    (said,) = [text for text in warned(folder, '--weight', '1e-8') if 'next to nothing' in text]
    assert 'bare (' in said and 'of 0.5 kg)' in said and 'units' in said


@pytest.mark.parametrize(
    ('factor', 'said'),
    [
        (1000.0, ('no bodies explain its efforts, of which the fit leaves', 'j_seen',
                  'beyond the limits in the description (N m or N): ', ' of 100')),
        (0.001, ('measured efforts are 0.001 times what the description predicts',)),
        (-1.0, ('measured efforts are -1 times', "turn their sign, or that of 'robot.gravity'")),
    ],
)  # fmt: skip
def test_efforts_that_no_robot_has_are_refused(folder, capsys, factor, said):
    change(folder, e=lambda e: factor * e)
    error = refused(folder, capsys)
    assert 'cannot be of one robot: base: ' in error and "'unit'" in error
    for text in said:
        assert text in error


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_gravity_upwards_is_refused_although_a_vertical_joint_is_as_predicted(
    folder, capsys, rng, sign
):
    fast, slower = moving(rng, SECONDS, RATE), 4
    # Weight is most of it then, of which alone the sign is turned.
    samples = replace(
        fast,
        stamp_ns=slower * fast.stamp_ns,
        velocities=fast.velocities / slower,
        accelerations=fast.accelerations / slower**2,
    )
    # Against the axis of the first joint.
    down = -9.81 * Robot.from_urdf(arm_urdf(), fixed_link='base').links[1].P_H_L[:3, 2]
    robot = Robot.from_urdf(arm_urdf(), fixed_link='base', gravity=down)
    efforts = efforts_of(robot, samples) + VISCOUS * samples.velocities
    efforts += rng.normal(0.0, NOISE, efforts.shape)
    np.savez(
        folder / 'log.npz',
        t=samples.stamp_ns * 1e-9,
        q=samples.positions,
        v=samples.velocities,
        e=efforts,
    )
    settings = yaml.safe_load((folder / 'logs.yaml').read_text())
    settings['robot']['gravity'] = (sign * down).tolist()
    (folder / 'logs.yaml').write_text(yaml.safe_dump(settings))
    if sign > 0.0:
        assert warned(folder) == []
        return
    error = refused(folder, capsys)
    assert 'those that gravity does not load are not turned (effort j_drawn)' in error
    assert "turn the sign of 'robot.gravity'" in error


def test_columns_that_are_all_in_the_wrong_order_are_refused(folder, capsys):
    change(folder, e=lambda e: e[:, ::-1])
    error = refused(folder, capsys)
    assert 'no bodies explain its efforts' in error and 'order of columns' in error


@pytest.mark.parametrize(('one', 'other'), [(0, 1), (1, 2), (2, 3), (0, 3)])
def test_efforts_of_two_joints_that_change_places_are_told(folder, capsys, one, other):
    """By an error or a warning, however small one of them is beside the others."""
    order = np.arange(4)
    order[[one, other]] = other, one
    change(folder, e=lambda e: e[:, order])
    if run(folder):
        said = capsys.readouterr().err
        assert 'no bodies explain' in said and not (folder / 'o.urdf').exists()
    else:
        said = ' '.join(json.loads((folder / 'o.json').read_text())['warnings'])
        assert 'leaves most' in said
    assert f'effort {JOINTS[one]} ' in said or f'effort {JOINTS[other]} ' in said
    assert 'order of columns' in said


def test_a_weak_signal_may_be_all_noise(folder, rng):
    """A joint that turns about the vertical, slowly: its drive says next to nothing."""

    def noise(e):
        return rng.normal(0.0, 0.05, len(e))

    change(folder, q=of_column(3, lambda q: 0.05 * q), v=of_column(3, lambda v: 0.05 * v))
    change(folder, e=of_column(3, noise))
    urdf = (folder / 'arm.urdf').read_text().replace('mass value="0.5"', 'mass value="0.002"')
    (folder / 'arm.urdf').write_text(urdf)
    assert not any('j_bare (' in text for text in warned(folder) if 'leaves most' in text)


def test_one_reading_that_no_drive_has_is_refused_by_its_limit(folder, capsys):
    change(folder, e=of_column(1, lambda e: np.where(np.arange(len(e)) == 600, 1e6, e)))
    error = refused(folder, capsys)
    assert 'beyond the limits in the description' in error and 'effort j_seen ' in error
    assert 'put NaN there' in error


@pytest.mark.parametrize(
    ('limit', 'said'), [('effort="100"', 'effort of'), ('velocity="5"', 'velocity of')]
)
def test_limits_alone_are_no_reason_to_refuse_what_bodies_explain(folder, limit, said):
    """Descriptions state limits that nobody meant; 0 says that nobody stated one."""
    urdf, key = (folder / 'arm.urdf').read_text(), limit.split('=')[0]
    (folder / 'arm.urdf').write_text(urdf.replace(limit, f'{key}="0.05"'))
    told = warned(folder)
    assert told and all(said in text and 'description is 0.05' in text for text in told)
    (folder / 'arm.urdf').write_text(urdf.replace(limit, f'{key}="0"'))
    assert warned(folder) == []


def test_missing_values_of_tables_are_told(folder):
    def missing(q):
        return np.where((np.arange(len(q)) % 100 < 5)[:, None], np.nan, q)

    change(folder, q=missing)
    said = warned(folder)
    assert any('position of j_bare: missing at 60 of 1200 instants' in text for text in said)


def stuck(e):
    """Return an effort that a driver sends again and again for four seconds."""
    return np.concatenate([e[:400], np.repeat(e[400:401], 400), e[800:]])


def test_what_frozen_efforts_repeat_gives_no_rows(folder):
    def kept(more):
        said = [text for text in warned(folder) if 'repeated' in text]
        found = json.loads((folder / 'o.json').read_text())
        rows = found['submodels'][0]['rows']
        return said, {kind.split()[1]: row['count'] for kind, row in rows.items()}, rows

    said, clean, _ = kept(())
    assert said == []
    change(folder, e=of_column(2, stuck))
    (text,), rows, figures = kept(())
    assert 'effort of j_told: one reading repeated to the bit' in text
    assert '399 of 1200' in text and "'rows.frozen_after: 0'" in text
    assert all(rows[name] == clean[name] for name in JOINTS if name != 'j_told')
    # The repeated ones, and what the filter spreads them to on both sides (`edges`, 0.2 s).
    assert 399 <= clean['j_told'] - rows['j_told'] <= 399 + 2 * 0.2 * RATE + 2
    assert figures['effort j_told']['fit'] < 3 * NOISE
    write_settings(folder, rows={'frozen_after': 0})
    said, rows, figures = kept(())
    assert said == [] and rows == clean
    assert figures['effort j_told']['fit'] > 30 * NOISE


@pytest.mark.parametrize('column', ['q', 'v'])
def test_what_frozen_positions_and_velocities_repeat_gives_no_rows(folder, column):
    """The joint next to the base, whose motion is in all rows."""
    change(folder, **{column: of_column(0, stuck)})
    (text,) = [text for text in warned(folder) if 'same to the bit' in text]
    what = {'q': 'position', 'v': 'velocity'}[column]
    assert f'{what} of j_drawn' in text and 'at 399 of 1200' in text
    rows = json.loads((folder / 'o.json').read_text())['submodels'][0]['rows']
    assert max(row['fit'] for row in rows.values()) < 3 * NOISE


def test_efforts_of_joints_at_rest_may_stay_the_same(folder):
    """Of a robot that stands still nothing tells whether they are right."""
    still = of_column(2, lambda x: 0 * x)
    change(folder, e=of_column(2, stuck), q=still, v=still)
    assert not any('repeated' in text for text in warned(folder))
    rows = json.loads((folder / 'o.json').read_text())['submodels'][0]['rows']
    assert len({row['count'] for row in rows.values()}) == 1


@pytest.mark.parametrize('value', [-0.1, float('nan'), 'soon'])
def test_impossible_times_of_frozen_readings_are_refused(folder, capsys, value):
    write_settings(folder, rows={'frozen_after': value})
    assert 'rows.frozen_after' in refused(folder, capsys)


def test_values_in_coarse_steps_are_not_taken_for_frozen(folder):
    change(folder, e=lambda e: np.round(e / 2.0) * 2.0)
    assert not any('repeated' in text for text in warned(folder))


def test_friction_and_drives_that_are_negative_are_told_with_their_bounds(folder):
    with np.load(folder / 'log.npz') as log:
        v = log['v']
    change(folder, e=lambda e: e - 1.5 * v * [0, 1, 0, 0])
    (said,) = [text for text in warned(folder) if 'negative' in text]
    assert 'j_seen.viscous (-1' in said
    assert 'bounds: {extras: {viscous: [0, .inf]' in said
    settings = yaml.safe_load((folder / 'logs.yaml').read_text())
    settings['bounds'] = {'extras': {'viscous': [0, float('inf')]}}
    (folder / 'logs.yaml').write_text(yaml.safe_dump(settings))
    assert not any('negative' in text for text in warned(folder))


@pytest.mark.parametrize(('below', 'told'), [(0.5, False), (1.5, True)])
def test_friction_below_zero_is_told_beyond_its_deviation_alone(folder, below, told):
    settings = IdentifySettings.from_yaml(folder / 'logs.yaml')
    found = identify([folder / 'log.npz'], (folder / 'arm.urdf').read_text(), settings).fit
    (block,) = found.blocks
    x, n = block.answer.x.copy(), block.answer.unknowns.n_inertial
    x[n:] = -np.array([below, 0.9, 0.5, -1.0]) * block.answer.deviations[n:]
    block = replace(block, answer=replace(block.answer, x=x))
    said = [text for text in fit_warnings(replace(found, blocks=(block,))) if 'negative' in text]
    assert len(said) == told
    names = [f'{joint}.viscous (' for joint in JOINTS]
    assert [name in ' '.join(said) for name in names] == [told, False, False, False]


def test_rows_that_were_left_out_are_no_share_of_next_to_nothing(folder):
    k = np.arange(int(SECONDS * RATE))
    tiny = np.where((k >= 600) & (k < 605), 1e-5 * np.sin(k), np.nan)
    change(folder, e=of_column(1, lambda _: tiny))
    text = (folder / 'logs.yaml').read_text().replace('cutoff: 10.0', 'cutoff: 10.0\n  edges: 0.0')
    (folder / 'logs.yaml').write_text(text)
    settings = IdentifySettings.from_yaml(folder / 'logs.yaml')
    report = identify([folder / 'log.npz'], (folder / 'arm.urdf').read_text(), settings)
    assert any('noise of effort j_seen rows cannot be told' in text for text in report.warnings)
    assert not any('j_seen (' in text for text in report.warnings)
    (fits,) = [one for one in identify_tables(report) if one.title.startswith('Root mean squares')]
    column = fits.columns.index('fit [%]')
    shares = {row[1]: row[column] for row in fits.rows}
    assert [shares[f'effort {joint}'] == '' for joint in JOINTS] == [False, True, False, False]


def test_stiction_at_rest_is_told_until_there_is_a_dead_zone(folder, rng):
    """The arm stands still for a third of the log, where its drives hold some of the load."""
    with np.load(folder / 'log.npz') as log:
        columns = dict(log)
    n = len(columns['t']) // 2
    for name, rest in (('q', columns['q'][-1:]), ('v', np.zeros((1, 4))), ('e', None)):
        rest = efforts_at_rest(columns, rng, n) if rest is None else np.repeat(rest, n, axis=0)
        columns[name] = np.concatenate([columns[name], rest])
    columns['v'][-n - 1] = 0.0
    columns['t'] = np.arange(len(columns['q'])) / RATE
    np.savez(folder / 'log.npz', **columns)
    (said,) = [text for text in warned(folder) if 'stiction' in text]
    assert 'j_seen (' in said and 'rows.dead_zone: 0.05' in said
    write_settings(folder, rows={'dead_zone': 0.05})
    assert not any('stiction' in text for text in warned(folder))


def efforts_at_rest(columns, rng, n):
    """Return efforts that wander slowly about the last one."""
    steps = rng.normal(0.0, 3.0, (6, 4)).repeat(n // 6, axis=0)
    return columns['e'][-1] + steps + rng.normal(0.0, NOISE, (n, 4))


def test_answers_that_are_not_optimal_are_told(folder, monkeypatch):
    method = SOLVERS['manifold']

    def stopped(problem, **options):
        return replace(method.solve(problem, **options), grade=Grade.STOPPED)

    known = dict(SOLVERS) | {'manifold': replace(method, solve=stopped)}
    monkeypatch.setattr(fit, 'SOLVERS', known)
    (said,) = warned(folder, '--method', 'manifold')
    assert 'base: manifold ended stopped after' in said and 'a better answer exists' in said


def test_an_instant_that_every_leaves_is_no_motion(folder, capsys):
    write_settings(folder, every=1000)
    error = refused(folder, capsys)
    assert 'every is 1000, which leaves 2 of 1200 instants' in error


def test_the_prior_may_weigh_one_row(folder, capsys):
    assert warned(folder, '--weight', '1-row') == []
    (found,) = json.loads((folder / 'o.json').read_text())['submodels']
    rows = sum(row['independent'] for row in found['rows'].values())
    assert found['weight'] == pytest.approx(1.0 / rows)
    assert f' {found["weight"]:.2g} ' in capsys.readouterr().out
    links = json.loads((folder / 'o.json').read_text())['links']
    assert run(folder, '--weight', str(found['weight'])) == 0
    assert json.loads((folder / 'o.json').read_text())['links'] == links


def test_what_is_no_weight_is_refused(folder, capsys):
    with pytest.raises(SystemExit):
        run(folder, '--weight', 'two-rows')
    said = ' '.join(capsys.readouterr().err.split())
    assert (
        "'two-rows' is no weight of a prior: give a number from 1e-12 to 1e+12, such as 0.01"
        in said
    )


REAL = {
    'identify_panda.yaml': ('panda_excitation/log.npz@0:8', 'models/panda_wrist_ft.urdf'),
    'identify_ur10e.yaml': ('ur10e/fourier_30s_12h.npz', 'ur10e/ur10e.urdf'),
    'identify_tx40.yaml': ('staubli_tx40/train.npz@0:3', 'staubli_tx40/tx40.urdf'),
    'identify_tiago.yaml': ('tiago/train.npz', 'tiago/tiago.urdf'),
    'identify_icub_yoga.yaml': ('icub_yoga_left/bag@13.1:30', 'models/icub_v2_5.urdf'),
}
ALARMS = (
    'contradict', 'limit', 'predicts', 'leaves most', 'next to nothing', 'bit, for 0.2 s',
    'same to the bit', 'is the same',
)  # fmt: skip


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
@pytest.mark.parametrize('config', REAL)
def test_real_logs_raise_no_false_alarm(tmp_path, config):
    log, urdf = REAL[config]
    out = tmp_path / 'o.json'
    arguments = ['identify', DATA / log, '--robot', DATA / urdf, '--config', CONFIG / config,
                 '--json', out]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    said = json.loads(out.read_text())['warnings']
    assert not [text for text in said if any(alarm in text for alarm in ALARMS)]
    assert any('stiction' in text for text in said) == (config == 'identify_ur10e.yaml')
    assert any('torso_lift_joint.drive_inertia' in one for one in said) == ('tiago' in config)


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
@pytest.mark.parametrize('method', ['manifold', 'least_squares'])
def test_nothing_is_said_of_grades_and_bounds_that_are_as_they_should_be(tmp_path, method):
    """The settings hold empty bounds; the manifold once ended before its optimum here."""
    log, urdf = REAL['identify_panda.yaml']
    out = tmp_path / 'o.json'
    arguments = ['identify', DATA / log, '--robot', DATA / urdf, '--config',
                 CONFIG / 'identify_panda.yaml', '--json', out, '--method', method]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    found = json.loads(out.read_text())
    assert found['submodels'][0]['grade'] == 'optimal'
    assert not [text for text in found['warnings'] if 'ended' in text or 'bounds' in text]
