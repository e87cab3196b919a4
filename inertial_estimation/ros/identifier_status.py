# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of the identifier: progress of each submodel, and what prevents it."""

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.recursion.base_values import BaseValues
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.tree import Submodel
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.identifier_outputs import GROUPS, progress
from inertial_estimation.ros.sample_windows import CONTACT_MARGIN, WINDOW_NS
from inertial_estimation.sample import Sample, SensorState

MAX_WAIT = 60
"""Reports in a row without an update of a submodel, after which that is a finding."""
MAX_SILENCE = 3.0
"""Time without equations of a submodel that is no matter of windows [s]."""


class IdentifierStatus:
    """Counts events of the identifier, and makes statuses of them."""

    def __init__(self, settings: IdentifierSettings, identifier: RecursiveIdentifier) -> None:
        self._identifier = identifier
        robot = identifier.robot
        self._loaded = {
            robot.submodels[robot.submodel_of(frame)].name for frame in settings.loaded_frames
        }
        self.refits = self.updates = self.windows = self._failures = self._refused = 0
        self._busiest = 0.0
        self._failure = self._refusal = ''
        self._base: dict[str, BaseValues] = {}
        self._waiting: dict[str, int] = {}
        self.sample: Sample | None = None
        self._samples = self._first_ns = self._last_ns = 0

    def restart(self) -> None:
        """Count again how long submodels wait."""
        self._waiting.clear()
        self._first_ns = self._last_ns = 0

    def note_sample(self, sample: Sample) -> None:
        """Note a sample."""
        self.sample = sample
        self._samples += 1
        # Time was set back.
        if not self._first_ns or sample.stamp_ns < self._last_ns:
            self._first_ns = sample.stamp_ns
        self._last_ns = sample.stamp_ns

    def note_window(self, seconds: float) -> None:
        """Note that a window was added, and the time that this and a refit took [s]."""
        self._busiest = max(self._busiest, seconds)
        self.windows += 1

    def note_refit(
        self, refit: Refit | None, values: Sequence[BaseValues], refusal: str | None
    ) -> None:
        """Note a refit; refusal: None if nothing was to be published."""
        self.refits += refit is not None
        self._base = {one.submodel: one for one in values}
        self._refusal = refusal or ''
        self._refused += bool(refusal)
        self.updates += refusal == ''

    def note_failure(self, error: Exception) -> None:
        """Note why a window was not added."""
        self._failures += 1
        self._failure = str(error)

    def statuses(self, refit: Refit | None, *, active: bool, enabled: bool) -> list[Status]:
        """Return the status of recursion and submodels, and begin another report."""
        found = [
            self._recursion(active, enabled),
            *self._submodels(refit, identifying=active and enabled),
        ]
        self._failure, self.sample, self._busiest, self._samples = '', None, 0.0, 0
        return found

    def _recursion(self, active: bool, enabled: bool) -> Status:
        name, error = 'recursion', Level.ERROR
        found = [
            finding(code, name, level=error, what=what)
            for code, what in (('suboptimal', self._failure), ('update_rejected', self._refusal))
            if what
        ]
        if active and not self._samples:
            found.append(finding('missing', name, level=error, what='joint states', share=1.0))
        if self._busiest > 1e-9 * WINDOW_NS:
            what = f'{self._busiest:.1f} s for each second of samples'
            found.append(finding('suboptimal', name, what=what))
        values = {
            'samples': self._samples,
            'windows': self.windows,
            'refits': self.refits,
            'updates': self.updates,
            'refused updates': self._refused,
            'failures, total': self._failures,
        }
        note = 'inactive' if not active else 'running' if enabled else 'paused'
        return Status(name, tuple(found), values, note)

    def _submodels(self, refit: Refit | None, *, identifying: bool) -> Iterator[Status]:
        payloads = self._identifier.payloads()
        rejections = self._identifier.rejections()
        for known in self._identifier.memories:
            submodel, kinds = known.block.submodel, known.block.kinds
            name = f'submodel {submodel.name}'
            figures = progress(known, refit, self._base.get(submodel.name))
            values: dict[str, object] = {'time with equations [s]': f'{known.seconds:.1f}'}
            if isfinite(figures['base_parameters']):
                rank, count = figures['rank'], figures['base_parameters']
                values['base parameters identified'] = f'{rank} of {count}'
            if figures['equations']:
                values['combinations identified'] = figures['determined']
            for group, unit in GROUPS.items():
                before, after = figures[f'{group}_before'], figures[f'{group}_after']
                if isfinite(before):
                    values[f'error of {group} before, after {unit}'] = f'{before:.3f}, {after:.3f}'
            if (load := payloads.get(submodel.name)) is not None:
                center = ', '.join(f'{value:.3f}' for value in load.center)
                values['payload'] = f'{load.mass:.3f} kg at {load.link}, {center} m'
            found: list[Finding] = []
            if identifying and kinds and (lost := self._lost_sensors(submodel)):
                found.append(finding('missing', name, what=', '.join(lost), share=1.0))
            elif identifying and (off := rejections.get(submodel.name)) is not None:
                values['disturbed'] = f'{off.kind}: {off.residual:.3f}, usually {off.noise:.3f}'
                values['disturbed for [s]'] = f'{off.seconds:.1f}'
                level = Level.WARNING
                found.append(finding('disturbed', name, level=level, share=1.0))
            elif identifying and (joints := self._without_efforts(kinds)):
                what = f'efforts of {", ".join(joints)}'
                found.append(finding('missing', name, what=what, share=1.0))
            note = 'loaded' if submodel.name in self._loaded else 'identified'
            reason = self._reason(submodel.name, refit, identifying=identifying)
            if not found and reason:
                note = reason
                if kinds and self._waiting.get(submodel.name, 0) > MAX_WAIT:
                    found.append(finding('unexcited', name, what=reason))
            yield Status(name, tuple(found), values, note)

    def _reason(self, name: str, refit: Refit | None, *, identifying: bool) -> str:
        """Return the reason for which a submodel is not identified, and count its time."""
        if name in self._loaded:
            return ''
        if refit is not None and name in refit.refitted:
            self._waiting.pop(name, None)
            return ''
        self._waiting[name] = self._waiting.get(name, 0) + identifying
        waits = 'no equations yet, or all joints stand still'
        return waits if refit is None else refit.reasons.get(name, waits)

    def _lost_sensors(self, submodel: Submodel) -> list[str]:
        """Return the sensors that a submodel without equations for some time lacks."""
        sample, robot = self.sample, self._identifier.robot
        if sample is None or submodel.name in self._loaded:
            return []
        since = max(self._identifier.equations_ns.get(submodel.name, 0), self._first_ns)
        if 1e-9 * (sample.stamp_ns - since) <= MAX_SILENCE + CONTACT_MARGIN:
            return []
        names = [sensor.name for sensor in robot.ft_sensors]
        absent = np.isnan(sample.ft_readings).any(axis=1)
        fts = [k for k in submodel.sensors if absent[k]]
        if fts:
            return [_named('FT sensor', names, k, sample.ft_states) for k in fts]
        # An IMU that measures one quantity has only this, and is not lost.
        turning = np.isnan(sample.angular_velocities).any(axis=1)
        if sample.imu_states is not None:
            turning &= sample.imu_states != SensorState.FRESH
        imus, joints = [imu.name for imu in robot.imus], robot.joint_names
        motion = np.isnan([sample.positions, sample.velocities, sample.accelerations]).any(axis=0)
        return [
            *(_named('IMU', imus, k, sample.imu_states) for k in np.flatnonzero(turning)),
            *(_named('joint', joints, k, sample.joint_states) for k in np.flatnonzero(motion)),
        ]

    def _without_efforts(self, kinds: Sequence[str]) -> list[str]:
        """Return the joints with equations of efforts that are not in the newest sample."""
        if self.sample is None:
            return []
        names, efforts = self._identifier.robot.joint_names, self.sample.efforts
        lost = [efforts is None or not isfinite(efforts[k]) for k in range(len(names))]
        return [name for name, one in zip(names, lost) if one and f'{EFFORT}{name}' in kinds]


def _named(kind: str, names: Sequence[str], index: int, states: np.ndarray | None) -> str:
    state = '' if states is None else f' ({SensorState(int(states[index])).name.lower()})'
    return f"{kind} '{names[index]}'{state}"
