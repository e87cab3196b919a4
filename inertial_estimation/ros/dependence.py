# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which FT sensors inform which torques, said again when contacts or working sensors change."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.grounds import Informed, find_informed
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import OK, WARN, Task

KEPT = 16
"""Sets of contacts and sensors that are remembered: a skin is touched here and there."""
NO_FT = 'no FT sensor'
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

    Parameters
    ----------
    robot : Robot
        Links, joints and sensors.
    contacts : sequence of Contact
        The default ones.

    Attributes
    ----------
    configured : str
        Which torques no FT sensor informs even if all work and nothing is touched, and what to do
        about it; empty: none.
    news : str
        What the last `task` found changed, unless it was said before; empty: nothing.

    """

    def __init__(self, robot: Robot, contacts: Sequence[Contact]) -> None:
        self.news = ''
        self._robot = robot
        self._base = base_text(robot)
        self._known: dict[Hashable, Informed] = {}
        self._last: Informed | None = None
        self._said: dict[str, None] = {}
        usual = find_informed(robot, contacts, range(len(robot.ft_sensors)))
        self._usual = frozenset(_joints(usual))
        self.configured = '. '.join(map(str, usual.uninformed))
        if self.configured:
            self.configured += f'. {STAYS}'

    def task(self, estimate: WrenchEstimate) -> Task:
        """
        Return the state of the torques.

        Parameters
        ----------
        estimate : WrenchEstimate
            The newest one.

        Returns
        -------
        Task

        """
        informed = self._informed(estimate)
        self.news = self._new(informed)
        values: dict[str, object] = {'external joint torques about': self._base}
        for joint, fts in informed.fts.items():
            values[f'torque {joint}'] = ' '.join(fts) or NO_FT
        for group in informed.uninformed:
            values[f'remedy in submodel {group.submodel}'] = str(group)
        joints = _joints(informed)
        if added := [joint for joint in joints if joint not in self._usual]:
            message = f'no FT sensor informs the torques of {", ".join(added)} now; {REMEDY}'
            return Task('dependence', WARN, message, values, repeats=False)
        message = 'FT sensors inform every torque'
        if joints:
            message += f' but, as configured, those of {", ".join(joints)}'
        return Task('dependence', OK, message, values)

    def _new(self, informed: Informed) -> str:
        """Return what is different from the time before, once for each difference."""
        before, self._last = self._last or informed, informed
        text = change_text(before.fts, informed.fts)
        if not text or text in self._said:
            return ''
        if len(self._said) >= KEPT:
            del self._said[next(iter(self._said))]
        self._said[text] = None
        return text

    def uninformed_joints(self, estimate: WrenchEstimate) -> list[str]:
        """
        Return the joints whose torques no FT sensor informs.

        Parameters
        ----------
        estimate : WrenchEstimate
            The newest one.

        Returns
        -------
        list of str
            Their names.

        """
        return _joints(self._informed(estimate))

    def _informed(self, estimate: WrenchEstimate) -> Informed:
        """Return what informs the torques, found anew for other links, unknowns and sensors."""
        kept = (estimate.contact_quality & Quality.DROPPED) == 0
        contacts = list(compress(estimate.contacts, kept.tolist()))
        fts = estimate.used_fts.nonzero()[0].tolist()
        key = (tuple((contact.frame, contact.unknowns) for contact in contacts), tuple(fts))
        if key not in self._known:
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = find_informed(self._robot, contacts, fts)
        return self._known[key]


def _joints(informed: Informed) -> list[str]:
    """Return the joints whose torques no FT sensor informs."""
    return [joint for group in informed.uninformed for joint in group.joints]


def change_text(before: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> str:
    """
    Say which torques rest on other FT sensors than before.

    Parameters
    ----------
    before, now : mapping of str to sequence of str
        FT sensors by joint.

    Returns
    -------
    str
        Empty if none does.

    """
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for joint, fts in now.items():
        if fts != before[joint]:
            groups.setdefault((tuple(fts), tuple(before[joint])), []).append(joint)
    if not groups:
        return ''
    said = [
        f'{" ".join(joints)} on {" ".join(new) or NO_FT} (before: {" ".join(old) or NO_FT})'
        for (new, old), joints in groups.items()
    ]
    return f'contacts or sensors have changed; torques rest: {", ".join(said)}'


def base_text(robot: Robot) -> str:
    """
    Say about which base external joint torques are, and whether that is a choice.

    Parameters
    ----------
    robot : Robot
        Its base and what is fixed.

    Returns
    -------
    str

    """
    base = robot.link_names[robot.base]
    if not robot.fixed_frame:
        return f'{base}, which floats: about another base they are others'
    fixed = robot.link_names[robot.frame(robot.fixed_frame)[0]]
    return f'{base}, the fixed link' if fixed == base else f'{base}, not the fixed link {fixed}'
