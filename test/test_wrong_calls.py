# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrong calls end with exit code 2, with the usage of the verb that was called, and say what helps.

Not covered: values that a verb refuses by itself, which are in the tests of the verb.
"""

from __future__ import annotations

import pytest

from inertial_estimation.cli import main


@pytest.mark.parametrize(
    'call',
    [
        'calibrate affine a.mcap --robot a.urdf --config a.yaml --nothing',
        'calibrate show a.yaml --nothing',
        'calibrate offsets --robot a.urdf --config a.yaml',
        'check a.urdf --nothing',
        'identify a.npz --robot a.urdf --config a.yaml --nothing',
    ],
)
def test_unknown_or_missing_arguments_end_with_2(call: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(call.split())
    assert ended.value.code == 2


def test_a_calibration_that_is_not_there_comes_with_a_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ways = (
        ('offset-without-model', 'a.npz'),
        ('matrix', *('--data', 'a.npz', '0', '0', '0', '0')),
        ('live', '--readings', 'a', '--imu', 'b'),
    )
    for way in ways:
        call = ['calibrate', *way, '--ft', 'foot', '--calibration', 'none.yaml']
        assert main(call) == 1
        assert "'none.yaml'" in capsys.readouterr().err


@pytest.mark.parametrize(
    'load', [('-1', '0', '0', '0'), ('nan', '0', '0', '0'), ('1', '0', 'inf', '0')]
)
def test_a_load_that_is_none_is_refused_before_the_session(
    load: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    call = ['calibrate', 'live', '--ft', 'foot', '--readings', 'a', '--imu', 'b', '--load', *load]
    assert main(call) == 2
    assert '--load is a mass [kg], 0 or more' in capsys.readouterr().err
