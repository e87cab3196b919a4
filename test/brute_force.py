# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The estimator written straight from the thesis, as slowly and plainly as possible.

Every link gets its motion from its own IMU, step by step along the tree; every sum is a loop over
links with a written-out 6 x 6 transform. Nothing is shared with the engine but the data of
`Robot` (poses, axes, parameters, sensors); Pinocchio is not used. Readings need not fit together.
"""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm


class Motion(NamedTuple):
    """Motion of a frame, in its own axes, at its own origin."""

    angular_velocity: np.ndarray
    proper_acceleration: np.ndarray
    angular_acceleration: np.ndarray


def estimate(robot, sample, contacts=(), *, imus=None, fts=None, arrays=False, length_scale=0.1,
             rank_tolerance=1e-2):  # fmt: skip
    """
    Estimate with the given IMUs and FT sensors only; arrays give angular accelerations.

    Residuals and ranks are by the root link of their submodel; net wrenches by link, and internal
    ones by joint, about the origin of its child link.
    """
    imus = list(range(len(robot.imus)) if imus is None else imus)
    fts = list(range(len(robot.ft_sensors)) if fts is None else fts)
    poses, roots = link_poses(robot, sample.positions), submodel_roots(robot, fts)
    net = net_wrenches(robot, link_motions(robot, sample, imus, arrays=arrays))
    through = {k: child_on_parent(robot, k, sample.ft_readings[k]) for k in fts}
    noise = np.diag([1.0] * 3 + [length_scale] * 3)
    wrenches, residuals, ranks = np.zeros((len(contacts), 6)), {}, {}
    for root in sorted(set(roots)):
        members = {k for k, own in enumerate(roots) if own == root}
        total = summed(robot, poses, root, members, net, through)
        rows = [c for c, one in enumerate(contacts) if robot.frame(one.frame)[0] in members]
        borders = [robot.ft_sensors[k] for k in fts]
        borders = [s for s in borders if {s.parent, s.child} & members]
        B_H_A = np.linalg.inv(poses[root])
        borders = [B_H_A @ poses[s.child] @ s.child_H_sensor for s in borders]
        factors = [wrench_transform(pose) @ noise for pose in borders] or [noise]
        values, vectors = np.linalg.eigh(sum(F @ F.T for F in factors))
        white = (vectors / np.sqrt(values)) @ vectors.T
        places = [robot.frame(contacts[c].frame) for c in rows]
        wrenches[rows], residuals[root], ranks[root] = split(
            [B_H_A @ poses[link] @ pose for link, pose in places],
            total, [contacts[c] for c in rows], white, length_scale, rank_tolerance,
        )  # fmt: skip
    on_link = np.zeros((len(robot.links), 6))
    for contact, wrench in zip(contacts, wrenches, strict=True):
        link, pose = robot.frame(contact.frame)
        on_link[link] += wrench_transform(pose) @ wrench
    torques, external = np.zeros((2, len(robot.joint_names)))
    internal = np.zeros((len(robot.joint_names), 6))
    base = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else 0
    for k, link in enumerate(robot.links):
        if link.joint >= 0:
            far, every = beyond(robot, k), set(range(len(robot.links)))
            own = {n for n in far if roots[n] == roots[k]}
            # From the submodel's side away from the root [T 4.25].
            internal[link.joint] = summed(robot, poses, k, own, net - on_link, through)
            torques[link.joint] = link.motion @ internal[link.joint]
            moved, sign = (every - far, -1.0) if base in far else (far, 1.0)
            external[link.joint] = sign * link.motion @ summed(robot, poses, k, moved, on_link, {})
    return SimpleNamespace(
        wrenches=wrenches, torques=torques, external_torques=external,
        residuals=residuals, ranks=ranks, net=net, internal=internal,
    )  # fmt: skip


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
    poses = [np.eye(4)]
    for link in robot.links[1:]:
        poses.append(poses[link.parent] @ joint_pose(link, q))
    return poses


# The tree


def neighbours(robot, k):
    """Return the links next to link k: its parent first, then its children."""
    parent = robot.links[k].parent
    children = [c for c, link in enumerate(robot.links) if link.parent == k]
    return [parent] * (parent >= 0) + children


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
    roots = [0]
    for k, link in enumerate(robot.links[1:], 1):
        roots.append(k if k in cuts else roots[link.parent])
    return roots


def distances(robot, start):
    """Return the number of joints and that of sensors between a link and every other one."""
    found, front = {start: (0, 0)}, [start]
    for k in front:
        for n in neighbours(robot, k):
            if n not in found:
                link = robot.links[n if robot.links[n].parent == k else k]
                found[n] = (found[k][0] + (link.joint >= 0), found[k][1] + (link.joint < 0))
                front.append(n)
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
            owner[k] = _nearest(robot, k, near, apart, owner)
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
    apart, owner = [distances(robot, link) for link in sources], {}
    for k in range(len(robot.links)):
        owner[k] = _nearest(robot, k, range(len(sources)), apart, owner)
    return list(owner.values())


def _nearest(robot, k, sources, apart, owner):
    """Choose the nearest source; links nearer to the root have chosen before."""
    least, parent = min(apart[s][k] for s in sources), robot.links[k].parent
    tied = [s for s in sources if apart[s][k] == least]
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
    turn, spin, shift = {}, {}, {}

    def average(values, rows, noise):
        weights = [getattr(robot.imus[k], noise) ** -2 for k in rows]
        turned = [robot.imus[k].L_H_S[:3, :3] @ values[k] for k in rows]
        return np.average(turned, axis=0, weights=weights)

    def carried(known):
        """Return the motion of the links where it is not known, reached through the joints."""
        sources, found = list(known), {}
        for link in set(links) - set(known):
            s = sources[owners_of_motion(robot, sources)[link]]
            motion = Motion(turn[s], shift.get(s, np.zeros(3)), spin[s])
            found[link] = walk(robot, sample, s, motion)[link]
        return found

    for link in (link for link in links if gyros[link]):
        turn[link] = average(sample.angular_velocities, gyros[link], 'gyroscope_noise')
        spin[link] = average(sample.angular_accelerations, gyros[link], 'gyroscope_noise')
    reached = carried(turn)
    turn |= {link: motion.angular_velocity for link, motion in reached.items()}
    if arrays:
        spin = {
            link: array_acceleration(robot, sample, accs[link], turn[link])
            for link in links
            if is_array(robot, accs[link])
        }
        reached = carried(spin)
    spin |= {link: motion.angular_acceleration for link, motion in reached.items()}
    for link in (link for link in links if accs[link]):
        moved = np.full_like(sample.proper_accelerations, np.nan)
        for k in accs[link]:
            R = robot.imus[k].L_H_S[:3, :3]
            reading = Motion(R.T @ turn[link], sample.proper_accelerations[k], R.T @ spin[link])
            moved[k] = R.T @ motion_of_link(robot.imus[k].L_H_S, reading).proper_acceleration
        shift[link] = average(moved, accs[link], 'accelerometer_noise')
    shift |= {link: motion.proper_acceleration for link, motion in carried(shift).items()}
    return {link: Motion(turn[link], shift[link], spin[link]) for link in links}


def is_array(robot, rows):
    """Return whether accelerometers are off every line by 5 mm, as a weighted rms."""
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


def walk(robot, sample, start, motion):
    """Return the motion of every link, from link to link away from the start."""
    found, front = {start: motion}, [start]
    for k in front:
        for n in neighbours(robot, k):
            if n not in found:
                found[n] = cross_joint(robot, sample, k, n, found[k])
                front.append(n)
    return [found[k] for k in range(len(robot.links))]


def cross_joint(robot, sample, k, to, motion):
    """Return the motion of a neighbour of link k."""
    link = robot.links[to if robot.links[to].parent == k else k]
    pose, slide, axis = joint_pose(link, sample.positions), link.motion[:3], link.motion[3:]
    qd, qdd = 0.0, 0.0
    if link.joint >= 0:
        qd, qdd = sample.velocities[link.joint], sample.accelerations[link.joint]

    def joint(w):
        """Return what the joint adds to a motion with this angular velocity."""
        coriolis = 2 * np.cross(w, slide * qd), np.cross(w, axis * qd)
        return np.array([axis * qd, slide * qdd + coriolis[0], axis * qdd + coriolis[1]])

    if to != robot.links[k].parent:
        fixed = motion_of_link(np.linalg.inv(pose), motion)
        return Motion(*(np.array(fixed) + joint(fixed.angular_velocity)))
    fixed = Motion(*(np.array(motion) - joint(motion.angular_velocity - axis * qd)))
    return motion_of_link(pose, fixed)


# Wrenches


def net_wrenches(robot, motions):
    """Return the net wrench of every link about its origin, in its axes [T 4.9]."""
    wrenches = []
    for parameters, (w, a, dw) in zip(robot.parameters, motions, strict=True):
        m, h, (xx, xy, yy, xz, yz, zz) = parameters[0], parameters[1:4], parameters[4:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        M = np.block([[m * np.eye(3), -hat(h)], [hat(h), inertia]])
        spin = np.kron(np.eye(2), hat(w))
        wrenches.append(M @ [*a, *dw] + spin @ M @ [0.0, 0.0, 0.0, *w])
    return np.array(wrenches)


def child_on_parent(robot, k, reading):
    """Return what the child exerts on the parent, in and about the child link's frame [T 4.20]."""
    sensor = robot.ft_sensors[k]
    return wrench_transform(sensor.child_H_sensor) @ (sensor.direction * reading)


