# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Count the faults of logs that `find_faults` names first, ``python -m bench.corrupted_logs``.

Half 0 of robots, sensors, seeds and faults was for building, half 1 is for the count alone. A log
holds a fault if correcting it explains more than three standard deviations beyond usual errors of
masses and FT matrices, fitted on both sides.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bench import log_streams as streams
from bench.arms import ARMS, CONFIGS, mounted
from inertial_estimation.arrays import Array
from inertial_estimation.calibration.tool import ToolMotion, fit_tool
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.fault_equations import on_grid
from inertial_estimation.estimation.fault_hypotheses import FaultSearch, find_faults
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Level
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import replay
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

IMUS = (*streams.IMUS, *(f'{s}_{k}' for k in ('upper_arm', 'forearm', 'lower_leg') for s in 'lr'))
TOOL = (
    '<robot name="arm"><link name="flange"/><link name="tool"><inertial><origin xyz="0 0 {}"/>'
    '<mass value="{}"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/>'
    '</inertial></link><link name="imu"/><joint name="wrist" type="fixed"><parent link="flange"/>'
    '<child link="tool"/></joint><joint name="imu" type="fixed"><parent link="tool"/>'
    '<child link="imu"/><origin rpy="{}"/></joint><sensor name="wrist_ft" type="force_torque">'
    '<parent joint="wrist"/><force_torque><frame>child</frame>'
    '<measure_direction>child_to_parent</measure_direction></force_torque></sensor></robot>'
)
HELD = 4.5
"""Three standard deviations [nats]."""


class Case(NamedTuple):
    """A log, its contacts, and what is made wrong in each half."""

    robot: Robot
    samples: SampleBatch
    contacts: tuple[str, ...]
    wrong: tuple[str, ...]
    """FT sensors, IMUs, pairs of joints, links."""


def batch(t: Array, q: Array, w: Array, a: Array, F: Array, tau: Array | None = None):
    """Return samples; derivatives follow from the log."""
    none, stamps = np.zeros_like(q), (1e18 + 1e9 * t).astype(np.int64)
    return SampleBatch(stamps, q, none, none, w, a, np.zeros_like(w), F, efforts=tau)


def humanoid(half: int, seed: int, imus: tuple[str, ...]) -> Case:
    """Return a simulated iCub held at its left sole."""
    robot = Robot.from_urdf(streams.icub_urdf(), ft_sensors=streams.FTS, imus=imus)
    log = streams.humanoid_log(seed=seed, imus=imus)
    joints = log['/joint_states']
    q = joints.values[:, [joints.names.index(name) for name in robot.joint_names]]
    imu = np.stack([log[f'/imu/{name}'].values for name in imus], axis=1)
    F = np.stack([log[f'/ft/{one.name}'].values for one in robot.ft_sensors], axis=1)
    wrong = (
        ('r_leg_ft', 'l_arm_ft', 'root_link', 'r_knee r_hip_roll', 'r_lower_leg'),
        ('l_leg_ft', 'r_arm_ft', imus[-1], 'r_shoulder_pitch r_elbow', 'r_upper_leg'),
    )[half]
    samples = batch(joints.seconds, q, imu[..., :3], imu[..., 3:], F)
    return Case(robot, samples, ('l_sole',), wrong)


def real(half: int, name: str, urdf: str, part: tuple[float, float], wrong: Any) -> Case:
    """Return a part [s] of a real iCub's log."""
    settings = EstimatorSettings.from_yaml(Path(__file__).parents[1] / 'config' / f'{name}.yaml')
    robot = build_robot(settings, (streams.DATA / 'models' / urdf).read_text())
    with tempfile.TemporaryDirectory() as folder:
        path = streams.DATA / name / 'setup07' / 'bag'
        if 'yoga' in name:
            path = Path(streams.write_log(Path(folder), streams.yoga_log(13.5, 65.0)))
        log = open_log(path, robot, settings)
    kept = np.flatnonzero(
        (log.times - log.times[0] >= part[0]) & (log.times - log.times[0] < part[1])
    )
    return Case(robot, log.samples.take(kept), settings.contacts, wrong[half])


