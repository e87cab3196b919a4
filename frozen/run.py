# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: E402
"""
Freeze the numbers of some runs, and check that they stay.

    python frozen/run.py list
    python frozen/run.py check [--fast] [RUN ...]
    python frozen/run.py write [RUN ...]
"""

from __future__ import annotations

import os

for _name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ[_name] = '1'

import argparse
import csv
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
try:
    import inertial_estimation
except ImportError:
    sys.path.insert(1, str(HERE.parent))
    import inertial_estimation

import numpy as np
import package
import store
from recorded import Load, Pole, Push, icub_urdf, saved, write_skin_bag
from store import Numbers, prefixed, series

DATA = Path(os.environ.get('FROZEN_DATA', HERE.parents[1] / 'shared' / 'data'))


@dataclass(frozen=True)
class Run:
    """A run of the list."""

    compute: Callable[[], Numbers]
    needs: tuple[str, ...] = ()
    """Paths below the folder of the data."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """By the beginning of names, for iterative solvers; others: 1e-9."""
    slow: bool = False


RUNS: dict[str, Run] = {}


def frozen(
    *needs: str, slow: bool = False, tolerances: Mapping[str, float] | None = None
) -> Callable[[Callable[[], Numbers]], Callable[[], Numbers]]:
    """Put a function on the list under its name."""

    def put(compute: Callable[[], Numbers]) -> Callable[[], Numbers]:
        RUNS[compute.__name__] = Run(compute, needs, tolerances or {}, slow)
        return compute

    return put


# The yoga log: a real iCub on one foot

YOGA_BAG, YOGA_URDF = 'icub_yoga_left/bag', 'models/icub_v2_5.urdf'
YOGA_CONFIG = 'icub_yoga_left.yaml'
ONE_FOOT = (13.07, 65.64)
YOGA = (YOGA_BAG, YOGA_URDF)


@cache
def yoga() -> package.Log:
    return package.read_log(DATA / YOGA_BAG, DATA / YOGA_URDF, YOGA_CONFIG)


@frozen(*YOGA)
def yoga_samples() -> Numbers:
    """Samples as they are read and filtered."""
    return package.sample_numbers(yoga(), *ONE_FOOT)


@frozen(*YOGA)
def yoga_settings() -> Numbers:
    """Replay of the whole bag with the offsets of the parameter file, which are zero."""
    return package.replay_numbers(yoga(), (-np.inf, np.inf), net=('root_link', 'r_foot'))


@frozen(*YOGA)
def yoga_torques() -> Numbers:
    """Offsets from the robot's own torques, with deviations and wrenches through joints."""
    return package.replay_numbers(
        yoga(), ONE_FOOT, 'torques', (13.07, 38.0),
        through=('l_knee', 'r_hip_pitch', 'torso_yaw'), deviations=True,
    )  # fmt: skip


@frozen(*YOGA)
def yoga_model() -> Numbers:
    """Offsets from the model with the stance foot as the only contact."""
    return package.replay_numbers(yoga(), ONE_FOOT, 'model', (13.07, 65.64), support='l_sole')


@frozen(*YOGA)
def yoga_supported_offsets() -> Numbers:
    """Offsets as ``calibrate offsets`` finds them: still instants, and all."""
    log = yoga()
    return {
        **prefixed('still', package.supported_offsets(log, ONE_FOOT, ['l_sole'])),
        **prefixed('moving', package.supported_offsets(log, ONE_FOOT, ['l_sole'], moving=True)),
    }


@frozen(*YOGA)
def yoga_momentum() -> Numbers:
    """Momentum against wrenches on ten seconds."""
    log = yoga()
    estimator = package.free_estimator(log)
    rows = np.flatnonzero((log.times > 30.0) & (log.times < 40.0))
    return package.momentum_figures(estimator, log.batch.take(rows))


@frozen(*YOGA, slow=True)
def yoga_affine() -> Numbers:
    """Matrix of the hanging leg, from the first half, tested on the second."""
    changes = package.hindsight({}, YOGA_CONFIG)
    log = package.read_log(DATA / YOGA_BAG, DATA / YOGA_URDF, YOGA_CONFIG, **changes)
    middle = 0.5 * sum(ONE_FOOT)
    return package.affine_fit(
        log, ONE_FOOT, 'r_leg_ft', (ONE_FOOT[0] + 0.5, middle), (middle, ONE_FOOT[1] - 0.5)
    )


@frozen(*YOGA, slow=True)
def yoga_filters() -> Numbers:
    """Samples with other filters of derivatives."""
    found: Numbers = {}
    for name, changes in {
        'kalman': {'filter.kind': 'kalman'},
        'delayed': {'filter.delay': 0.1},
        'message': {
            'joint_states.velocity_source': 'message',
            'joint_states.acceleration_source': 'zero',
        },
    }.items():
        log = package.read_log(DATA / YOGA_BAG, DATA / YOGA_URDF, YOGA_CONFIG, **changes)
        found |= prefixed(name, package.sample_numbers(log, *ONE_FOOT, 4))
    return found


# Other real logs for calibration

TIPPING_BAG, TIPPING_URDF = 'icub_foot_tipping/setup07/bag', 'models/icub_genova01.urdf'


@frozen(TIPPING_BAG, TIPPING_URDF)
def tipping() -> Numbers:
    """Both feet on the ground, then a fall: offsets and the replay."""
    log = package.read_log(DATA / TIPPING_BAG, DATA / TIPPING_URDF, 'icub_foot_tipping.yaml')
    feet = ['l_sole', 'r_sole']
    return {
        **prefixed('samples', package.sample_numbers(log, 0.0, 10.0, 8)),
        **prefixed('feet', package.supported_offsets(log, (0.0, 2.0), feet, accept_split=True)),
        **prefixed('one foot', package.supported_offsets(log, (0.0, 2.0), feet[:1])),
        **prefixed('replay', package.replay_numbers(log, (0.0, 10.0))),
    }


