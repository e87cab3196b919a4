# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The estimator written straight from the thesis, as slowly and plainly as possible.

Every link gets its motion from its own IMU, step by step along the tree; every sum is a loop over
links with a written-out 6 x 6 transform. Nothing is shared with the engine but the data of
`Robot` (poses, axes, parameters, sensors); Pinocchio is not used. Readings need not fit together.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import expm


class Motion(NamedTuple):
    """Motion of a link, in its own axes, at its own origin."""

    angular_velocity: np.ndarray
    proper_acceleration: np.ndarray
    angular_acceleration: np.ndarray


class Answer(NamedTuple):
    """Results of `estimate`; residuals and ranks by the root link of their submodel."""

    wrenches: np.ndarray
    torques: np.ndarray
    external_torques: np.ndarray
    residuals: dict
    ranks: dict


def estimate(robot, sample, contacts=(), *, imus=None, fts=None, arrays=False, length_scale=0.1,
             rank_tolerance=1e-2):  # fmt: skip
    """Estimate with the given IMUs and FT sensors only; arrays give angular accelerations."""
    imus = list(range(len(robot.imus)) if imus is None else imus)
    fts = list(range(len(robot.ft_sensors)) if fts is None else fts)
    poses = link_poses(robot, sample.positions)
    net = net_wrenches(robot, link_motions(robot, sample, imus, arrays=arrays))
    through = {k: child_on_parent(robot, k, sample.ft_readings[k]) for k in fts}
    member_of = submodel_roots(robot, fts)
    wrenches, residuals, ranks = np.zeros((len(contacts), 6)), {}, {}
    for root in sorted(set(member_of)):
        total = external_sum(robot, poses, net, through, member_of, root)
        rows = [
            c for c, one in enumerate(contacts) if member_of[robot.frame(one.frame)[0]] == root
        ]
        own = [contacts[c] for c in rows]
        white = whitening(robot, poses, root, fts, member_of, length_scale)
        wrenches[rows], residuals[root], ranks[root] = split(
            robot, poses, root, total, own, white, length_scale, rank_tolerance
        )
    on_link = {k: np.zeros(6) for k in range(len(robot.links))}
    for contact, wrench in zip(contacts, wrenches, strict=True):
        link, pose = robot.frame(contact.frame)
        on_link[link] = on_link[link] + wrench_transform(pose) @ wrench
    torques = local_torques(robot, poses, net, on_link, through, member_of)
    return Answer(wrenches, torques, external_torques(robot, poses, on_link), residuals, ranks)


# Geometry


def hat(v):
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def wrench_transform(A_H_B):
    """Return A_Xf_B, the 6 x 6 matrix that moves wrenches from B to A [T 2.47]."""
    R, p = A_H_B[:3, :3], A_H_B[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [hat(p) @ R, R]])


def joint_pose(link, q):
    """Return the pose of a link in its parent; an FT sensor does not move."""
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hat(link.motion[3:]), link.motion[:3]
    return link.P_H_L @ expm(twist * (q[link.joint] if link.joint >= 0 else 0.0))


def link_poses(robot, q):
    """Return the pose of every link in the root link."""
    poses = []
    for link in robot.links:
        poses.append(np.eye(4) if link.parent < 0 else poses[link.parent] @ joint_pose(link, q))
    return poses


# The tree


def neighbours(robot, k):
    """Return the links next to link k: its parent first, then its children."""
    children = [c for c, link in enumerate(robot.links) if link.parent == k]
    return ([robot.links[k].parent] if robot.links[k].parent >= 0 else []) + children


def edge(robot, a, b):
    """Return the link that holds the joint or sensor between two neighbours."""
    return robot.links[b if robot.links[b].parent == a else a]


def beyond(robot, k):
    """Return link k and every link that hangs from it, seen from the URDF root."""
    found = {k}
    for n, link in enumerate(robot.links):
        if link.parent in found:
            found.add(n)
    return found


def submodel_roots(robot, fts):
    """Return the root of each link's submodel when the given sensors cut [T section 4.5.1]."""
    cuts = {robot.ft_sensors[k].child for k in fts}
    roots = []
    for k, link in enumerate(robot.links):
        roots.append(k if link.parent < 0 or k in cuts else roots[link.parent])
    return roots