def tool(half: int, name: str) -> Case:
    """Return a wrist FT sensor with an accelerometer: in motion, or 30 still poses."""
    if name == 'ntnu':
        robot = Robot.from_urdf(TOOL.format(0.044, 0.9323, '-1.5708 1.5708 0'), imus=['imu'])
        log = streams.ntnu_log('2-vibrations' if half else '1-baseline')
        (t, F, *_), (s, raw, *_) = log['/fts/wrench'], log['/imu']
        kept = (t >= s[0]) & (t <= s[-1]) & np.append(True, np.diff(t) > 0.0)
        t, F = t[kept] - t[0], F[kept]
        a = np.stack([np.interp(t + log['/fts/wrench'].seconds[0], s, c) for c in raw[:, 3:].T], 1)
        a -= (-0.0359, 0.0873, 0.7562)
    else:
        robot = Robot.from_urdf(TOOL.format(0.052, 12.15 / 9.81, '0 0 0'), imus=['imu'])
        rows = np.genfromtxt(streams.DATA / 'axia80_static' / 'poses60.csv', delimiter=',')[1:]
        rows = rows[half::2]
        R = np.array([pin.Quaternion(*r[[7, 4, 5, 6]]).matrix() for r in rows])
        F = np.concatenate([rows[:, None, 8:11] @ R, rows[:, None, 11:] @ R], axis=2)[:, 0]
        a, t = 9.81 * R[:, 2], np.arange(float(len(F)))
    empty = np.zeros((len(t), 0))
    samples = batch(t, empty, np.zeros((len(t), 1, 3)), a[:, None], F[:, None])
    return Case(robot, samples, ('flange',), ('wrist_ft', 'imu', 'tool'))


def arm(half: int, name: str) -> Case:
    """Return an arm with efforts."""
    (config, urdf, *_), log, wrong = ARMS[name], *ARM_LOGS[name][half]
    settings = IdentifySettings.from_yaml(CONFIGS / f'identify_{config}.yaml')
    robot = settings.build_robot(mounted((streams.DATA / urdf).read_text()))
    samples = open_log(streams.DATA / log, robot, layout=settings.log).samples
    return Case(robot, samples, (), wrong)


ARM_LOGS = {
    'Panda': (('panda_excitation/log.npz@0:7', ('panda_joint4 panda_joint2', 'panda_link3')),
              ('panda_excitation/log.npz@7:14', ('panda_joint6 panda_joint4', 'panda_link4'))),
    'UR10e': (('ur10e/fourier_30s_12h.npz@6:35',
               ('elbow_joint shoulder_lift_joint', 'forearm_link')),
              ('ur10e/fourier_40s_12h.npz@6:35', ('wrist_1_joint elbow_joint', 'forearm_link'))),
    'TX40': (('staubli_tx40/train.npz@0:2.8', ('joint_2 joint_3', 'link_2')),
             ('staubli_tx40/train.npz@2.8:5.6', ('joint_3 joint_5', 'link_3'))),
    'TIAGo': (('tiago/train.npz@0:17.6', ('arm_2_joint arm_4_joint', 'arm_2_link')),
              ('tiago/train.npz@17.6:35.2', ('arm_4_joint arm_3_joint', 'arm_4_link'))),
}  # fmt: skip
"""Log, and what is made wrong, of each half."""
CASES = {
    'humanoid, 1 IMU': lambda half: humanoid(half, half, ('root_link',)),
    'humanoid, 13 IMUs': lambda half: humanoid(half, 2 + half, IMUS),
    'yoga': lambda half: real(half, 'icub_yoga_left', 'icub_v2_5.urdf',
        ((0.0, 24.0), (24.0, 60.0))[half],
        (('r_leg_ft', 'r_knee r_hip_roll', 'r_lower_leg'),
         ('r_foot_ft', 'r_hip_pitch r_ankle_pitch', 'r_upper_leg'))),
    'tipping': lambda half: real(half, 'icub_foot_tipping', 'icub_genova01.urdf', (0.0, 6.8),
        (('r_leg_ft', 'r_knee r_hip_roll', 'r_lower_leg'), ('l_leg_ft', 'l_lower_leg'))),
    'NTNU': lambda half: tool(half, 'ntnu'),
    'Axia': lambda half: tool(half, 'axia'),
    **{name: partial(arm, name=name) for name in ARM_LOGS},
}  # fmt: skip


def edited(samples: SampleBatch, name: str, column: Any, change: Any) -> SampleBatch:
    """Return samples with some columns changed."""
    values = getattr(samples, name).copy()
    values[:, column] = change(values[:, column])
    return replace(samples, **{name: values})