@frozen('axia80_static/poses7.csv', 'axia80_static/poses60.csv')
def axia() -> Numbers:
    """Offsets in situ of an Axia80 in static poses."""
    from scipy.spatial.transform import Rotation

    found: Numbers = {}
    for name in ('poses7', 'poses60'):
        turns = _table(f'axia80_static/{name}.csv', ('qx', 'qy', 'qz', 'qw'))
        columns = ('fx_base', 'fy_base', 'fz_base', 'tx_base', 'ty_base', 'tz_base')
        wrenches = _table(f'axia80_static/{name}.csv', columns)
        S_R_B = Rotation.from_quat(turns).inv().as_matrix()
        turned = np.einsum('nij,nkj->nki', S_R_B, wrenches.reshape(-1, 2, 3)).reshape(-1, 6)
        found |= prefixed(name, package.in_situ_offset(turned, 9.80665 * S_R_B[:, :, 2]))
    return found


@frozen('ntnu_fts_imu/0-calibration_fts-accel.csv')
def ntnu() -> Numbers:
    """Offsets in situ of an ATI Gamma by gravity, by its IMU, and without the IMU's bias."""
    path = 'ntnu_fts_imu/0-calibration_fts-accel.csv'
    wrenches = _table(path, ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'))
    imu, gravity = _table(path, ('ax', 'ay', 'az')), _table(path, ('gx', 'gy', 'gz'))
    unbiased = package.in_situ_offset(
        wrenches, 9.81 * imu, bias=np.zeros(3), max_acceleration=0.2 * 9.81
    )
    return {
        **prefixed('gravity', package.in_situ_offset(wrenches, -gravity)),
        **prefixed('imu', package.in_situ_offset(wrenches, 9.81 * imu)),
        **prefixed('no bias', unbiased),
    }


NTNU_BAGS = ('ntnu_fts_imu/bag_baseline', 'ntnu_fts_imu/bag_vibrations')


@frozen(*NTNU_BAGS, tolerances={'': 1e-7})
def ntnu_tool() -> Numbers:
    """Mass, centre, offset and delay of the tool in free motion."""
    found: Numbers = {}
    for name in NTNU_BAGS:
        turned, bias = (-np.pi / 2, np.pi / 2, 0.0), (-0.0359, 0.0868, 0.7562)
        one = package.tool_fit(DATA / name, '/fts/wrench', '/imu', turned, bias)
        found |= prefixed(name.rpartition('_')[2], one)
    return found


@frozen()
def hanging_masses() -> Numbers:
    """Matrix from simulated data sets with added masses; temperature coefficients."""
    rng = np.random.default_rng(7)
    body, sets = (3.0, np.array([0.01, -0.02, 0.15])), []
    loads = ((0.0, (0.0, 0.0, 0.0)), (0.5, (0.3, 0.0, 0.05)), (0.5, (0.0, 0.2, 0.05)))
    for mass, centre in loads:
        roll, pitch = rng.uniform(-0.7, 0.7, (2, 2000))
        parts = -np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)
        gravity = 9.80665 * np.column_stack(parts)
        weight, first = body[0] + mass, body[0] * body[1] + mass * np.array(centre)
        wrenches = np.hstack([weight * gravity, np.cross(first, gravity)])
        raw = wrenches @ (np.eye(6) + 0.05 * np.ones((6, 6))).T + np.arange(6)
        raw += np.repeat([0.15, 0.007], 3) * rng.normal(size=raw.shape)
        sets.append(
            {'raw': raw, 'accelerations': -gravity, 'mass': mass, 'centre': np.array(centre)}
        )
    times = 0.2 * np.arange(3000)
    warmth = 25.0 + 8.0 * (1.0 - np.exp(-times / 120.0))
    rates, noise = rng.uniform(0.02, 0.2, 6), rng.normal(size=(3000, 6))
    predicted = np.sin(6.283 * rates * times[:, None]) * np.repeat([20.0, 2.0], 3)
    slopes = np.array([0.5, -0.2, 1.0, 0.01, 0.02, -0.03])
    wrenches = predicted - slopes * (warmth[:, None] - 25.0) + noise * np.repeat([0.15, 0.007], 3)
    return {
        **prefixed('matrix', package.added_mass_matrix(sets)),
        **prefixed('temperature', package.temperature_fit(wrenches, predicted, warmth, times)),
    }


def _table(path: str, columns: tuple[str, ...]) -> np.ndarray:
    with (DATA / path).open(encoding='utf-8', newline='') as file:
        return np.array([[float(row[name]) for name in columns] for row in csv.DictReader(file)])


# Identification from logs of arms

THREE = ('entropic', 'semidefinite', 'least_squares')
ITERATIVE = {'entropic': 1e-8, 'semidefinite': 1e-6, 'least_squares': 1e-8}
"""Other kernels of BLAS alone move drive inertias of the TX40 by 6e-10."""


def _arm(config: str, urdf: str, fitted: list[str], predicted: list[str]) -> Numbers:
    """Return what three methods find."""
    found: Numbers = {}
    for method in THREE:
        one = package.identify_logs(_paths(fitted), _paths(predicted), urdf, config, method)
        found |= prefixed(method, one)
    return found


def _paths(logs: list[str]) -> list[str]:
    return [str(DATA / log) for log in logs]


def _text(path: str) -> str:
    return (DATA / path).read_text(encoding='utf-8')


@frozen('panda_excitation/log.npz', 'models/panda_wrist_ft.urdf', tolerances=ITERATIVE)
def panda() -> Numbers:
    """Panda without its hand."""
    urdf = _without(_text('models/panda_wrist_ft.urdf'), 'panda_hand')
    log = 'panda_excitation/log.npz'
    return _arm('identify_panda.yaml', urdf, [f'{log}@0:11'], [f'{log}@11:'])


@frozen('ur10e/ur10e.urdf', tolerances=ITERATIVE)
def ur10e() -> Numbers:
    """UR10e, currents as efforts."""
    predicted = ['ur10e/fourier_40s_12h.npz@5:44.6', 'ur10e/fourier_20s_8h.npz@3.2:23.1']
    fitted = ['ur10e/fourier_30s_12h.npz@6.35:35.1']
    return _arm('identify_ur10e.yaml', _text('ur10e/ur10e.urdf'), fitted, predicted)


@frozen('staubli_tx40/tx40.urdf', tolerances=ITERATIVE)
def tx40() -> Numbers:
    """Staubli TX40."""
    log = 'staubli_tx40/train.npz'
    urdf = _text('staubli_tx40/tx40.urdf')
    return _arm('identify_tx40.yaml', urdf, [f'{log}@0:4'], [f'{log}@4:'])


