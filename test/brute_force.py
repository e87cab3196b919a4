# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The estimator once more, written straight from the thesis, as slowly and plainly as possible.

Every link gets its motion from its own IMU, step by step along the tree; every sum is a loop over
links with a written-out 6 x 6 transform. Nothing is shared with the engine but the data of
`Robot` (poses, axes, parameters, sensors); Pinocchio is not used. Readings need not fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Link
from inertial_estimation.sample import Sample

Array = NDArray[np.float64]


class Motion(NamedTuple):
    """How a link moves, in its own axes, at its own origin."""

    angular_velocity: Array
    proper_acceleration: Array
    angular_acceleration: Array


class Answer(NamedTuple):
    """What `estimate` finds; rows as in `WrenchEstimate`, submodels those that are left."""

    wrenches: Array
    torques: Array
    external_torques: Array
    residuals: dict[int, Array]
    """By the root link of the submodel."""
    ranks: dict[int, int]
    """Likewise."""


def estimate(
    robot: Robot,
    sample: Sample,
    contacts: Sequence[Contact] = (),
    *,
    imus: Iterable[int] | None = None,
    fts: Iterable[int] | None = None,
    length_scale: float = 0.1,
    rank_tolerance: float = 1e-3,
    arrays: bool = False,
) -> Answer:
    """
    Estimate with the given IMUs and FT sensors only (all by default).

    With arrays, links with three accelerometers or more tell angular accelerations.
    """
    imus = list(range(len(robot.imus)) if imus is None else imus)
    fts = list(range(len(robot.ft_sensors)) if fts is None else fts)
    poses = link_poses(robot, sample.positions)
    net = net_wrenches(robot, link_motions(robot, sample, imus, arrays=arrays))
    through = {k: child_on_parent(robot, k, sample.ft_readings[k]) for k in fts}
    member_of = submodel_roots(robot, fts)
    wrenches = np.zeros((len(contacts), 6))
    residuals, ranks = {}, {}
    for root in sorted(set(member_of)):
        total = external_sum(robot, poses, net, through, member_of, root)
        rows = [
            c for c, contact in enumerate(contacts) if member_of[link_of(robot, contact)] == root
        ]
        found = split(robot, poses, root, total, [contacts[c] for c in rows], fts, member_of,
                      length_scale, rank_tolerance)  # fmt: skip
        wrenches[rows], residuals[root], ranks[root] = found
    on_link = {k: np.zeros(6) for k in range(len(robot.links))}
    for contact, wrench in zip(contacts, wrenches, strict=True):
        link, pose = robot.frame(contact.frame)
        on_link[link] = on_link[link] + wrench_transform(pose) @ wrench
    torques = local_torques(robot, poses, net, on_link, through, member_of)
    return Answer(wrenches, torques, external_torques(robot, poses, on_link), residuals, ranks)


