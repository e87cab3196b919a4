# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Latched publishers of the identifier: updates and labelled tables; its statuses."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from pinocchio import Inertia
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, String

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.findings import Level, finding
from inertial_estimation.identification.recursion.covariance import BaseValues
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.refit import Refit
from inertial_estimation.model.parameter_update import ParameterUpdate
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.outputs.encoders import encoders
from inertial_estimation.outputs.topics import FT_OFFSET, Layout
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    labelled_array,
    to_messages,
)
from inertial_estimation.ros.sample_windows import WINDOW_NS
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.sample import Sample
from inertial_estimation.signals.messages import INERTIA, Encoder

SEPARATOR = '; '
"""Between the labels of rows: combinations contain blanks."""
GROUPS = 'force', 'moment', 'effort'
"""Beginnings of the names of kinds of equations."""
PROGRESS = (
    'seconds', 'equations', 'determined', 'rank', 'base_parameters',
    *(f'{group}_{when}' for group in GROUPS for when in ('before', 'after')),
)  # fmt: skip
"""Columns of the progress."""
PAYLOAD = ('mass', 'x', 'y', 'z', *(f'{name}_deviation' for name in ('mass', 'x', 'y', 'z')))
"""Columns of the payloads [kg, m]."""
MAX_WAIT = 60
"""Reports in a row without an update of a submodel, after which that is a finding."""
COUNTED = 'windows', 'refits', 'updates', 'refused updates', 'failures, total'
"""Events that are counted."""


