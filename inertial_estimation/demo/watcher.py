# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A process that compares estimators with the embedded robot and writes what it finds.

It is told on its command line, as JSON: the names of the estimators, and the joints that move.
Every line of its standard output is the state of the comparison, as JSON; the last line, written
when it is interrupted, is the result.
"""

import json
import sys
from collections.abc import Callable, Sequence
from statistics import fmean, median
from time import time_ns

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState, MultiDOFJointState

from inertial_estimation.demo.reporter import Reporter, run, write_line
from inertial_estimation.demo.scores import KEPT_NS, Comparison, NamedRows, State, percentiles
from inertial_estimation.signals.cdr import NANOSECONDS
from inertial_estimation.signals.decoders import JointStateDecoder
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter

FILTER = (0.12, 3)
"""Window [s] and degree of the filter that says how fast the joints move."""
QOS = QoSProfile(depth=500)


class Watched:
    """
    The two topics of a robot or an estimator.

    ages [ms].
    """

    def __init__(self, node: Node, name: str) -> None:
        self.name = name
        self.ages: list[float] = []
        self.newest_ns = 0
        self._wrenches: NamedRows | None = None
        self._torques: NamedRows | None = None
        for message_type, topic, callback in (
            (MultiDOFJointState, 'external_wrenches', self._on_wrenches),
            (JointState, 'joint_torques', self._on_torques),
        ):
            node.create_subscription(message_type, f'{name}/{topic}', callback, QOS, raw=True)

    @property
    def state(self) -> State | None:
        """What was received; None before both topics spoke."""
        if self._wrenches is None or self._torques is None:
            return None
        return State(self._wrenches, self._torques)

    def _on_wrenches(self, data: bytes) -> None:
        """Keep external wrenches."""
        now_ns = time_ns()
        if self._wrenches is None:
            names = deserialize_message(data, MultiDOFJointState).joint_names
            self._wrenches = NamedRows(names, 6)
        self.newest_ns = self._wrenches.add(data)
        self.ages.append(1e-6 * (now_ns - self.newest_ns))

    def _on_torques(self, data: bytes) -> None:
        """Keep joint torques."""
        if self._torques is None:
            self._torques = NamedRows(deserialize_message(data, JointState).name, 1)
        self._torques.add(data)


class Motion:
    """How fast the joints move, and at which rate they are reported."""

    def __init__(self, node: Node, moving: Sequence[str]) -> None:
        self._decode = JointStateDecoder().decode
        self._moving = moving
        self._filter = SavitzkyGolayFilter(len(moving), *FILTER)
        self._rows: list[int] = []
        self._squares, self._count, self._last_ns = 0.0, 0, 0
        self.period_ns = 0
        node.create_subscription(JointState, 'joint_states', self._on_joints, QOS, raw=True)

    @property
    def acceleration(self) -> float:
        """Root mean square acceleration of the moving joints, NaN at the start [rad/s^2]."""
        return float(np.sqrt(self._squares / self._count)) if self._count else float('nan')

    def _on_joints(self, data: bytes) -> None:
        """Differentiate the positions."""
        reading = self._decode(data)
        if not self._rows:
            self._rows = [reading.names.index(name) for name in self._moving]
        interval = reading.stamp_ns - self._last_ns
        # The shortest interval: a lost message makes a longer one.
        self.period_ns = min(self.period_ns or interval, interval)
        self._last_ns = reading.stamp_ns
        self._filter.append(reading.stamp_ns, reading.positions[self._rows])
        second = self._filter.evaluate()[1]
        if self._filter.ready:
            self._squares += float(second @ second) / len(second)
            self._count += 1


class Watcher(Reporter):
    """Compares, and writes a line now and then."""

    def __init__(
        self,
        robot: str,
        estimators: Sequence[str],
        moving: Sequence[str],
        write: Callable[[str], object],
    ) -> None:
        super().__init__('demo_watcher', write)
        self._truth = Watched(self, robot)
        self._watched = [Watched(self, name) for name in estimators]
        self._motion = Motion(self, moving)
        self._comparisons: dict[str, Comparison] = {}
        self._cycles: dict[str, list[list[float]]] = {name: [] for name in estimators}
        self._start_ns = 0
        self._shown: dict[str, list] = {}
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, QOS)

    def _compare(self) -> None:
        """Compare what has come since the last time."""
        truth = self._truth.state
        if truth is None:
            return
        for watched in self._watched:
            if watched.state is not None and watched.name not in self._comparisons:
                self._comparisons[watched.name] = Comparison(truth, watched.state)
        if not self._start_ns:
            self._start()
        if self._start_ns:
            self._show(truth)
            for comparison in self._comparisons.values():
                comparison.update()
        newest = max(truth.stamps, default=0)
        truth.forget(newest - KEPT_NS)

    def _start(self) -> None:
        """Begin with the first stamp that every estimator has an estimate for."""
        if len(self._comparisons) < len(self._watched):
            return
        firsts = [comparison.first_estimated() for comparison in self._comparisons.values()]
        if None in firsts:
            return
        self._start_ns = max(firsts)
        for comparison in self._comparisons.values():
            comparison.start_ns = self._start_ns
        for watched in self._watched:
            watched.ages.clear()

    def _show(self, truth: State) -> None:
        """Keep the newest instant that the truth and all estimators have in common."""
        states = {watched.name: watched.state for watched in self._watched}
        common = set.intersection(truth.stamps, *(state.stamps for state in states.values()))
        if not common:
            return
        newest, names = [max(common)], truth.wrenches.names
        self._shown = {
            name: state.wrenches.get(newest, names)[0].tolist()
            for name, state in (('truth', truth), *states.items())
        }

    def report(self) -> dict:
        """Return the state of the comparison."""
        self._compare()
        truth, period_ns = self._truth.state, self._motion.period_ns
        return {
            'contacts': list(truth.wrenches.names) if truth is not None else [],
            'wrenches': self._shown,
            'rate_hz': NANOSECONDS / period_ns if period_ns else float('nan'),
            'joint_acceleration_rms': self._motion.acceleration,
            'estimators': {
                watched.name: self._figures(watched, period_ns)
                for watched in self._watched
                if self._start_ns
            },
        }

    def _figures(self, watched: Watched, period_ns: int) -> dict:
        """Return what is known of one estimator."""
        comparison = self._comparisons[watched.name]
        seconds = self._cycles[watched.name]
        medians, tails, longest = zip(*seconds) if seconds else ([float('nan')],) * 3
        return {
            **comparison.figures(),
            'samples': comparison.compared,
            'not_estimated': comparison.not_estimated,
            'without_truth': comparison.without_truth,
            'missed_cycles': comparison.missed(period_ns),
            'age_ms': percentiles(watched.ages),
            'cycle_time_us': {'p50': median(medians), 'p99': fmean(tails), 'max': max(longest)},
        }

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Keep the cycle times that the estimators report of each second."""
        if not self._start_ns:
            return
        for status in message.status:
            node, _, task = status.name.partition(': ')
            values = {value.key: value.value for value in status.values}
            if node in self._cycles and task == 'cycle' and values['cycles'] != '0':
                self._cycles[node].append(
                    [float(values[f'cycle time {what} [us]']) for what in ('p50', 'p99', 'max')]
                )


def main() -> int:
    """Run the process until it is interrupted."""
    asked = json.loads(sys.argv[1])
    return run(lambda: Watcher(asked['robot'], asked['estimators'], asked['moving'], write_line))
