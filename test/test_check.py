# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``check``; how the robot is read is tested in test_robot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.check import Check, check_urdf
from inertial_estimation.cli import main


def _rows(check: Check, title: str) -> list[dict[str, str]]:
    """Return the rows of one table."""
    rows = check.as_dict()[title]
    assert isinstance(rows, list)
    return rows


def test_tables_name_sensors_submodels_and_clusters() -> None:
    """Sign, masses and clusters of a robot that is known by construction."""
    check = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    sensors = {row['sensor']: row for row in _rows(check, 'FT sensors')}
    assert sensors['arm_sensor']['reads'] == 'upper_arm on shoulder'
    assert sensors['foot_sensor']['reads'] == 'shank on foot'
    assert sensors['leg_sensor']['pose in child link'] == (
        'xyz 0.01 -0.02 0.03 m, rpy 0.4 0.1 -2 rad'
    )
    submodels = {row['submodel']: row for row in _rows(check, 'Submodels')}
    assert submodels['thigh']['mass [kg]'] == '4.500'
    assert submodels['thigh']['sensors beyond'] == 'foot_sensor'
    clusters = {row['source']: row['serves'] for row in _rows(check, 'Clusters')}
    assert clusters['foot'] == 'thigh, shank, foot'  # no IMU of their own, and the foot's is near
    assert 'hip' in clusters['head']
    assert check.warnings == ()


def test_what_cannot_be_used_is_a_warning() -> None:
    """Mimic joints, bad sensor frames, empty links and a missing IMU are said, not raised."""
    urdf = (
        arm_with_wrist_sensor_urdf()
        .replace('<frame>child</frame>', '<frame>parent</frame>')
        .replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>')
        .replace('<mass value="2.0"/>', '<mass value="-2.0"/>')
    )
    warnings = ' | '.join(check_urdf(urdf).warnings)
    for part in ("'wrist_sensor' reports in frame 'parent'", "'elbow' is of type 'mimic'",
                 "link 'upper'", 'nothing tells how the robot moves'):  # fmt: skip
        assert part in warnings


def test_inconsistent_inertia_is_named() -> None:
    """A link that breaks the triangle inequality is named with its eigenvalue."""
    urdf = nested_humanoid_urdf().replace('ixx="0.1"', 'ixx="0.9"', 1)
    (warning,) = check_urdf(urdf, imus=['head']).warnings
    assert warning.startswith("link 'root' is not fully physically consistent")


def test_command_prints_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same findings for a person and for a machine."""
    urdf, out = tmp_path / 'robot.urdf', tmp_path / 'out.json'
    urdf.write_text(nested_humanoid_urdf())
    assert main(['check', str(urdf), '--fixed-link', 'sole', '--json', str(out)]) == 0
    assert 'leg_sensor' in capsys.readouterr().out
    assert json.loads(out.read_text())['Clusters'][0]['source'] == 'sole'


def test_command_names_a_wrong_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong file name gets one sentence and exit code 1."""
    assert main(['check', 'nowhere.urdf']) == 1
    assert "cannot read the URDF 'nowhere.urdf'" in capsys.readouterr().err


def test_command_reads_the_parameter_file_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The robot is the one that the node would build."""
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text('/**: {ros__parameters: {imus: [torso], imu: {torso: {frame: chest}}}}')
    assert main(['check', str(urdf), '--config', str(config)]) == 0
    assert 'torso' in capsys.readouterr().out


def test_a_sensor_inside_gazebo_only_is_named() -> None:
    """Simulators keep tags there that do not count; a robot with no other is told so."""
    urdf = arm_with_wrist_sensor_urdf()
    tag = urdf[urdf.index('<sensor') : urdf.index('</sensor>') + len('</sensor>')]
    nested = urdf.replace(tag, f'<gazebo reference="wrist_sensor_joint">{tag}</gazebo>')
    (warning,) = check_urdf(nested, fixed_link='base').warnings
    assert "'wrist_sensor' has a tag inside <gazebo> only" in warning