def hat(v: Array) -> Array:
    """Return the matrix of the cross product."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def wrench_transform(A_H_B: Array) -> Array:
    """Return A_Xf_B, the 6 x 6 matrix that moves wrenches from B to A [T 2.2]."""
    R, p = A_H_B[:3, :3], A_H_B[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [hat(p) @ R, R]])


def joint_pose(link: Link, q: Array) -> Array:
    """Return the pose of a link in its parent; an FT sensor does not move."""
    if link.joint < 0:
        return np.array(link.P_H_L)
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hat(link.motion[3:]), link.motion[:3]
    return link.P_H_L @ expm(twist * q[link.joint])


def link_poses(robot: Robot, q: Array) -> list[Array]:
    """Return the pose of every link in the root link."""
    poses: list[Array] = []
    for link in robot.links:
        poses.append(np.eye(4) if link.parent < 0 else poses[link.parent] @ joint_pose(link, q))
    return poses


def neighbours(robot: Robot, k: int) -> list[int]:
    """Return the links next to link k: its parent first, then its children."""
    children = [c for c, link in enumerate(robot.links) if link.parent == k]
    return ([robot.links[k].parent] if robot.links[k].parent >= 0 else []) + children


def edge(robot: Robot, a: int, b: int) -> Link:
    """Return the link that holds the joint or sensor between two neighbours."""
    return robot.links[b if robot.links[b].parent == a else a]


def distances(robot: Robot, start: int) -> list[tuple[int, int]]:
    """Return the number of joints and that of sensors between a link and every other one."""
    found = {start: (0, 0)}
    front = [start]
    while front:
        front = [n for k in front for n in neighbours(robot, k) if n not in found]
        for k in front:
            n = next(n for n in neighbours(robot, k) if n in found)
            sensor = edge(robot, k, n).joint < 0
            found[k] = (found[n][0] + (not sensor), found[n][1] + sensor)
    return [found[k] for k in range(len(robot.links))]


def owners(robot: Robot, sources: Sequence[int]) -> list[int]:
    """
    Return which source (given by its link) serves each link [T 4.4.4].

    The nearest one within the submodel; where that has none, the one that serves a neighbour and
    is nearest. Ties go to the side of the URDF root, then to the source that comes first.
    """
    roots = submodel_roots(robot, range(len(robot.ft_sensors)))
    apart = [[sum(steps) for steps in distances(robot, link)] for link in sources]
    owner: dict[int, int] = {}
    for k in range(len(robot.links)):
        near = [s for s, link in enumerate(sources) if roots[link] == roots[k]]
        if near:
            shortest = min(apart[s][k] for s in near)
            owner[k] = _on_the_root_side(robot, k, [s for s in near if apart[s][k] == shortest],
                                         apart, owner)  # fmt: skip
    while len(owner) < len(robot.links):
        offers = [
            (apart[owner[n]][n] + 1, n != robot.links[k].parent, owner[n], k)
            for k in range(len(robot.links))
            if k not in owner
            for n in neighbours(robot, k)
            if n in owner
        ]
        _, _, s, k = min(offers)
        owner[k] = s
    return [owner[k] for k in range(len(robot.links))]


def owners_of_motion(robot: Robot, sources: Sequence[int]) -> list[int]:
    """
    Return which source the motion of each link comes from where it is not measured [T 4.4.3].

    The one with the least joints in between, then the least FT sensors; ties as for `owners`.
    """
    apart = [distances(robot, link) for link in sources]
    owner: dict[int, int] = {}
    for k in range(len(robot.links)):
        least = min(steps[k] for steps in apart)
        tied = [s for s, steps in enumerate(apart) if steps[k] == least]
        owner[k] = _on_the_root_side(robot, k, tied, apart, owner)
    return [owner[k] for k in range(len(robot.links))]


def _on_the_root_side(
    robot: Robot, k: int, tied: list[int], apart: Sequence[Sequence], owner: dict[int, int]
) -> int:
    """Choose among sources that are equally near; links nearer to the root have chosen before."""
    parent = robot.links[k].parent
    above = [s for s in tied if parent >= 0 and apart[s][parent] < apart[s][k]]
    return owner[parent] if above else tied[0]


def link_motions(
    robot: Robot, sample: Sample, imus: Sequence[int], *, arrays: bool = False
) -> list[Motion]:
    """Return the motion of every link, from its own IMUs or from the fixed link [T 4.11, 4.15]."""
    if robot.fixed_frame:
        link, pose = robot.frame(robot.fixed_frame)
        still = Motion(np.zeros(3), -robot.gravity, np.zeros(3))
        return walk(robot, sample, link, motion_of_link(pose, still))
    bodies = body_motions(robot, sample, imus, arrays=arrays)
    trees = [walk(robot, sample, link, motion) for link, motion in bodies.items()]
    served_by = owners(robot, list(bodies))
    return [trees[served_by[k]][k] for k in range(len(robot.links))]


def body_motions(
    robot: Robot, sample: Sample, imus: Sequence[int], *, arrays: bool = False
) -> dict[int, Motion]:
    """
    Return the motion of each link that carries some of the IMUs, in its frame.

    A triple that is NaN, or that the IMU does not measure, is absent.
    """
    gyros: dict[int, list[int]] = {robot.imus[k].link: [] for k in imus}
    accs: dict[int, list[int]] = {robot.imus[k].link: [] for k in imus}
    for k in imus:
        imu = robot.imus[k]
        if imu.measures != 'accelerometer' and not np.isnan(sample.angular_velocities[k]).all():
            gyros[imu.link].append(k)
        if imu.measures != 'gyroscope' and not np.isnan(sample.proper_accelerations[k]).all():
            accs[imu.link].append(k)
    links = [link for link in gyros if gyros[link] or accs[link]]
    nothing = np.zeros(3)

    def nearest(link: int, known: list[int]) -> int:
        return known[owners_of_motion(robot, known)[link]]

    def average(values: Array, rows: list[int], noise: str) -> Array:
        weights = [getattr(robot.imus[k], noise) ** -2 for k in rows]
        turned = [robot.imus[k].L_H_S[:3, :3] @ values[k] for k in rows]
        return sum(w * x for w, x in zip(weights, turned)) / sum(weights)

    turning = [link for link in links if gyros[link]]
    spinning = [link for link in links if is_array(robot, accs[link])] if arrays else turning
    turn, spin, found = {}, {}, {}
    for link in turning:
        turn[link] = average(sample.angular_velocities, gyros[link], 'gyroscope_noise')
        if not arrays:
            spin[link] = average(sample.angular_accelerations, gyros[link], 'gyroscope_noise')
    for link in set(links) - set(turning):
        source = nearest(link, turning)
        known = Motion(turn[source], nothing, spin.get(source, nothing))
        reached = walk(robot, sample, source, known)[link]
        turn[link] = reached.angular_velocity
        if not arrays:
            spin[link] = reached.angular_acceleration
    if arrays:
        for link in spinning:
            spin[link] = array_acceleration(robot, sample, accs[link], turn[link])
        for link in set(links) - set(spinning):
            source = nearest(link, spinning)
            known = Motion(turn[source], nothing, spin[source])
            spin[link] = walk(robot, sample, source, known)[link].angular_acceleration
    shaken = [link for link in links if accs[link]]
    for link in shaken:
        moved = np.full_like(sample.proper_accelerations, np.nan)
        for k in accs[link]:
            L_H_S = robot.imus[k].L_H_S
            R = L_H_S[:3, :3]
            reading = Motion(R.T @ turn[link], sample.proper_accelerations[k], R.T @ spin[link])
            moved[k] = R.T @ motion_of_link(L_H_S, reading).proper_acceleration
        mean = average(moved, accs[link], 'accelerometer_noise')
        found[link] = Motion(turn[link], mean, spin[link])
    for link in set(links) - set(shaken):
        source = nearest(link, shaken)
        reached = walk(robot, sample, source, found[source])[link]
        found[link] = Motion(turn[link], reached.proper_acceleration, spin[link])
    return {link: found[link] for link in links}


def is_array(robot: Robot, rows: Sequence[int]) -> bool:
    """Tell whether accelerometers are off every line by 5 mm, as a weighted root mean square."""
    if not rows:
        return False
    share = np.array([robot.imus[k].accelerometer_noise ** -2 for k in rows])
    share /= share.sum()
    points = np.array([robot.imus[k].L_H_S[:3, 3] for k in rows])
    apart = points - share @ points
    return sum(np.linalg.eigvalsh((apart.T * share) @ apart)[:2]) >= 0.005**2


def array_acceleration(robot: Robot, sample: Sample, rows: Sequence[int], turn: Array) -> Array:
    """Return the angular acceleration that the accelerometers of one link tell together."""
    A, b = [], []
    for k in rows:
        imu = robot.imus[k]
        R, r = imu.L_H_S[:3, :3], imu.L_H_S[:3, 3]
        y = R @ sample.proper_accelerations[k] - np.cross(turn, np.cross(turn, r))
        A.append(np.hstack([np.eye(3), -hat(r)]) / imu.accelerometer_noise)
        b.append(y / imu.accelerometer_noise)
    return np.linalg.lstsq(np.vstack(A), np.concatenate(b), rcond=None)[0][3:]


def motion_of_link(L_H_S: Array, reading: Motion) -> Motion:
    """Return the motion of a link from that of a frame S on it [T 4.11, sign corrected]."""
    R, r = L_H_S[:3, :3], L_H_S[:3, 3]
    w, dw = R @ reading.angular_velocity, R @ reading.angular_acceleration
    a = R @ reading.proper_acceleration - np.cross(dw, r) - np.cross(w, np.cross(w, r))
    return Motion(w, a, dw)


def motion_of_frame(L_H_S: Array, link: Motion) -> Motion:
    """Return the motion of a frame S on a link: what an ideal IMU reads there."""
    R, r = L_H_S[:3, :3], L_H_S[:3, 3]
    w, a, dw = link
    at_S = a + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    return Motion(R.T @ w, R.T @ at_S, R.T @ dw)


def walk(robot: Robot, sample: Sample, start: int, motion: Motion) -> list[Motion]:
    """Return the motion of every link, from link to link away from the start."""
    found = {start: motion}
    front = [start]
    while front:
        k = front.pop()
        for n in neighbours(robot, k):
            if n not in found:
                found[n] = cross_joint(
                    edge(robot, k, n), found[k], sample, robot.links[n].parent == k
                )
                front.append(n)
    return [found[k] for k in range(len(robot.links))]


def cross_joint(link: Link, motion: Motion, sample: Sample, downwards: bool) -> Motion:
    """Return the motion on the other side of the joint or sensor above a link."""
    R, p = np.split(joint_pose(link, sample.positions)[:3], [3], axis=1)
    p = p[:, 0]
    moves = link.joint >= 0
    qd = sample.velocities[link.joint] if moves else 0.0
    qdd = sample.accelerations[link.joint] if moves else 0.0
    slide, axis = link.motion[:3], link.motion[3:]
    w, a, dw = motion
    if downwards:
        w_P = R.T @ w
        at_p = a + np.cross(dw, p) + np.cross(w, np.cross(w, p))
        return Motion(
            w_P + axis * qd,
            R.T @ at_p + 2 * np.cross(w_P, slide * qd) + slide * qdd,
            R.T @ dw + axis * qdd + np.cross(w_P, axis * qd),
        )
    w_P = w - axis * qd
    dw_P = R @ (dw - axis * qdd - np.cross(w_P, axis * qd))
    at_p = R @ (a - 2 * np.cross(w_P, slide * qd) - slide * qdd)
    w_P = R @ w_P
    return Motion(w_P, at_p - np.cross(dw_P, p) - np.cross(w_P, np.cross(w_P, p)), dw_P)


def net_wrenches(robot: Robot, motions: Sequence[Motion]) -> list[Array]:
    """Return the net wrench of every link about its origin, in its axes [T 4.9]."""
    wrenches = []
    for parameters, (w, a, dw) in zip(robot.parameters, motions, strict=True):
        m, h = parameters[0], parameters[1:4]
        xx, xy, yy, xz, yz, zz = parameters[4:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        M = np.block([[m * np.eye(3), -hat(h)], [hat(h), inertia]])
        spin = np.block([[hat(w), np.zeros((3, 3))], [np.zeros((3, 3)), hat(w)]])
        wrenches.append(M @ [*a, *dw] + spin @ M @ [0.0, 0.0, 0.0, *w])
    return wrenches


def child_on_parent(robot: Robot, k: int, reading: Array) -> Array:
    """Return what the child exerts on the parent, in and about the child link's frame [T 4.20]."""
    sensor = robot.ft_sensors[k]
    return wrench_transform(sensor.child_H_sensor) @ (sensor.direction * reading)


