# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What torques and wrenches rest on, said again when contacts or working sensors change."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import (
    DependenceTable,
    Informed,
    UninformedTorques,
    dependence_table,
    find_informed,
)
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.dependence_text import NO_FT, GroundsText, base_text, change_text
from inertial_estimation.ros.diagnostics import OK, WARN, Task

KEPT = 16
"""Sets of contacts and sensors that are remembered: a skin is touched here and there."""
NOT_KNOWN = 'not known'
STAYS = (
    'So it is with the default contacts, and is not said again; other default contacts, or an FT '
    'sensor between a contact and these joints, would change it'
)
REMEDY = "add an FT sensor, or a contact elsewhere: see 'remedy' in the values on /diagnostics"


class DependenceWatch:
    """
    Tells what the torques of the newest estimate rest on [T Theorem 4.2].

    Torques that no FT sensor informs under the default contacts stay so for good: that is a matter
    of the configuration, said once. What touches and lost sensors add to them is warned of.
    """

    def __init__(
        self, robot: Robot, contacts: Sequence[Contact], *, acceleration_arrays: bool = False
    ) -> None:
        self.news = ''
        self._robot, self._arrays = robot, acceleration_arrays
        self._base = base_text(robot)
        self._text = GroundsText(robot)
        self._known: dict[Hashable, Informed] = {}
        self._grounds: dict[Hashable, DependenceTable] = {}
        self._last: dict[str, tuple[str, ...]] = {}
        self._said: dict[str, None] = {}
        usual = find_informed(robot, contacts, range(len(robot.ft_sensors)))
        self._usual = frozenset(_joints(usual.uninformed))
        self.configured = '. '.join(map(str, usual.uninformed))
        if self.configured:
            self.configured += f'. {STAYS}'

    def task(self, estimate: WrenchEstimate) -> Task:
        """Return the state of the torques."""
        informed = self._informed(estimate)
        known = self._known_joints(estimate)
        self.news = self._new({joint: informed.fts[joint] for joint in known})
        values: dict[str, object] = {'external joint torques about': self._base}
        if not known:
            return Task('dependence', OK, 'no torque is known', values)
        values |= self._values(estimate, informed)
        groups = _known_groups(informed, known)
        for group in groups:
            values[f'remedy in submodel {group.submodel}'] = str(group)
        joints = [joint for joint in _joints(groups) if joint in known]
        if added := [joint for joint in joints if joint not in self._usual]:
            message = f'no FT sensor informs the torques of {", ".join(added)} now; {REMEDY}'
            return Task('dependence', WARN, message, values, repeats=False)
        whole = len(known) == len(self._robot.joint_names)
        message = f'FT sensors inform every torque{"" if whole else " that is known"}'
        if joints:
            message += f' but, as configured, those of {", ".join(joints)}'
        return Task('dependence', OK, message, values)

    def uninformed_joints(self, estimate: WrenchEstimate) -> list[str]:
        """Return the joints whose torques are known and no FT sensor informs."""
        known = self._known_joints(estimate)
        return [joint for joint in _joints(self._informed(estimate).uninformed) if joint in known]

    def _known_joints(self, estimate: WrenchEstimate) -> dict[str, None]:
        """Return the joints whose torques are known, in order."""
        finite = np.isfinite(estimate.torques).tolist()
        return dict.fromkeys(compress(self._robot.joint_names, finite))

    def _new(self, fts: Mapping[str, tuple[str, ...]]) -> str:
        """Return what is different from the time before, once for each difference."""
        before, self._last = self._last, {**self._last, **fts}
        text = change_text({joint: before.get(joint, on) for joint, on in fts.items()}, fts)
        if not text or text in self._said:
            return ''
        if len(self._said) >= KEPT:
            del self._said[next(iter(self._said))]
        self._said[text] = None
        return text

    def _values(self, estimate: WrenchEstimate, informed: Informed) -> dict[str, object]:
        """Return what each torque and wrench rests on."""
        found = self._find_grounds(estimate)
        if found is None:
            return {
                f'torque {joint}': ' '.join(fts) or NO_FT for joint, fts in informed.fts.items()
            }
        known, say = self._known_joints(estimate), self._text.of
        torques = {
            f'torque {row.name}': say(row) if row.name in known else NOT_KNOWN
            for row in found.torques
        }
        return torques | {f'wrench {row.name}': say(row) for row in found.wrenches}

    def _informed(self, estimate: WrenchEstimate) -> Informed:
        """Return what informs the torques, found anew for other links, unknowns and sensors."""
        contacts, fts = _in_use(estimate)
        key = (tuple((contact.frame, contact.unknowns) for contact in contacts), tuple(fts))
        if key not in self._known:
            _make_room(self._known)
            self._known[key] = find_informed(self._robot, contacts, fts)
        return self._known[key]

    def _find_grounds(self, estimate: WrenchEstimate) -> DependenceTable | None:
        """Return what all rests on, found anew as above; None: the IMUs tell of no motion."""
        contacts, fts = _in_use(estimate)
        imus = [] if self._robot.fixed_frame else estimate.used_imus.nonzero()[0].tolist()
        named = tuple((contact.name, contact.frame, contact.unknowns) for contact in contacts)
        key = named, tuple(fts), tuple(imus)
        if key not in self._grounds:
            try:
                found = dependence_table(
                    self._robot,
                    contacts,
                    imus=imus,
                    fts=fts,
                    acceleration_arrays=self._arrays,
                )
            except ModelError:
                return None
            _make_room(self._grounds)
            self._grounds[key] = found
        return self._grounds[key]


def _in_use(estimate: WrenchEstimate) -> tuple[list[Contact], list[int]]:
    """Return the contacts that take part, and the rows of the FT sensors."""
    kept = (estimate.contact_quality & Quality.DROPPED) == 0
    contacts = list(compress(estimate.contacts, kept.tolist()))
    return contacts, estimate.used_fts.nonzero()[0].tolist()


def _make_room(kept: dict) -> None:
    """Forget what was found first, if there is much."""
    if len(kept) >= KEPT:
        del kept[next(iter(kept))]


def _known_groups(informed: Informed, known: Mapping[str, None]) -> list[UninformedTorques]:
    """Return the groups of joints of which a torque is known."""
    return [group for group in informed.uninformed if any(j in known for j in group.joints)]


def _joints(groups: Sequence[UninformedTorques]) -> list[str]:
    """Return the joints whose torques no FT sensor informs."""
    return [joint for group in groups for joint in group.joints]