class IdentifierOutputs:
    """Publishers of updates and of the progress."""

    def __init__(self, node: LifecycleNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._update = {
            topic: self._publisher(Float64MultiArray, topic)
            for topic in (UNCERTAINTY_TOPIC, OFFSETS_TOPIC, TOPIC)
        }
        self._description = self._publisher(String, '~/robot_description')
        self._base = self._publisher(Float64MultiArray, '~/base_parameters')
        self._progress = self._publisher(Float64MultiArray, '~/progress')
        self._payloads = self._publisher(Float64MultiArray, '~/payloads')
        every = QoSProfile(depth=len(robot.links), durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._inertias = self._publisher(InertiaStamped, '~/inertias', every)
        self._encode_inertias = [Encoder(INERTIA, name).encode for name in robot.link_names]
        self._offsets = {
            sensor.name: (self._publisher(WrenchStamped, f'~/{topic}'), encode)
            for sensor, (topic, encode) in zip(
                robot.ft_sensors, encoders(FT_OFFSET, Layout(robot, ()))
            )
        }

    def publish(
        self, stamp_ns: int, update: ParameterUpdate, values: Mapping[str, BaseValues]
    ) -> None:
        """Publish an update, and the base parameters by submodel."""
        robot, parameters = self._robot, update.parameters
        for topic, message in to_messages(robot, update).items():
            self._update[topic].publish(message)
        self._description.publish(String(data=export_urdf(robot, parameters)))
        for encode, row in zip(self._encode_inertias, parameters):
            one = Inertia.FromDynamicParameters(row)
            about = one.inertia[np.triu_indices(3)]
            self._inertias.publish(encode(stamp_ns, np.array([one.mass, *one.lever, *about])))
        rows = {
            f'{submodel}: {name}': [value, deviation]
            for submodel, one in values.items()
            for name, value, deviation in zip(one.names, one.values, one.deviations)
        }
        self._base.publish(_table(rows, ('value', 'standard_deviation')))

    def publish_progress(
        self, identifier: RecursiveIdentifier, refit: Refit, base: Mapping[str, BaseValues]
    ) -> None:
        """Publish progress, payloads and offsets, whether there is an update or not."""
        progress = {}
        for one in identifier.memories:
            name, values = one.name, base.get(one.name)
            progress[name] = figures = [
                one.seconds,
                one.information.count if one.information is not None else 0.0,
                refit.determined.get(name, 0),
                *((values.rank, len(values.names)) if values else (0, np.nan)),
            ]
            for group in GROUPS:
                # Of prior and fit, root mean square.
                for residuals in (refit.prior_residuals, refit.residuals):
                    every = residuals.get(name, {}).items()
                    own = [residual for kind, residual in every if kind.startswith(group)]
                    figures.append(float(np.sqrt(np.mean(np.square(own)))) if own else np.nan)
        self._progress.publish(_table(progress, PROGRESS))
        rows = {
            f'{name}: {one.link}': [one.mass, *one.center, one.mass_deviation,
                                    *one.center_deviation]
            for name, one in identifier.payloads().items()
        }  # fmt: skip
        self._payloads.publish(_table(rows, PAYLOAD))
        for name, offset in refit.determined_offsets.items():
            publisher, encode = self._offsets[name]
            publisher.publish(encode(refit.stamp_ns, offset))

    def _publisher(self, message_type: type, topic: str, qos: QoSProfile = LATCHED):
        return self._node.create_lifecycle_publisher(message_type, topic, qos)


def _table(rows: Mapping[str, Sequence[float]], columns: Sequence[str]) -> Float64MultiArray:
    numbers = np.reshape(np.array(list(rows.values()), dtype=float), (len(rows), len(columns)))
    return labelled_array(numbers, SEPARATOR.join(rows), ' '.join(columns))


class IdentifierStatus:
    """Counts events of the identifier, and makes statuses of them."""

    def __init__(self, settings: IdentifierSettings, identifier: RecursiveIdentifier) -> None:
        self._identifier, robot = identifier, identifier.robot
        self._loaded = {
            robot.submodels[robot.submodel_of(frame)].name for frame in settings.loaded_frames
        }
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.waiting: Counter[str] = Counter()
        """Reports in a row without an update, by submodel."""
        self._refusal = ''
        self._begin()

    def reset(self) -> None:
        """Forget the last refit."""
        self.waiting.clear()
        self._refusal = ''

    def _begin(self) -> None:
        self.sample: Sample | None = None
        """The newest one."""
        self.busiest, self._failure = 0.0, ''
        """Longest time that a window took [s], and the reason why one was not added."""

    def note_update(self, refusal: str) -> None:
        """Note that an update was published, or why not."""
        self._refusal = refusal
        self.counts['refused updates' if refusal else 'updates'] += 1

    def note_failure(self, error: Exception) -> None:
        """Note why a window was not added."""
        self.counts['failures, total'] += 1
        self._failure = str(error)

    def statuses(self, refit: Refit | None, *, active: bool, enabled: bool) -> list[Status]:
        """Return the status of recursion and submodels, and begin another report."""
        name, error = 'recursion', Level.ERROR
        found = [
            finding(code, name, level=error, what=what)
            for code, what in (('suboptimal', self._failure), ('update_rejected', self._refusal))
            if what
        ]
        if active and self.sample is None:
            found.append(finding('missing', name, level=error, what='joint states', share=1.0))
        if self.busiest > 1e-9 * WINDOW_NS:
            what = f'{self.busiest:.1f} s for each second of samples'
            found.append(finding('suboptimal', name, what=what))
        self._begin()
        note = 'inactive' if not active else 'running' if enabled else 'paused'
        recursion = Status(name, tuple(found), dict(self.counts), note)
        return [recursion, *self._submodels(refit, identifying=active and enabled)]

    def _submodels(self, refit: Refit | None, *, identifying: bool) -> Iterator[Status]:
        payloads = self._identifier.payloads()
        rejections = self._identifier.rejections()
        for known in self._identifier.memories:
            name, found = f'submodel {known.name}', []
            values: dict[str, object] = {'time with equations [s]': f'{known.seconds:.1f}'}
            if (load := payloads.get(known.name)) is not None:
                center = ', '.join(f'{value:.3f}' for value in load.center)
                values['payload'] = f'{load.mass:.3f} kg at {load.link}, {center} m'
            reason = self._reason(known.name, refit, identifying=identifying)
            if identifying and known.name in rejections:
                values['disturbed for [s]'] = f'{rejections[known.name]:.1f}'
                found.append(finding('disturbed', name, level=Level.WARNING, share=1.0))
            elif known.block.kinds and self.waiting[known.name] > MAX_WAIT:
                found.append(finding('unexcited', name, what=reason))
            note = 'loaded' if known.name in self._loaded else reason or 'identified'
            yield Status(name, tuple(found), values, note)

    def _reason(self, name: str, refit: Refit | None, *, identifying: bool) -> str:
        """Return the reason for which a submodel is not identified, and count its time."""
        if name in self._loaded or (refit is not None and name in refit.refitted):
            self.waiting[name] = 0
            return ''
        self.waiting[name] += identifying
        waits = 'no equations yet: readings are missing, or all joints stand still'
        return waits if refit is None else refit.reasons.get(name, waits)