def distances(robot, start):
    """Return the number of joints and that of sensors between a link and every other one."""
    found, front = {start: (0, 0)}, [start]
    while front:
        front = [n for k in front for n in neighbours(robot, k) if n not in found]
        for k in front:
            n = next(n for n in neighbours(robot, k) if n in found)
            sensor = edge(robot, k, n).joint < 0
            found[k] = (found[n][0] + (not sensor), found[n][1] + sensor)
    return [found[k] for k in range(len(robot.links))]


def owners(robot, sources):
    """
    Return which source (given by its link) serves each link [T section 4.4.4].

    The nearest one within the submodel; where that has none, the one that serves a neighbour and
    is nearest. Ties go to the side of the URDF root, then to the source that comes first.
    """
    roots = submodel_roots(robot, range(len(robot.ft_sensors)))
    apart = [[sum(steps) for steps in distances(robot, link)] for link in sources]
    owner = {}
    for k in range(len(robot.links)):
        near = [s for s, link in enumerate(sources) if roots[link] == roots[k]]
        if near:
            shortest = min(apart[s][k] for s in near)
            tied = [s for s in near if apart[s][k] == shortest]
            owner[k] = _on_the_root_side(robot, k, tied, apart, owner)
    while len(owner) < len(robot.links):
        _, _, s, k = min(
            (apart[owner[n]][n] + 1, n != robot.links[k].parent, owner[n], k)
            for k in range(len(robot.links))
            for n in neighbours(robot, k)
            if k not in owner and n in owner
        )
        owner[k] = s
    return [owner[k] for k in range(len(robot.links))]


def owners_of_motion(robot, sources):
    """
    Return the source of the motion of each link where it is not measured [T section 4.4.3].

    The one with the least joints in between, then the least FT sensors; ties as for `owners`.
    """
    apart = [distances(robot, link) for link in sources]
    owner = {}
    for k in range(len(robot.links)):
        least = min(steps[k] for steps in apart)
        tied = [s for s, steps in enumerate(apart) if steps[k] == least]
        owner[k] = _on_the_root_side(robot, k, tied, apart, owner)
    return [owner[k] for k in range(len(robot.links))]


def _on_the_root_side(robot, k, tied, apart, owner):
    """Choose among sources that are equally near; links nearer to the root have chosen before."""
    parent = robot.links[k].parent
    above = [s for s in tied if parent >= 0 and apart[s][parent] < apart[s][k]]
    return owner[parent] if above else tied[0]


# Motions


def link_motions(robot, sample, imus, *, arrays=False):
    """Return the motion of every link, from its own IMUs or from the fixed link [T 4.11, 4.15]."""
    if robot.fixed_frame:
        link, pose = robot.frame(robot.fixed_frame)
        still = Motion(np.zeros(3), -robot.gravity, np.zeros(3))
        return walk(robot, sample, link, motion_of_link(pose, still))
    bodies = body_motions(robot, sample, imus, arrays=arrays)
    trees = [walk(robot, sample, link, motion) for link, motion in bodies.items()]
    served_by = owners(robot, list(bodies))
    return [trees[served_by[k]][k] for k in range(len(robot.links))]