@frozen('tiago/tiago.urdf', tolerances=ITERATIVE)
def tiago() -> Numbers:
    """TIAGo."""
    log = 'tiago/train.npz'
    return _arm('identify_tiago.yaml', _text('tiago/tiago.urdf'), [f'{log}@0:26'], [f'{log}@26:'])


@frozen('ur10e/fourier_50s_14h_payload.npz', 'ur10e/ur10e.urdf', tolerances={'': 1e-8})
def ur10e_payload() -> Numbers:
    """UR10e with and without a known payload: gains of the drives."""
    logs = ['ur10e/fourier_50s_14h.npz', 'ur10e/fourier_50s_14h_payload.npz']
    urdf = _text('ur10e/ur10e.urdf')
    return package.identify_logs(
        _paths(logs), _paths(['ur10e/fourier_30s_12h.npz']), urdf,
        'identify_ur10e_payload.yaml', 'entropic',
    )  # fmt: skip


@frozen('staubli_tx40/tx40.urdf', slow=True, tolerances={'': 1e-6})
def tx40_other_methods() -> Numbers:
    """TX40 by the other methods but mass points."""
    log, urdf = 'staubli_tx40/train.npz', _text('staubli_tx40/tx40.urdf')
    found: Numbers = {}
    for method in ('manifold', 'pullback', 'euclidean'):
        logs = _paths([f'{log}@0:4']), _paths([f'{log}@4:'])
        found |= prefixed(method, package.identify_logs(*logs, urdf, 'identify_tx40.yaml', method))
    return found


@frozen('staubli_tx40/tx40.urdf', slow=True, tolerances={'': 1e-5})
def tx40_mass_points() -> Numbers:
    """TX40 by mass points, whose method is to be replaced."""
    log, urdf = 'staubli_tx40/train.npz', _text('staubli_tx40/tx40.urdf')
    logs = _paths([f'{log}@0:4']), _paths([f'{log}@4:'])
    return package.identify_logs(*logs, urdf, 'identify_tx40.yaml', 'mass_points')


@frozen(*YOGA, slow=True, tolerances={'': 1e-7})
def yoga_identify() -> Numbers:
    """Links of the real iCub from its FT sensors."""
    return package.identify_logs(
        [f'{DATA / YOGA_BAG}@13.07:45'], [f'{DATA / YOGA_BAG}@45:65.64'],
        _text(YOGA_URDF), 'identify_icub_yoga.yaml', 'entropic',
    )  # fmt: skip


def _without(urdf: str, link: str) -> str:
    """Return a description without a link and all that it carries."""
    root = ElementTree.fromstring(urdf)
    gone, joints = {link}, root.findall('joint')
    for _ in joints:
        gone |= {
            joint.find('child').get('link')
            for joint in joints
            if joint.find('parent').get('link') in gone
        }
    for element in list(root):
        named = [element.get('name')] if element.tag == 'link' else [element.get('reference')]
        ends = (element.find(tag) for tag in ('parent', 'child'))
        named += [end.get('link') for end in ends if end is not None]
        if not gone.isdisjoint(named):
            root.remove(element)
    return ElementTree.tostring(root, encoding='unicode')


@frozen(
    'wam7/wam7_model.json', tolerances={'semidefinite': 1e-6, 'nearest': 1e-5, 'entropic': 1e-8}
)
def wam() -> Numbers:
    """The WAM on simulated torques: regressor, base parameters, three fits."""
    from scipy.signal import butter, filtfilt

    model = json.loads(_text('wam7/wam7_model.json'))
    pairs = enumerate(zip(model['dh'], model['links_cad'], strict=True), 1)
    parts = [_wam_joint(k, dh, link) for k, (dh, link) in pairs]
    urdf = f'<robot name="wam7"><link name="link_0"/>{"".join(parts)}</robot>'
    robot = package.make_robot(urdf, fixed_link='link_0')
    own = package.names(robot)
    with np.load(DATA / 'wam7' / 'traj1_reference_100hz.npz') as file:
        q = np.array(file['q'], dtype=float)
    b, a = butter(3, model['published']['cutoff_hz'] / 50.0)
    q = filtfilt(b, a, q, axis=0)
    dq = np.gradient(q, 0.01, axis=0)
    ddq = np.gradient(dq, 0.01, axis=0)
    q, dq, ddq = (x[50:-50:5] for x in (q, dq, ddq))
    order = [own['joints'].index(f'joint_{k}') for k in range(1, 8)]
    assert order == list(range(7))
    # The first link is fixed, and as in other robots has no place in the torques.
    links = [name for name in own['links'] if name != 'link_0']
    rows = [own['links'].index(name) for name in links]
    Y = package.torque_regressor(robot, q, dq, ddq)
    inertial = np.concatenate([Y[:, :, 10 * k : 10 * k + 10] for k in rows], axis=2)
    whole = np.zeros((len(q), 7, 10 * len(links) + 28))
    whole[:, :, : 10 * len(links)] = inertial
    friction = np.stack([ddq, dq, np.sign(dq), np.ones_like(dq)], axis=-1)
    for j in range(7):
        start = 10 * len(links) + 4 * j
        whole[:, j, start : start + 4] = friction[:, j]
    W, prior = whole.reshape(-1, whole.shape[2]), package.parameters(robot)[rows]
    x = np.concatenate([prior.ravel(), np.tile([0.05, 1.0, 2.0, 0.1], 7)])
    rng = np.random.default_rng(52)
    torques = W @ x
    torques += 0.065 * np.sqrt(np.mean(torques**2)) * rng.normal(size=len(torques))
    return {
        **series('regressor', whole, 4),
        **prefixed('base', package.base_grouping(W)),
        **package.friction_arm_fits(links, own['joints'], W, torques, prior),
    }


def _wam_joint(k: int, dh: dict[str, float], link: dict[str, Any]) -> str:
    """Return a joint about z, and the link at the far end of its Denavit-Hartenberg row."""
    inertia = ' '.join(f'i{n}="{v!r}"' for n, v in link['inertia_com'].items())
    com = ' '.join(map(repr, link['com']))
    return f"""
      <link name="arm_{k}"/>
      <joint name="joint_{k}" type="continuous"><parent link="link_{k - 1}"/>
        <child link="arm_{k}"/><axis xyz="0 0 1"/></joint>
      <joint name="end_{k}" type="fixed"><parent link="arm_{k}"/><child link="link_{k}"/>
        <origin xyz="{dh['a']} 0 {dh['d']}" rpy="{dh['alpha']!r} 0 0"/></joint>
      <link name="link_{k}"><inertial><origin xyz="{com}"/><mass value="{link['mass']}"/>
        <inertia {inertia}/></inertial></link>"""