def summed(robot, poses, about, links, net, through):
    """Return the sum over links of wrenches less those through FT sensors, about one of them."""
    rows = [(k, net[k]) for k in links]
    for s, wrench in through.items():
        sensor = robot.ft_sensors[s]
        rows.append((sensor.child, ((sensor.child in links) - (sensor.parent in links)) * wrench))
    B_H_A = np.linalg.inv(poses[about])
    return sum((wrench_transform(B_H_A @ poses[k]) @ row for k, row in rows), np.zeros(6))


def split(B_H_C, total, contacts, white, length_scale, rank_tolerance):
    """Return the wrenches of a submodel's contacts, the rest, and the rank [T section 4.5.3]."""
    wrenches = np.zeros((len(contacts), 6))
    columns, places = [np.zeros((0, 6))], []
    for c, (contact, pose) in enumerate(zip(contacts, B_H_C, strict=True)):
        B_Xf_C, units = wrench_transform(pose), unit_wrenches(contact, length_scale)
        if contact.kind == 'known':
            wrenches[c] = contact.wrench
            total = total - B_Xf_C @ wrenches[c]
        columns += [(B_Xf_C @ wrench)[None] for wrench in units]
        places += [(c, wrench) for wrench in units]
    A = np.concatenate(columns).T
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