def body_motions(robot, sample, imus, *, arrays=False):
    """
    Return the motion of each link that carries some of the IMUs, in its frame.

    A triple that is NaN, or that the IMU does not measure, is absent.
    """
    gyros, accs = ({robot.imus[k].link: [] for k in imus} for _ in range(2))
    for k in imus:
        imu = robot.imus[k]
        if imu.measures != 'accelerometer' and not np.isnan(sample.angular_velocities[k]).all():
            gyros[imu.link].append(k)
        if imu.measures != 'gyroscope' and not np.isnan(sample.proper_accelerations[k]).all():
            accs[imu.link].append(k)
    links = [link for link in gyros if gyros[link] or accs[link]]
    nothing = np.zeros(3)

    def average(values, rows, noise):
        weights = [getattr(robot.imus[k], noise) ** -2 for k in rows]
        turned = [robot.imus[k].L_H_S[:3, :3] @ values[k] for k in rows]
        return sum(w * x for w, x in zip(weights, turned)) / sum(weights)

    def carried(link, known, motion_at):
        source = known[owners_of_motion(robot, known)[link]]
        return walk(robot, sample, source, motion_at(source))[link]

    turning = [link for link in links if gyros[link]]
    spinning = [link for link in links if is_array(robot, accs[link])] if arrays else turning
    shaken = [link for link in links if accs[link]]
    turn, spin, found = {}, {}, {}
    for link in turning:
        turn[link] = average(sample.angular_velocities, gyros[link], 'gyroscope_noise')
        if not arrays:
            spin[link] = average(sample.angular_accelerations, gyros[link], 'gyroscope_noise')
    for link in set(links) - set(turning):
        reached = carried(link, turning, lambda s: Motion(turn[s], nothing, spin.get(s, nothing)))
        turn[link] = reached.angular_velocity
        if not arrays:
            spin[link] = reached.angular_acceleration
    if arrays:
        for link in spinning:
            spin[link] = array_acceleration(robot, sample, accs[link], turn[link])
        for link in set(links) - set(spinning):
            reached = carried(link, spinning, lambda s: Motion(turn[s], nothing, spin[s]))
            spin[link] = reached.angular_acceleration
    for link in shaken:
        moved = np.full_like(sample.proper_accelerations, np.nan)
        for k in accs[link]:
            R = robot.imus[k].L_H_S[:3, :3]
            reading = Motion(R.T @ turn[link], sample.proper_accelerations[k], R.T @ spin[link])
            moved[k] = R.T @ motion_of_link(robot.imus[k].L_H_S, reading).proper_acceleration
        mean = average(moved, accs[link], 'accelerometer_noise')
        found[link] = Motion(turn[link], mean, spin[link])
    for link in set(links) - set(shaken):
        reached = carried(link, shaken, lambda s: found[s])
        found[link] = Motion(turn[link], reached.proper_acceleration, spin[link])
    return {link: found[link] for link in links}


def is_array(robot, rows):
    """Tell whether accelerometers are off every line by 5 mm, as a weighted root mean square."""
    if not rows:
        return False
    share = np.array([robot.imus[k].accelerometer_noise ** -2 for k in rows])
    share /= share.sum()
    points = np.array([robot.imus[k].L_H_S[:3, 3] for k in rows])
    apart = points - share @ points
    return sum(np.linalg.eigvalsh((apart.T * share) @ apart)[:2]) >= 0.005**2


def array_acceleration(robot, sample, rows, turn):
    """Return the angular acceleration that the accelerometers of one link determine together."""
    A, b = [], []
    for k in rows:
        imu = robot.imus[k]
        R, r = imu.L_H_S[:3, :3], imu.L_H_S[:3, 3]
        y = R @ sample.proper_accelerations[k] - np.cross(turn, np.cross(turn, r))
        A.append(np.hstack([np.eye(3), -hat(r)]) / imu.accelerometer_noise)
        b.append(y / imu.accelerometer_noise)
    return np.linalg.lstsq(np.vstack(A), np.concatenate(b), rcond=None)[0][3:]


def motion_of_link(L_H_S, reading):
    """Return the motion of a link from that of a frame S on it [T 4.11, sign corrected]."""
    R, r = L_H_S[:3, :3], L_H_S[:3, 3]
    w, dw = R @ reading.angular_velocity, R @ reading.angular_acceleration
    a = R @ reading.proper_acceleration - np.cross(dw, r) - np.cross(w, np.cross(w, r))
    return Motion(w, a, dw)


def motion_of_frame(L_H_S, link):
    """Return the motion of a frame S on a link: what an ideal IMU reads there."""
    R, r = L_H_S[:3, :3], L_H_S[:3, 3]
    w, a, dw = link
    at_S = a + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    return Motion(R.T @ w, R.T @ at_S, R.T @ dw)