def submodel_roots(robot: Robot, fts: Iterable[int]) -> list[int]:
    """Return, for every link, the root of its submodel when the given sensors cut [T 4.5.1]."""
    cuts = {robot.ft_sensors[k].child for k in fts}
    roots: list[int] = []
    for k, link in enumerate(robot.links):
        roots.append(k if link.parent < 0 or k in cuts else roots[link.parent])
    return roots


def external_sum(
    robot: Robot,
    poses: Sequence[Array],
    net: Sequence[Array],
    through: dict[int, Array],
    member_of: Sequence[int],
    root: int,
) -> Array:
    """Return the sum of external wrenches on a submodel, about its root link [T 4.19]."""
    B_H_A = np.linalg.inv(poses[root])
    total = np.zeros(6)
    for k, wrench in enumerate(net):
        if member_of[k] == root:
            total = total + wrench_transform(B_H_A @ poses[k]) @ wrench
    for k, wrench in through.items():
        sensor = robot.ft_sensors[k]
        moved = wrench_transform(B_H_A @ poses[sensor.child]) @ wrench
        if member_of[sensor.parent] == root:
            total = total - moved
        if member_of[sensor.child] == root:
            total = total + moved
    return total


def link_of(robot: Robot, contact: Contact) -> int:
    """Return the link of a contact."""
    return robot.frame(contact.frame)[0]