TOOLS = ('c_clamp', 'electronic_caliper', 'hammer', 'pliers', 'ruler', 'screwdriver')


@frozen(
    *(f'stars_tools_sim/{name}.npz' for name in TOOLS),
    tolerances={'entropic': 1e-8, 'one row': 1e-8, 'semidefinite': 1e-6, 'no prior': 1e-6,
                'manifold': 1e-6},
)  # fmt: skip
def tools() -> Numbers:
    """Six simulated tools with noise, by six methods."""
    guess = np.array([0.3, 0, 0, 0, *(0.4 * 0.3 * 0.1**2 * np.array([1.0, 0, 1, 0, 0, 1]))])
    methods = {
        'least squares': ('least_squares', {}),
        'entropic': ('entropic', {}),
        'one row': ('entropic', package.one_row()),
        'semidefinite': ('semidefinite', {}),
        'no prior': ('semidefinite', package.without_prior()),
        'manifold': ('manifold', {}),
    }
    found: Numbers = {}
    for name in TOOLS:
        motion, wrenches = _tool(name)
        rng = np.random.default_rng(len(name))
        noisy = {
            **motion,
            **{
                key: motion[key] + 2.0 * size * rng.normal(size=motion[key].shape)
                for key, size in (('proper_accelerations', 0.025), ('angular_accelerations', 0.25))
            },
        }
        wrenches = wrenches + 2.0 * np.repeat([0.05, 0.0025], 3) * rng.normal(size=wrenches.shape)
        for key, (method, options) in methods.items():
            one = package.identify_body(noisy, wrenches, guess, method, options)
            found |= prefixed(f'{key}/{name}', one)
    return found