def walk(robot, sample, start, motion):
    """Return the motion of every link, from link to link away from the start."""
    found, front = {start: motion}, [start]
    while front:
        k = front.pop()
        for n in neighbours(robot, k):
            if n not in found:
                downwards = robot.links[n].parent == k
                found[n] = cross_joint(edge(robot, k, n), found[k], sample, downwards)
                front.append(n)
    return [found[k] for k in range(len(robot.links))]


def cross_joint(link, motion, sample, downwards):
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


# Wrenches


def net_wrenches(robot, motions):
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


def child_on_parent(robot, k, reading):
    """Return what the child exerts on the parent, in and about the child link's frame [T 4.20]."""
    sensor = robot.ft_sensors[k]
    return wrench_transform(sensor.child_H_sensor) @ (sensor.direction * reading)


def external_sum(robot, poses, net, through, member_of, root):
    """Return the sum of external wrenches on a submodel, about its root link [T 4.19]."""
    B_H_A, total = np.linalg.inv(poses[root]), np.zeros(6)
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


def split(robot, poses, root, total, contacts, white, length_scale, rank_tolerance):
    """Return the wrenches of a submodel's contacts, the rest, and the rank [T section 4.5.3]."""
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
    # What shows by less, in noise of one newton per newton, is left at zero.
    U, s, Vt = np.linalg.svd(white @ A, full_matrices=False)
    shown = s > rank_tolerance
    x = Vt[shown].T @ ((U[:, shown].T @ (white @ total)) / s[shown])
    for value, (c, wrench) in zip(x, places, strict=True):
        wrenches[c] += value * wrench
    return wrenches, total - A @ x, int(shown.sum())


def unit_wrenches(contact, length_scale):
    """Return the wrenches of unit length that span a contact; a moment is worth `length_scale`."""
    if contact.kind == 'wrench':
        return list(np.diag([1.0] * 3 + [length_scale] * 3))
    forces = {'force': np.eye(3), 'axial_force': [contact.direction], 'known': []}[contact.kind]
    return [np.array([*force, *np.cross(contact.point, force)]) for force in forces]


def whitening(robot, poses, root, fts, member_of, length_scale):
    """Return the inverse root of the covariance of the FT readings' sum about the root link."""
    noise = np.diag([1.0] * 3 + [length_scale] * 3)
    factors = []
    for k in fts:
        sensor = robot.ft_sensors[k]
        if root in (member_of[sensor.parent], member_of[sensor.child]):
            B_H_S = np.linalg.inv(poses[root]) @ poses[sensor.child] @ sensor.child_H_sensor
            factors.append(wrench_transform(B_H_S) @ noise)
    values, vectors = np.linalg.eigh(sum(F @ F.T for F in factors or [noise]))
    return (vectors / np.sqrt(values)) @ vectors.T


def local_torques(robot, poses, net, on_link, through, member_of):
    """Return each joint's torque from its submodel away from the root [T 4.25]."""
    torques = np.zeros(len(robot.joint_names))
    for k, link in enumerate(robot.links):
        if link.joint < 0:
            continue
        F_H_A, total = np.linalg.inv(poses[k]), np.zeros(6)
        own = {n for n in beyond(robot, k) if member_of[n] == member_of[k]}
        for n in own:
            total = total + wrench_transform(F_H_A @ poses[n]) @ (net[n] - on_link[n])
        for s, wrench in through.items():
            sensor = robot.ft_sensors[s]
            if sensor.parent in own:
                total = total - wrench_transform(F_H_A @ poses[sensor.child]) @ wrench
        torques[link.joint] = link.motion @ total
    return torques


def external_torques(robot, poses, on_link):
    """Return what external wrenches do to each joint while the base (fixed link or root) rests."""
    base = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else 0
    torques = np.zeros(len(robot.joint_names))
    for k, link in enumerate(robot.links):
        if link.joint >= 0:
            moved, sign = beyond(robot, k), 1.0
            if base in moved:
                moved, sign = set(range(len(robot.links))) - moved, -1.0
            for n in moved:
                X = wrench_transform(np.linalg.inv(poses[k]) @ poses[n])
                torques[link.joint] += sign * link.motion @ X @ on_link[n]
    return torques