def split(
    robot: Robot,
    poses: Sequence[Array],
    root: int,
    total: Array,
    contacts: Sequence[Contact],
    fts: Iterable[int],
    member_of: Sequence[int],
    length_scale: float,
    rank_tolerance: float,
) -> tuple[Array, Array, int]:
    """Return the wrenches of a submodel's contacts, what is left over, and the rank [T 4.5.3]."""
    B_H_A = np.linalg.inv(poses[root])
    wrenches = np.zeros((len(contacts), 6))
    columns, places = [], []
    for c, contact in enumerate(contacts):
        link, pose = robot.frame(contact.frame)
        B_Xf_C = wrench_transform(B_H_A @ poses[link] @ pose)
        if contact.kind == 'known':
            wrenches[c] = contact.wrench
            total = total - B_Xf_C @ wrenches[c]
        for wrench in unit_wrenches(contact, length_scale):
            columns.append(B_Xf_C @ wrench)
            places.append((c, wrench))
    if not columns:
        return wrenches, total, 0
    A = np.array(columns).T
    whiten = whitening(robot, poses, root, fts, member_of, length_scale)
    x = np.linalg.pinv(whiten @ A, rcond=rank_tolerance) @ whiten @ total
    for value, (c, wrench) in zip(x, places, strict=True):
        wrenches[c] += value * wrench
    s = np.linalg.svd(whiten @ A, compute_uv=False)
    return wrenches, total - A @ x, int((s > rank_tolerance * s[0]).sum())