def faults(case: Case, rng: np.random.Generator) -> Iterator[tuple[str, str, Robot, SampleBatch]]:
    """Yield subject, kind, robot and samples of each fault."""
    robot, x, t = case.robot, case.samples, 1e-9 * case.samples.stamp_ns
    fts, imus = ([one.name for one in part] for part in (robot.ft_sensors, robot.imus))
    joints, still = list(robot.joint_names), np.median(np.diff(t)) > 0.5
    late: Any = lambda d: lambda F: np.stack([np.interp(t - d, t, c) for c in F.T], 1)  # noqa: E731
    jump, axis = np.outer(t > t[0] + rng.uniform(0.3, 0.7) * np.ptp(t), streams.JUMP), np.eye(3)
    wrenches: dict[str, Any] = {
        'axes': streams.swapped, 'sign': lambda F: -F, 'gain': lambda F: 1.2 * F,
        'unit': lambda F: F * np.repeat([1.0, 1e3], 3),
    } | ({} if still else {
        'delay': late(0.02), 'delay 50 ms': late(0.05), 'jump': lambda F: F + jump,
        'drift': streams.drift, 'frozen': streams.held, 'saturated': streams.clipped,
    })  # fmt: skip
    for name in case.wrong:
        if name in fts:
            for kind, change in wrenches.items():
                yield name, kind, robot, edited(x, 'ft_readings', fts.index(name), change)
        elif name in imus:
            k, fields = imus.index(name), ('proper_accelerations', 'angular_velocities')
            for degrees in (90.0, 180.0):
                R, turned = pin.exp3(np.radians(degrees) * axis[rng.integers(3)]), x
                for field in fields:
                    turned = edited(turned, field, k, lambda v, R=R: v @ R)
                yield name, 'turned', robot, turned
            for kind, change in (('bias', lambda a: a + np.array([0.3, 0.4, 0.0])),
                                 ('unit', lambda a: a / streams.G)):  # fmt: skip
                yield name, kind, robot, edited(x, fields[0], k, change)
        elif ' ' in name:
            i, j = (joints.index(one) for one in name.split())
            for kind, change in (('sign', lambda q: -q), ('offset', lambda q: q + np.radians(5))):
                yield joints[i], kind, robot, edited(x, 'positions', i, change)
            pair = edited(x, 'positions', [i, j], lambda q: q[:, ::-1])
            yield ' '.join(joints[k] for k in sorted((i, j))), 'exchanged', robot, pair
            yield 'joint states', 'unit', robot, edited(x, 'positions', slice(None), np.degrees)
        else:
            parameters = robot.parameters.copy()
            parameters[robot.link_names.index(name)] *= 2.0
            yield name, 'mass', robot.with_parameters(parameters), x


