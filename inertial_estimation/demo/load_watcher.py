# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A process that compares what is identified of a load with the truth, and writes what it finds.

It is told on its command line, as JSON: the names of robot, identifier and estimators, the
parameter file of these, and the link that is to carry something. Its lines are like those of
``demo.watcher``.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped
from std_msgs.msg import Float64MultiArray

from inertial_estimation.building import build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.demo.identifier_says import IdentifierSays
from inertial_estimation.demo.load_scores import FoundLoad, LoadScores, TrueLoad
from inertial_estimation.demo.reporter import Reporter, run, write_line
from inertial_estimation.demo.scores import KEPT_NS, percentiles
from inertial_estimation.demo.watcher import Watched
from inertial_estimation.errors import ModelError
from inertial_estimation.ros.conversions import stamp_to_ns
from inertial_estimation.ros.identifier_arrays import SEPARATOR
from inertial_estimation.ros.inertial_parameters import LATCHED, TOPIC, from_message
from inertial_estimation.simulation.description import icub_urdf


class LoadWatcher(Reporter):
    """Compares, and writes a line now and then."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        settings: EstimatorSettings,
        write: Callable[[str], object],
    ) -> None:
        super().__init__('load_watcher', write)
        self._model = build_robot(settings, icub_urdf())
        link = self._model.link_names.index(asked['link'])
        submodel = next(one for one in self._model.submodels if link in one.links)
        self._frame, self._links = asked['link'], list(submodel.links)
        self._label = f'{submodel.name}: {asked["link"]}'
        self._described = float(self._model.parameters[self._links, 0].sum())
        self._scores = LoadScores(asked['estimators'])
        self._load: TrueLoad | None = None
        self._says = IdentifierSays(asked['identifier'], submodel.name)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 20)
        self._truth = Watched(self, asked['robot'])
        self._watched = [Watched(self, name) for name in asked['estimators']]
        for kind, topic, callback in (
            (InertiaStamped, f'{asked["robot"]}/load', self._on_load),
            (Float64MultiArray, TOPIC, self._on_update),
            (Float64MultiArray, f'{asked["identifier"]}/payloads', self._on_payloads),
        ):
            self.create_subscription(kind, topic, callback, LATCHED)

    def report(self) -> dict:
        """Return the state of the comparison."""
        self._compare()
        scores, names = self._scores, [one.name for one in self._watched]
        report = {
            'estimators': names if scores.newest_ns else [],
            'complete': scores.is_complete(self._load),
            'updates': scores.updates,
            'inconsistent_updates': scores.inconsistent,
            'refusal': scores.refusal,
            'least_margin': scores.least_margin,
            'age_ms': percentiles([age for one in self._watched for age in one.ages]),
            'identifier': self._says.report(monotonic()),
        }
        if self._load is None:
            return report
        stamp_ns, mass, center = self._load
        return {
            **report,
            'carried_for_s': 1e-9 * (scores.newest_ns - stamp_ns),
            'load': {'link': self._frame, 'mass_kg': mass, 'center_m': center},
            **scores.figures(self._load, self._described),
            'false_force_n': {name: scores.false_forces(self._load, name) for name in names},
        }

    def _compare(self) -> None:
        """Compare what has come since the last time."""
        every = [self._truth, *self._watched]
        states = [one.state for one in every if one.state is not None]
        if len(states) < len(every):
            return
        truth, *estimates = states
        common = sorted(set.intersection(*(state.stamps for state in states)))
        if common:
            true = truth.wrenches.get(common, [self._frame])[:, 0, :3]
            found = [one.wrenches.get(common, [self._frame])[:, 0, :3] for one in estimates]
            names = (one.name for one in self._watched)
            forces = {name: force - true for name, force in zip(names, found)}
            self._scores.add_forces(common, forces)
        for state in states:
            # Whoever is late still finds its counterparts; what has been compared is gone.
            late_ns = self._truth.newest_ns - KEPT_NS
            state.forget(max(common[-1] if common else 0, late_ns))

    def _on_load(self, message: InertiaStamped) -> None:
        """Note what is carried."""
        inertia = message.inertia
        center = (inertia.com.x, inertia.com.y, inertia.com.z)
        self._load = TrueLoad(stamp_to_ns(message.header.stamp), inertia.m, center)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Note what the identifier says of itself and of the submodel that carries."""
        said = {status.name: status.message for status in message.status}
        self._says.hear(said, monotonic())

    def _on_update(self, message: Float64MultiArray) -> None:
        """Note what is published of all links."""
        try:
            parameters = from_message(self._model, message)
        except ModelError as error:
            self._scores.add_refusal(str(error))
            return
        self._scores.add_update(self._truth.newest_ns, parameters, self._links)

    def _on_payloads(self, message: Float64MultiArray) -> None:
        """Note what the identifier says of the load."""
        labels = message.layout.dim[0].label.split(SEPARATOR)
        found = None
        if self._label in labels:
            row = np.reshape(message.data, (len(labels), -1))[labels.index(self._label)]
            found = FoundLoad(float(row[0]), tuple(map(float, row[1:4])))
        self._scores.add_found(self._truth.newest_ns, found)


def main() -> int:
    """Run the process until it is interrupted."""
    asked = json.loads(sys.argv[1])
    settings = EstimatorSettings.from_yaml(Path(asked['config']), asked['estimators'][0])
    return run(lambda: LoadWatcher(asked, settings, write_line))
