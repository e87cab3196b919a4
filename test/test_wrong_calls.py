# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrong calls end with exit code 2, with the usage of the verb that was called, and say what helps.

Not covered: values that a verb refuses by itself, which are in the tests of the verb.
"""

from __future__ import annotations

import pytest

from inertial_estimation.cli import main

ROBOT = ('--robot', 'a.urdf', '--config', 'a.yaml')


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Make a wrong call; return usage and error."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = ' '.join(capsys.readouterr().err.split())
    usage, _, error = told.partition(' error: ')
    return usage, error


@pytest.mark.parametrize(
    ('verb', 'rest'),
    [
        ('calibrate offset-without-model', ('a.npz', '--ft', 'a', '--imu-rpy', '0', '0', '0')),
        ('calibrate affine', ('a.mcap', *ROBOT, '--nothing')),
        ('calibrate show', ('a.yaml', '--nothing')),
        ('check', ('a.urdf', '--nothing')),
        ('identify', ('a.npz', *ROBOT, '--nothing')),
    ],
)
def test_what_a_verb_does_not_know_is_said_with_its_own_usage(
    verb: str, rest: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    usage, error = said(capsys, *verb.split(), *rest)
    assert usage.startswith(f'usage: inertial-estimation {verb} [-h]')
    unknown = rest[rest.index('--imu-rpy') :] if '--imu-rpy' in rest else rest[-1:]
    assert error == f'unrecognized arguments: {" ".join(unknown)}'


@pytest.mark.parametrize(
    'rest',
    [
        ('a.mcap', *ROBOT, '--support', 'l_sole', 'r_sole'),
        (*ROBOT, '--support', 'l_sole', 'r_sole', 'a.mcap'),
    ],
)
@pytest.mark.parametrize('way', ['affine', 'temperature'])
def test_a_second_support_where_there_is_one_is_named(
    way: str, rest: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    _, error = said(capsys, 'calibrate', way, *rest)
    assert error == f'unrecognized arguments: {rest[-1]} (--support takes one value)'


def test_the_help_says_where_several_supports_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    for way in ('affine', 'temperature'):
        with pytest.raises(SystemExit):
            main(['calibrate', way, '--help'])
        assert 'one frame, as only calibrate offsets' in ' '.join(capsys.readouterr().out.split())


@pytest.mark.parametrize('option', ['--ft', '--support'])
def test_a_log_that_an_option_took_is_to_come_first(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ('calibrate', 'offsets', *ROBOT, option, 'one', 'other', 'stand.mcap')
    usage, error = said(capsys, *call)
    assert usage.startswith('usage: inertial-estimation calibrate offsets ')
    assert error == (
        'the following arguments are required: LOG; put LOG first, as '
        f'{option} takes all that follows it'
    )


def test_a_log_that_nothing_took_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, error = said(capsys, 'calibrate', 'offsets', *ROBOT)
    assert error == 'the following arguments are required: LOG'


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
        assert capsys.readouterr().err == (
            "inertial-estimation calibrate: 'none.yaml' of --calibration is not there: name "
            'another one, or leave the option out if nothing was calibrated so far\n'
        )


@pytest.mark.parametrize(
    'load', [('-1', '0', '0', '0'), ('nan', '0', '0', '0'), ('1', '0', 'inf', '0')]
)
def test_a_load_that_is_none_is_refused_before_the_session(
    load: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    call = ['calibrate', 'live', '--ft', 'foot', '--readings', 'a', '--imu', 'b', '--load', *load]
    assert main(call) == 2
    assert '--load is a mass [kg], 0 or more' in capsys.readouterr().err
