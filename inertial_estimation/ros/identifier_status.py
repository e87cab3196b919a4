# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Status of the identifier: progress of each submodel, and what prevents it."""

from collections import Counter
from collections.abc import Iterator, Mapping

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.findings import Level, finding
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.refit import Refit
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.identifier_outputs import GROUPS
from inertial_estimation.ros.sample_windows import WINDOW_NS
from inertial_estimation.sample import Sample

MAX_WAIT = 60
"""Reports in a row without an update of a submodel, after which that is a finding."""
COUNTED = 'windows', 'refits', 'updates', 'refused updates', 'failures, total'
"""Events that are counted."""


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
        self.reset()
        self._begin()

    def reset(self) -> None:
        """Forget the last refit."""
        self.waiting.clear()
        self.progress: Mapping[str, Mapping[str, float]] = {}
        """Figures of the last refit by submodel."""
        self._refusal = ''

    def _begin(self) -> None:
        """Begin another report."""
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
            if (figures := self.progress.get(known.name)) is not None:
                rank, count = figures['rank'], figures['base_parameters']
                values['base parameters identified'] = f'{rank} of {count}'
                values['combinations identified'] = figures['determined']
                for group, unit in GROUPS.items():
                    pair = [f'{figures[f"{group}_{when}"]:.3f}' for when in ('before', 'after')]
                    values[f'error of {group} before, after {unit}'] = ', '.join(pair)
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