def unit_wrenches(contact: Contact, length_scale: float) -> list[Array]:
    """Return the wrenches of unit length that span a contact; a moment is worth `length_scale`."""
    if contact.kind == 'wrench':
        return list(np.diag([1.0, 1.0, 1.0, length_scale, length_scale, length_scale]))
    point = np.array(contact.point)
    forces = {'force': np.eye(3), 'axial_force': [contact.direction], 'known': []}[contact.kind]
    return [np.array([*force, *np.cross(point, force)]) for force in forces]


def whitening(
    robot: Robot,
    poses: Sequence[Array],
    root: int,
    fts: Iterable[int],
    member_of: Sequence[int],
    length_scale: float,
) -> Array:
    """Return the inverse root of the covariance of the FT readings' sum about the root link."""
    noise = np.diag([1.0, 1.0, 1.0, length_scale, length_scale, length_scale])
    factors = []
    for k in fts:
        sensor = robot.ft_sensors[k]
        if root in (member_of[sensor.parent], member_of[sensor.child]):
            B_H_S = np.linalg.inv(poses[root]) @ poses[sensor.child] @ sensor.child_H_sensor
            factors.append(wrench_transform(B_H_S) @ noise)
    if not factors:
        factors = [noise]
    values, vectors = np.linalg.eigh(sum(F @ F.T for F in factors))
    return (vectors / np.sqrt(values)) @ vectors.T


def beyond(robot: Robot, k: int) -> set[int]:
    """Return link k and every link that hangs from it, seen from the URDF root."""
    found = {k}
    for n, link in enumerate(robot.links):
        if link.parent in found:
            found.add(n)
    return found


def local_torques(
    robot: Robot,
    poses: Sequence[Array],
    net: Sequence[Array],
    on_link: dict[int, Array],
    through: dict[int, Array],
    member_of: Sequence[int],
) -> Array:
    """Return each joint's torque from its submodel away from the root [T 4.25]."""
    torques = np.zeros(len(robot.joint_names))
    for k, link in enumerate(robot.links):
        if link.joint < 0:
            continue
        F_H_A = np.linalg.inv(poses[k])
        own = {n for n in beyond(robot, k) if member_of[n] == member_of[k]}
        total = np.zeros(6)
        for n in own:
            total = total + wrench_transform(F_H_A @ poses[n]) @ (net[n] - on_link[n])
        for s, wrench in through.items():
            sensor = robot.ft_sensors[s]
            if sensor.parent in own:
                total = total - wrench_transform(F_H_A @ poses[sensor.child]) @ wrench
        torques[link.joint] = link.motion @ total
    return torques


def external_torques(robot: Robot, poses: Sequence[Array], on_link: dict[int, Array]) -> Array:
    """Return what external wrenches do to each joint while the base (fixed link or root) rests."""
    base = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else 0
    torques = np.zeros(len(robot.joint_names))
    for k, link in enumerate(robot.links):
        if link.joint < 0:
            continue
        moved = beyond(robot, k)
        sign = 1.0
        if base in moved:
            moved, sign = set(range(len(robot.links))) - moved, -1.0
        for n in moved:
            X = wrench_transform(np.linalg.inv(poses[k]) @ poses[n])
            torques[link.joint] += sign * link.motion @ X @ on_link[n]
    return torques