def _tool(name: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return motion and wrenches in the frame of the sensor."""
    with np.load(DATA / f'stars_tools_sim/{name}.npz') as file:
        table = {key: np.asarray(file[key], dtype=float) for key in file.files}
    W_R_S = table['ft_pose'][:, :3, :3]

    def seen(vectors: np.ndarray) -> np.ndarray:
        return np.einsum('nij,ni->nj', W_R_S, vectors)

    velocity, acceleration, wrench = table['ft_vel'], table['ft_acc'], table['wrench']
    motion = {
        'times': table['t'],
        'angular_velocities': seen(velocity[:, 3:]),
        'proper_accelerations': seen(acceleration[:, :3] - [0.0, 0.0, 9.81]),
        'angular_accelerations': seen(acceleration[:, 3:]),
    }
    return motion, np.hstack([seen(wrench[:, :3]), seen(wrench[:, 3:])])


# The simulated iCub that stands, is pushed and moves

CONTACTS = ('chest', 'l_hand', 'r_hand', 'l_upper_leg', 'r_upper_leg', 'l_sole', 'r_sole')
ONE_IMU = ['root_link']
FLAWS = slice(100, 120)
"""Instants of runs with failed sensors."""
IMU_COLUMNS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


@cache
def icub_columns() -> dict[str, np.ndarray]:
    return saved('icub')


def icub(imus: list[str] | None = None, **options: Any) -> tuple[Any, Any]:
    """Return robot and samples; default: all 13 IMUs."""
    columns = icub_columns()
    chosen = columns['imus'].tolist() if imus is None else imus
    robot = package.make_robot(icub_urdf(), imus=chosen, **options)
    return robot, package.make_batch(robot, columns)


def at(*frames: str) -> list[Any]:
    return [package.make_contact(frame) for frame in frames]


@frozen()
def icub_one_imu() -> Numbers:
    """One IMU: batch and single updates, internal wrenches, dependence."""
    robot, batch = icub(ONE_IMU)
    estimator, few = package.make_estimator(robot, at(*CONTACTS)), batch.take(slice(0, 40))
    inner = package.inner_wrenches(estimator, few, ['l_knee', 'torso_yaw', 'r_elbow'])
    return {
        **package.estimates(estimator, batch),
        **prefixed('single', package.one_by_one(estimator, few, keep=4)),
        **prefixed('inner', inner),
        **prefixed('dependence', package.dependence(robot, at(*CONTACTS))),
    }


@frozen()
def icub_13_imus() -> Numbers:
    """All 13 IMUs: batch and single updates, internal wrenches, dependence."""
    robot, batch = icub()
    estimator, few = package.make_estimator(robot, at(*CONTACTS)), batch.take(slice(0, 40))
    inner = package.inner_wrenches(estimator, few, ['l_knee', 'torso_yaw', 'r_elbow'])
    return {
        **package.estimates(estimator, batch),
        **prefixed('single', package.one_by_one(estimator, few, keep=4)),
        **prefixed('inner', inner),
        **prefixed('dependence', package.dependence(robot, at(*CONTACTS))),
    }


@frozen()
def icub_deviations() -> Numbers:
    """Standard deviations with one IMU, with 13, and with uncertain parameters."""
    noise = {
        'joint': np.array([[1e-8, 0, 0], [0, 1e-5, 1e-5], [0, 1e-5, 1e-2]]),
        'imu': np.array([[9e-6, 0, 1e-6], [0, 9e-4, 0], [1e-6, 0, 4e-3]]),
        'ft': np.array([0.3, 0.3, 0.5, 0.02, 0.02, 0.01]),
    }
    found: Numbers = {}
    for name, imus in (('one', ONE_IMU), ('13', None)):
        robot, batch = icub(imus)
        estimator = package.make_estimator(robot, at(*CONTACTS))
        few = batch.take(np.arange(0, 300, 30))
        found |= prefixed(name, package.standard_deviations(estimator, few, noise))
        rng = np.random.default_rng(1)
        roots = 1e-3 * rng.normal(size=(len(package.names(robot)['links']), 10, 3))
        order = np.argsort(package.names(robot)['links'])
        roots[order] = roots.copy()
        found |= prefixed(
            f'{name}, parameters', package.standard_deviations(estimator, few, noise, roots)
        )
    return found


@frozen()
def icub_failed_sensors() -> Numbers:
    """Every FT sensor and IMU missing once, joints missing and assumed, half an IMU, several."""
    found: Numbers = {}
    for kind, imus in (('one', ONE_IMU), ('13', None), ('fixed', [])):
        robot, batch = icub(imus, **({'fixed_link': 'root_link'} if imus == [] else {}))
        own = package.names(robot)
        estimator, batch = package.make_estimator(robot, at(*CONTACTS)), batch.take(FLAWS)
        for what, broken in _broken(own, batch):
            one = package.estimates(estimator, broken, keep=2)
            small = {key: value for key, value in one.items() if not key.endswith('/finite')}
            found |= prefixed(f'{kind}, {what}', small)
            if what in ('l_leg_ft', 'head_imu_0', 'several', 'l_knee', 'l_knee assumed'):
                single = package.one_by_one(estimator, broken.take(slice(0, 3)), keep=2)
                plain = {key: value for key, value in single.items() if key.count('/') == 1}
                found |= prefixed(f'{kind}, {what}, single', plain)
    return found


def _broken(own: Mapping[str, list[str]], batch: Any) -> list[tuple[str, Any]]:
    """Return batches with a fault each."""

    def without(column: str, row: int | list[int], base: Any = batch) -> Any:
        values = np.array(getattr(base, column))
        values[:, row] = np.nan
        return replace(base, **{column: values})

    cases = [(name, without('ft_readings', k)) for k, name in enumerate(own['fts'])]
    if len(own['imus']) > 1:
        for k, name in enumerate(own['imus']):
            broken = batch
            for column in IMU_COLUMNS:
                broken = without(column, k, broken)
            cases.append((name, broken))
            cases.append((f'{name} without rates', without(IMU_COLUMNS[0], k)))
            cases.append((f'{name} without acceleration', without(IMU_COLUMNS[1], k)))
    elif own['imus']:
        cases.append(('no imu', without('proper_accelerations', 0)))
    for joint in ('l_knee', 'torso_roll', 'r_wrist_pitch'):
        k = own['joints'].index(joint)
        cases.append((joint, without('positions', k)))
        cases.append((f'{joint} without velocity', without('velocities', k)))
        states = np.zeros(batch.positions.shape, dtype=np.uint8)
        states[:, k] = package.assumed_state()
        cases.append((f'{joint} assumed', replace(batch, joint_states=states)))
    several = without('ft_readings', [own['fts'].index('l_leg_ft'), own['fts'].index('r_arm_ft')])
    several = without('positions', own['joints'].index('l_elbow'), several)
    if len(own['imus']) > 1:
        rows = [own['imus'].index(name) for name in ('root_link', 'l_foot', 'r_forearm')]
        several = without('proper_accelerations', rows, several)
    return [*cases, ('several', several)]


@frozen()
def icub_contacts() -> Numbers:
    """Two contacts in one submodel and other kinds; one IMU and 13."""
    make = package.make_contact
    feet = at('l_sole', 'r_sole')
    sets = {
        'two wrenches': [*at('l_hand', 'l_forearm', 'r_hand', 'chest'), *feet],
        'two forces': [
            make('l_hand', 'force', point=(0.02, 0.01, -0.05), name='palm'),
            make('l_forearm', 'force', point=(0.0, 0.03, 0.01), name='arm'),
            *at('r_hand', 'chest'), *feet,
        ],
        'force and wrench': [make('l_hand', 'force'), *at('l_upper_arm', 'chest'), *feet],
        'axial': [
            make('l_hand', 'axial_force', direction=(0.3, 1.0, 0.2), point=(0.0, 0.0, -0.04)),
            make('chest', 'axial_force', direction=(0.0, 1.0, 0.0)),
            make('root_link', 'force'), *feet,
        ],
        'known': [
            make('l_hand', 'known', wrench=(3.0, -2.0, 5.0, 0.1, 0.2, -0.1)),
            *at('chest', 'l_upper_arm', 'l_upper_leg'), *feet,
        ],
        'none': [],
        'feet': feet,
    }  # fmt: skip
    found: Numbers = {}
    for kind, imus in (('one', ONE_IMU), ('13', None)):
        robot, batch = icub(imus)
        for name, contacts in sets.items():
            estimator = package.make_estimator(robot, contacts)
            found |= prefixed(f'{kind}, {name}', package.estimates(estimator, batch, keep=4))
        contacts = sets['two forces']
        found |= prefixed(f'{kind}, dependence', package.dependence(robot, contacts))
    return found


@frozen()
def icub_touches() -> Numbers:
    """Contacts that are felt, in place of the default ones of their submodels."""
    make = package.make_contact
    sets = {
        'forearm': [make('l_forearm', name='touch')],
        'point': [make('r_forearm', 'force', point=(0.01, 0.02, -0.06), name='touch')],
        'two on a leg': [
            make('l_upper_leg', 'force', point=(0.05, 0.0, -0.1), name='touch 1'),
            make('l_lower_leg', 'force', point=(0.04, 0.01, -0.1), name='touch 2'),
        ],
        'two limbs': [make('l_hand', 'force', name='touch 1'), make('root_link', name='touch 2')],
    }  # fmt: skip
    found: Numbers = {}
    robot, batch = icub(ONE_IMU)
    estimator = package.make_estimator(robot, at(*CONTACTS))
    for name, touches in sets.items():
        found |= prefixed(name, package.estimates(estimator, batch, touches, 4))
        few = batch.take(slice(50, 60))
        found |= prefixed(f'{name}, single', package.one_by_one(estimator, few, touches, 2))
    return found


@frozen()
def icub_calibrated() -> Numbers:
    """Matrices, offsets and temperature coefficients; temperatures known in part."""
    robot, batch = icub(ONE_IMU)
    rng, own = np.random.default_rng(4), package.names(robot)
    by_sensor = {
        name: {
            'matrix': np.eye(6) + 0.05 * rng.normal(size=(6, 6)),
            'offset': np.repeat([10.0, 1.0], 3) * rng.normal(size=6),
            'coefficients': np.repeat([0.2, 0.02], 3) * rng.normal(size=6) * (k % 3 > 0),
            'reference': np.array(25.0 + k),
        }
        for k, name in enumerate(sorted(own['fts']))
    }
    columns = {name: 30.0 + 5.0 * rng.normal(size=len(batch)) for name in sorted(own['fts'])}
    columns[sorted(own['fts'])[1]][:100] = np.nan
    warmth = np.array([columns[name] for name in own['fts']]).T
    calibration = package.make_calibration(robot, by_sensor)
    estimator = package.make_estimator(robot, at(*CONTACTS), calibration)
    return package.estimates(estimator, replace(batch, ft_temperatures=warmth))


@frozen()
def icub_identifiable() -> Numbers:
    """What of the links FT sensors can tell at all."""
    robot, _ = icub(ONE_IMU)
    return package.structural_ranks(robot)


@frozen()
def icub_base() -> Numbers:
    """External torques about a foot, and a robot with a fixed link."""
    robot, batch = icub(ONE_IMU, external_torque_base='l_sole')
    fixed, same = icub([], fixed_link='l_sole')
    return {
        **prefixed('base', package.estimates(package.make_estimator(robot, at(*CONTACTS)), batch)),
        **prefixed('fixed', package.estimates(package.make_estimator(fixed, at(*CONTACTS)), same)),
    }


@frozen()
def icub_expected_readings() -> Numbers:
    """What each sensor reads besides what all others say."""
    robot, batch = icub()
    estimator = package.make_estimator(robot, at('chest', 'l_sole', 'r_sole'))
    return package.expected_readings(estimator, batch, 6)


@frozen()
def icub_arrays() -> Numbers:
    """Accelerometers and gyroscopes alone, and an array of four accelerometers on the chest."""
    columns, pole = icub_columns(), np.random.default_rng(11)
    places = {
        'chest a': ('chest', (0.1, 0.0, 0.05), 'accelerometer'),
        'chest b': ('chest', (-0.1, 0.02, 0.1), 'accelerometer'),
        'chest c': ('chest', (0.0, 0.15, -0.05), 'accelerometer'),
        'chest d': ('chest', (0.02, -0.12, 0.0), 'accelerometer'),
        'head': ('head_imu_0', (0.0, 0.0, 0.0), 'both'),
        'forearm': ('l_forearm', (0.0, 0.0, 0.0), 'gyroscope'),
        'other forearm': ('r_forearm', (0.02, 0.01, -0.1), 'accelerometer'),
        'foot': ('l_foot', (0.0, 0.0, 0.02), 'both'),
        'foot again': ('l_foot', (0.05, 0.0, 0.01), 'both'),
    }
    given = {name: [] for name in IMU_COLUMNS}
    for link, place, measures in places.values():
        k = columns['imus'].tolist().index(link)
        w, a, dw = (columns[name][:, k] for name in IMU_COLUMNS)
        a = a + np.cross(dw, place) + np.cross(w, np.cross(w, place))
        a = a + 0.02 * pole.normal(size=a.shape)
        nothing = np.full_like(a, np.nan)
        given['angular_velocities'].append(nothing if measures == 'accelerometer' else w)
        given['proper_accelerations'].append(nothing if measures == 'gyroscope' else a)
        given['angular_accelerations'].append(nothing if measures == 'accelerometer' else dw)
    stacked = {name: np.stack(values, axis=1) for name, values in given.items()}
    imus = [package.link_sensor(name, *place) for name, place in places.items()]
    robot = package.make_robot(icub_urdf(), imus=imus)
    batch = package.make_batch(robot, {**columns, 'imus': list(places), **stacked})
    contacts, few = at(*CONTACTS), batch.take(slice(0, 20))
    found: Numbers = {}
    for name, make in (('plain', package.make_estimator), ('array', package.array_estimator)):
        found |= prefixed(name, package.estimates(make(robot, contacts), batch))
        single = package.one_by_one(make(robot, contacts), few, keep=4)
        found |= prefixed(f'{name}, single', single)
    return found


@frozen()
def icub_equations_of_motion() -> Numbers:
    """Equations of motion about the root and a hand, momentum."""
    robot, batch = icub(ONE_IMU)
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    pose[:3, :3] *= np.sign(np.linalg.det(pose[:3, :3]))
    pose[:3, 3] = 0.3, -0.2, 0.7
    found: Numbers = {}
    for frame in ('root_link', 'l_hand'):
        q, dq = batch.positions[50], batch.velocities[50]
        twist = np.array([0.3, -0.5, 0.2, 0.4, 0.1, -0.6])
        one = package.equations_of_motion(robot, q, dq, pose, twist, frame)
        found |= prefixed(frame, one)
    return found


# Streams of messages


@frozen()
def streams() -> Numbers:
    """Samples from streams with jitter, gaps, repeated and missing values; joints in two parts."""
    found: Numbers = {}
    for name, options in {
        'filter': {'joint_states.velocity_source': 'filter', 'filter.window': 0.12},
        'message': {'joint_states.velocity_source': 'message',
                    'joint_states.acceleration_source': 'zero'},
        'delayed': {'joint_states.velocity_source': 'filter', 'filter.window': 0.12,
                    'filter.delay': 0.05, 'filter.smooth_readings': True},
        'kalman': {'joint_states.velocity_source': 'filter', 'filter.kind': 'kalman',
                   'filter.delay': 0.02},
    }.items():  # fmt: skip
        found |= prefixed(name, _streamed(options))
    return found


def _streamed(options: Mapping[str, Any]) -> Numbers:
    rng = np.random.default_rng(9)
    joints, fts, imus = ['a', 'b', 'c', 'd'], ['left', 'right'], ['back', 'head']
    given = package.Streams(
        joints, fts, imus,
        **{'joint_states.topics': ('one', 'two'), 'joint_states.assumed': ('d',),
           'joint_states.assumed_positions': (0.4,)},
        **options,
    )  # fmt: skip
    messages: list[tuple[int, int, str]] = []
    for order, (what, rate) in enumerate(
        (('left', 200.0), ('right', 100.0), ('back', 250.0), ('head', 100.0), ('two', 100.0),
         ('one', 200.0))
    ):  # fmt: skip
        times = 1.0 + np.arange(round(6.0 * rate)) / rate
        times += 0.1 / rate * rng.normal(size=len(times))
        if what in ('right', 'head'):
            times = times[(times < 3.0) | (times > 3.4)]
        messages += [(round(1e9 * t), order, what) for t in times]
    last = np.zeros(6)
    for stamp, _, what in sorted(messages):
        t = stamp / 1e9
        waves = np.sin(np.outer(np.arange(1, 7), t).ravel() + np.arange(6))
        if what == 'one':
            q = waves[:2] + 1e-4 * rng.normal(size=2)
            given.push_joints(0, stamp, ['b', 'a'], q, np.cos(t * np.arange(1, 3)))
        elif what == 'two':
            given.push_joints(1, stamp, ['c', 'other'], waves[2:4], waves[4:])
        elif what in fts:
            reading = 10.0 * waves + rng.normal(size=6)
            if what == 'left' and 4.0 < t < 5.0:
                reading = last
            elif what == 'left':
                last = reading
            elif 2.0 < t < 2.05:
                reading[3] = np.nan
            given.push_ft(what, stamp, reading)
        else:
            rate = waves[:3] + 3e-3 * rng.normal(size=3)
            if what == 'back' and 5.0 < t < 5.2:
                rate = np.full(3, np.nan)
            given.push_imu(what, stamp, rate, 9.81 * waves[3:])
    return given.numbers()


@frozen()
def skin_replay() -> Numbers:
    """Replay of a bag of a simulated robot with two IMUs, whose skin tells what is pushed."""
    contacts = ['head', 'l_forearm', 'r_forearm', 'l_lower_leg', 'r_lower_leg', 'l_sole', 'r_sole']
    config = {
        'imus': ['chest', 'root_link'],
        'contacts': contacts,
        'contact_timeout': 0.02,
        'joint_states.velocity_source': 'filter',
        'touch_kind': 'force',
        'ft.l_arm_ft.offset': [1.0, -2.0, 3.0, 0.1, -0.2, 0.3],
        'contact.l_sole.kind': 'wrench',
        'contact.head.kind': 'force',
        'contact.head.point': [0.0, 0.02, 0.1],
    }
    with TemporaryDirectory() as folder:
        write_skin_bag(Path(folder) / 'bag')
        log = package.read_log(Path(folder) / 'bag', icub_urdf(), config)
        everything = (-np.inf, np.inf)
        through = ('l_knee', 'r_elbow')
        return {
            **prefixed('samples', package.sample_numbers(log, *everything, 6)),
            **package.replay_numbers(log, everything, through=through, deviations=True),
        }


@frozen()
def touched() -> Numbers:
    """Contacts that come and go, late and out of order."""
    robot, _ = icub(ONE_IMU)
    stream, rng = package.Touches(robot, contact_timeout=0.1), np.random.default_rng(3)
    frames, rows = ('l_hand', 'l_hand', 'r_forearm', 'chest'), []
    for k in range(400):
        now = 1_000_000_000 + 10_000_000 * k
        for place, frame in enumerate(frames):
            if (k // 50 + place) % 3 == 0 and rng.uniform() < 0.7:
                late = round(2e7 * rng.uniform())
                point = np.array([0.1 * place, 0.001 * (k // 50), 0.0])
                stream.push(now - late, frame, point)
        rows.append(stream.at(now))
    return series('touches', np.array(rows), 100)


# Identification while the robot works


def follow(
    robot: Any,
    batch: Any,
    every: int = 1,
    seconds: float = 1.0,
    keep: int = 12,
    tares: Mapping[int, tuple[Any, Any]] = {},
    **settings: Any,
) -> Numbers:
    """Return all updates of an identifier that is fed with stretches."""
    identifier, updates, changes = package.Identifier(robot, **settings), [], []
    for k, part in enumerate(package.stretches(batch, seconds)):
        if k in tares:
            identifier.set_calibration(*tares[k])
        changes += [(k, text) for text in identifier.add(part)]
        update = identifier.refit() if k % every == every - 1 else None
        if update is not None:
            updates.append(update)
    own = package.names(robot)
    found: Numbers = {'count': np.array([float(len(updates))])}
    stamps = np.array([update.stamp_ns for update in updates], dtype=float)
    found['times'] = (stamps - float(batch.stamp_ns[0])) / 1e9
    for text in sorted({text for _, text in changes}):
        found[f'change/{text}'] = np.array([float(k) for k, one in changes if one == text])
    for name in own['submodels']:
        found[f'accepted/{name}'] = np.array([float(name in one.refitted) for one in updates])
    bodies = np.array([update.parameters for update in updates])
    variances = np.array([update.covariance_diagonal for update in updates])
    for k, name in enumerate(own['links']):
        found |= series(f'parameters/{name}', bodies[:, k], keep)
        found |= series(f'variances/{name}', variances[:, k], 2)
    for kind in ('offsets', 'subtracted', 'offset_deviations'):
        for name in own['fts']:
            nothing = np.full(6, np.nan)
            rows = [getattr(update, kind).get(name, nothing) for update in updates]
            found |= series(f'{kind}/{name}', np.array(rows), keep)
    for name in sorted({name for update in updates for name in update.payloads}):
        rows = [update.payloads.get(name) for update in updates]
        values = [[np.nan] * 5 if one is None else [one.mass, one.mass_deviation, *one.center]
                  for one in rows]  # fmt: skip
        found |= series(f'payload/{name}', np.array(values), 2 * keep)
    found |= {f'extra/{name}': np.array(value) for name, value in updates[-1].extras.items()}
    for name, rows in updates[-1].bodies.items():
        links = package.submodel_links(robot)[name]
        found |= {f'body/{link}': row for link, row in zip(links, rows, strict=True)}
    return found


FITTED = {'': 1e-7}


@frozen(*YOGA, slow=True, tolerances=FITTED)
def recursion_yoga() -> Numbers:
    """The real iCub on one foot, second by second."""
    log = yoga()
    rows = np.flatnonzero((log.times > ONE_FOOT[0]) & (log.times < ONE_FOOT[1]))
    samples = log.batch.take(rows)
    return {
        **prefixed('as the node', follow(log.robot, samples, keep=6)),
        **prefixed('easily', follow(log.robot, samples, keep=6, weight=0.01, excited=1)),
    }


def _on_pole(
    seconds: float, rate: float, seed: int, drift: float = 0.0, **events: Any
) -> tuple[Any, Any]:
    """Return a robot with wrong bodies, and its log on a pole."""
    pole, given = Pole(), saved('wrong_icub')
    motion = pole.motion(seconds, rate, seed)
    readings = pole.noisy(pole.readings(motion, **events), seed, drift)
    robot = package.make_robot(icub_urdf(), fixed_link='root_link')
    links = given['links'].tolist()
    rows = [links.index(name) for name in package.names(robot)['links']]
    robot = package.with_parameters(robot, given['parameters'][rows])
    return robot, package.make_batch(robot, {**motion, 'ft_readings': readings})


@frozen(tolerances=FITTED)
def recursion_payload() -> Numbers:
    """A load of a kilogramme at the hand, and a push at a leg, within 75 s."""
    load = Load('l_hand', 1.0, (0.05, 0.02, -0.08), 0.002, 25.0, 50.0)
    push = Push('r_lower_leg', (20.0, -30.0, 10.0, 1.0, 0.0, 0.5), 58.0, 66.0)
    robot, batch = _on_pole(75.0, 50.0, 1, loads=(load,), pushes=(push,))
    return follow(robot, batch)


@frozen(tolerances=FITTED)
def recursion_tare() -> Numbers:
    """Forty seconds; after twenty, other offsets of all sensors and another matrix of one."""
    robot, batch = _on_pole(40.0, 25.0, 4)
    fts, rng = package.names(robot)['fts'], np.random.default_rng(6)
    by_sensor = {
        name: {
            'matrix': np.eye(6) * (1.02 if name == 'l_arm_ft' else 1.0),
            'offset': np.repeat([5.0, 0.5], 3) * rng.normal(size=6),
            'coefficients': np.zeros(6), 'reference': np.zeros(()),
        }
        for name in sorted(fts)
    }  # fmt: skip
    calibration = package.make_calibration(robot, by_sensor)
    return follow(robot, batch, tares={20: (calibration, ['r_leg_ft'])})


@frozen(tolerances=FITTED)
def recursion_noise() -> Numbers:
    """Thirty seconds with stated noise of positions and their derivatives."""
    robot, batch = _on_pole(30.0, 50.0, 2)
    return follow(robot, batch, noise_rate=50.0)


@frozen(slow=True, tolerances=FITTED)
def recursion_hour() -> Numbers:
    """An hour at 5 Hz with drifting offsets and a push every ten minutes; a refit every 20 s."""
    pushes = tuple(
        Push(frame, (15.0, 30.0, -20.0, 0.5, 1.0, -0.5), 600.0 * k + 300.0, 600.0 * k + 310.0)
        for k, frame in enumerate(
            ('l_hand', 'r_hand', 'l_foot', 'r_lower_leg', 'l_hand', 'r_foot')
        )
    )
    load = Load('r_hand', 0.8, (0.04, -0.02, -0.06), 0.002, 1000.0, 1900.0)
    robot, batch = _on_pole(3600.0, 5.0, 3, drift=30.0, pushes=pushes, loads=(load,))
    return follow(robot, batch, every=4, seconds=5.0)


@frozen('panda_excitation/log.npz', 'models/panda_wrist_ft.urdf', 'ur10e/ur10e.urdf',
        tolerances=FITTED)  # fmt: skip
def recursion_arms() -> Numbers:
    """Panda and UR10e from efforts."""
    found: Numbers = {}
    for name, config, urdf, log in (
        ('panda', 'identify_panda.yaml', 'models/panda_wrist_ft.urdf', 'panda_excitation/log.npz'),
        ('ur10e', 'identify_ur10e.yaml', 'ur10e/ur10e.urdf', 'ur10e/fourier_30s_12h.npz'),
    ):
        log += {'panda': '@0:11', 'ur10e': '@6.35:35.1'}[name]
        robot, batch, choice = package.prepared_log(str(DATA / log), _text(urdf), config)
        one = follow(robot, batch, choice=choice, warm_up=1.0, weight=0.01, excited=1)
        found |= prefixed(name, one)
    return found


# The command


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('verb', choices=('list', 'check', 'write'))
    parser.add_argument('runs', nargs='*', metavar='RUN')
    parser.add_argument('--fast', action='store_true', help='leave slow runs out')
    parser.add_argument(
        '--keys', type=int, default=1, help='names shown of each run that deviates'
    )
    chosen = parser.parse_args()
    unknown = [name for name in chosen.runs if name not in RUNS]
    if unknown:
        parser.error(f'no run {", ".join(unknown)}')
    if chosen.verb == 'list':
        for name, run in RUNS.items():
            print(f'{name:24} {"slow " if run.slow else "     "}{_first(run)}')
        return 0
    print(f'package {Path(inertial_estimation.__file__).parent}, numpy {np.__version__}')
    wanted = chosen.runs or [n for n, run in RUNS.items() if not (chosen.fast and run.slow)]
    bad = [name for name in wanted if not _do(chosen.verb, name, chosen.keys)]
    print(f'{len(bad)} of {len(wanted)} runs deviate{": " if bad else ""}{", ".join(bad)}')
    return int(bool(bad))


def _first(run: Run) -> str:
    return (run.compute.__doc__ or '').strip().splitlines()[0]


def _do(verb: str, name: str, shown: int) -> bool:
    """Write or check a run; tell whether it is as it should be."""
    run, start = RUNS[name], time.perf_counter()
    missing = [need for need in run.needs if not (DATA / need).exists()]
    if missing:
        print(f'{name:24} skipped: no {missing[0]} in {DATA}', flush=True)
        return True
    try:
        found = run.compute()
        if verb == 'write':
            size = store.write(name, found).stat().st_size
            took = time.perf_counter() - start
            print(f'{name:24} {len(found):5} names {size / 1e3:7.0f} kB {took:6.1f} s', flush=True)
            return True
        off = store.deviations(store.read(name), found)
    except Exception:
        print(f'{name:24} FAILS\n{traceback.format_exc()}', flush=True)
        return False
    over = {key: value / store.tolerance_of(key, run.tolerances) for key, value in off.items()}
    good = max(over.values(), default=np.inf) <= 1.0
    worst = max(off, key=lambda key: (over[key], off[key]))
    took = time.perf_counter() - start
    said = f'{off[worst]:.1e} {worst}' if off[worst] else '0'
    print(f'{name:24} {"ok  " if good else "OFF "} {took:6.1f} s  {said}', flush=True)
    if not good:
        for key in sorted(over, key=over.get, reverse=True)[1:shown]:
            print(f'{"":38} {off[key]:.1e} {key}')
        count = sum(value > 1.0 for value in over.values())
        print(f'{"":38} {count} of {len(over)} names beyond their tolerance', flush=True)
    return good


if __name__ == '__main__':
    sys.exit(main())