def of_messages(half: int, folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield subject, kind and findings of faults of the messages of a real iCub, and of a tool."""
    config = Path(__file__).parents[1] / 'config/icub_yoga_left.yaml'
    settings = EstimatorSettings.from_yaml(config)
    robot = build_robot(settings, (streams.DATA / 'models' / 'icub_v2_5.urdf').read_text())
    log = streams.yoga_log(13.5 + 10.0 * half, 23.5 + 10.0 * half)
    side, ft = (('right', 'r_leg_ft'), ('left', 'r_foot_ft'))[half]
    joint = f'{side[0]}_knee'
    part, topic = f'/icub/{side}_leg/joint_states', settings.ft_of(ft).topic
    one, other = log[part], log[topic]
    left = [k for k, name in enumerate(one.names) if name != joint]
    columns = np.hstack([np.array(left) + k * len(one.names) for k in range(3)])
    names = tuple(one.names[k] for k in left)
    without = one._replace(values=np.ascontiguousarray(one.values[:, columns]), names=names)
    t = other.seconds
    wrong = {
        ('', 'none'): {},
        (joint, 'missing'): {part: without},
        (ft, 'repeated'): {topic: other._replace(seconds=t[np.arange(len(t)) // 5 * 5])},
        (ft, 'back'): {topic: other._replace(seconds=t - (t > np.median(t)))},
    }
    for number, ((subject, kind), change) in enumerate(wrong.items()):
        (place := folder / f'{half} {number}').mkdir()
        bag = streams.write_log(place, log | change)
        found = replay(robot, bag, settings, deviations_rate=0.0).findings
        codes = ('missing', 'refused_message', 'clock', 'fault')
        yield subject, kind, [str(one) for one in found if one.code in codes]
    case = tool(half, 'ntnu')
    x, H = case.samples, case.robot.imus[0].L_H_S
    t = 1e-9 * (x.stamp_ns - x.stamp_ns[0])
    for subject, kind, share in (('', 'none', 0.0), ('tool', 'contact', 0.5)):
        push = np.outer(t % 2.0 < 2.0 * share, [8.0, 0.0, -12.0, 0.0, 0.8, 0.0])
        readings, felt = x.ft_readings[:, 0] + push, x.proper_accelerations[:, 0]
        found = fit_tool(ToolMotion(t, readings, t, felt, sensor_H_imu=H)).findings('tool')
        yield subject, kind, [f'tool {one}' for one in found if one.level == Level.ERROR]


def effect(case: Case, robot: Robot, samples: SampleBatch) -> float:
    """Return the rms change of torques, without joints of residual moments [Nm]."""
    grids, found = [on_grid(x) for x in (case.samples, samples)], []
    rows = np.linspace(0, len(grids[0]) - 1, 200).round().astype(int)
    # A late signal starts later: the same sensors on both sides.
    before, after = (np.isfinite(x.ft_readings[rows]) for x in grids)
    rows = rows[(before == after).all(axis=(1, 2))]
    for one, x in zip((case.robot, robot), grids, strict=True):
        estimator = WrenchEstimator(one, [Contact(frame) for frame in case.contacts])
        estimate = estimator.batch(x.take(rows))
        moments = estimate.residuals[..., 3:].reshape(len(rows), -1)
        found.append(estimate.torques if one.joint_names else moments)
    return float(np.nanmax(np.sqrt(np.nanmean((found[1] - found[0]) ** 2, axis=0))))


def information(case: Case, robot: Robot, samples: SampleBatch) -> float:
    """Return what the right correction gains beside usual errors on both sides [nats]."""
    wrong, right = (
        FaultSearch(model, x, x.ft_readings, case.contacts)
        for model, x in ((robot, samples), (case.robot, case.samples))
    )
    right.weights, right.floors, right.most = wrong.weights, wrong.floors, wrong.most
    (before, price), (after, other) = (one.beside_usual(one.null) for one in (wrong, right))
    return wrong.score(after, before) + price - other


def main() -> None:
    """Print each fault, and how many are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--half', type=int, nargs='+', choices=(0, 1), default=[1])
    parser.add_argument('--log', nargs='+', choices=[*CASES, 'messages'])
    chosen = parser.parse_args()
    for half in chosen.half:
        counts = Counter[tuple[str, str]]()
        for log in chosen.log or [*CASES, 'messages']:
            for subject, kind, size, held, verdict, names in rows(half, log):
                kinds = [f'> {limit} Nm' for limit in (0.15, 1.0) if size > limit]
                kinds += ['> 1.0 Nm and held'] if size > 1.0 and held > HELD else []
                kinds += [] if size >= 0.0 else ['messages' if subject else 'clean']
                counts.update((one, verdict) for one in kinds)
                fault = f'{log:18}{subject:30}{kind:12}{size:8.2f} Nm {held:7.0f} nats'
                sys.stdout.write(f'{fault} {verdict:7}{names}\n')
                sys.stdout.flush()
        total = (f'{what} {verdict}: {n}' for (what, verdict), n in sorted(counts.items()))
        sys.stdout.write(f'half {half}: {", ".join(total)}\n')


def rows(half: int, log: str) -> Iterator[tuple[str, str, float, float, str, str]]:
    """Yield subject, kind, effect, information, verdict and what was named of each fault."""
    if log == 'messages':
        with tempfile.TemporaryDirectory() as folder:
            for subject, kind, found in of_messages(half, Path(folder)):
                right = any(subject in one for one in found)
                verdict = 'silent' if not found else 'first' if subject and right else 'wrong'
                yield subject, kind, np.nan, np.nan, verdict, '; '.join(found)
        return
    case = CASES[log](half)
    clean = ('', 'none', case.robot, case.samples)
    for subject, kind, robot, samples in (clean, *faults(case, np.random.default_rng(9))):
        named = find_faults(robot, samples, samples.ft_readings, case.contacts)
        right = [one.subject == subject and one.kind.split()[0] == kind.split()[0]
                 for one in named]  # fmt: skip
        verdict = 'silent' if not named else 'first' if right[0] else 'wrong'
        verdict = 'equal' if any(right[1:]) else verdict
        size, held = np.nan, np.nan
        if subject:
            size, held = effect(case, robot, samples), information(case, robot, samples)
            held = np.inf if kind in ('frozen', 'saturated') else held  # seen in the readings
        names = '; '.join(f'{one.subject} {one.what}' for one in named)
        yield subject, kind, size, held, verdict, names


if __name__ == '__main__':
    main()
