# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a live session refuses is said as other ways say it: one line, with options by name."""

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from robots import nested_humanoid_urdf

from inertial_estimation.cli import main

SAID = 'inertial-estimation calibrate: '


@pytest.mark.parametrize(
    ('more', 'told', 'code'),
    [
        (('--load', '0.5', '0', '0', '0'), '--load', 2),
        (('--loads', 'loads.yaml'), '--loads', 2),
        (('--config', 'none.yaml'), 'none.yaml', 1),
        (('--config', 'node.yaml', '--robot', 'robot.urdf'), '--ft', 1),
    ],
)  # fmt: skip
def test_errors_of_the_session_are_those_of_the_command(
    tmp_path, monkeypatch, capsys, more, told, code
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'robot.urdf').write_text(nested_humanoid_urdf())
    (tmp_path / 'node.yaml').write_text('wrench_estimator: {ros__parameters: {imus: [head]}}')
    (tmp_path / 'loads.yaml').write_text('loads: [{}, {mass: 0.5, centre: [0, 0, 0]}]')
    topics = () if '--config' in more else ('--readings', 'a', '--imu', 'b')
    assert main(['calibrate', 'live', '--ft', 'foot', *topics, *more]) == code
    said = capsys.readouterr().err
    assert said.startswith(SAID) and said.count('\n') == 1
    assert told in said
