# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Keys from a terminal or a pipe, and what is said where nobody watches.

Not covered: how the picture on a terminal looks.
"""

import os
import sys
import termios
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hanging_body import GRAVITY, MATRIX
from turned_body import TurnedBody

from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.conductor import Conductor
from inertial_estimation.calibration.session import Plan, Session
from inertial_estimation.ros.calibration_terminal import LINE_PERIOD, Display, figures, keys


def typed(read, expected):
    """Return what was typed, which may take a moment to come."""
    deadline, found = time.monotonic() + 10.0, ''
    while len(found) < expected and time.monotonic() < deadline:
        found += read()
    return found


@pytest.fixture
def conductor(rng):
    found = Conductor(Session(Plan('foot', 'x', before=SensorCalibration(MATRIX))))
    for one in TurnedBody(rng).readings(np.array([0.0, 0.0, -GRAVITY]), 100):
        found.take(Reading(*one), 0.0)
    return found


def test_single_keys_of_a_terminal_are_taken_and_it_is_given_back(monkeypatch):
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(fileno=lambda: theirs))
    with keys() as read:
        assert read() == ''
        os.write(ours, b'r\rq')
        assert typed(read, 3) == 'r\nq'
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_a_pipe_that_ends_is_not_asked_again(monkeypatch):
    out, into = os.pipe()
    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(fileno=lambda: out))
    with keys() as read:
        os.write(into, b'\n')
        assert typed(read, 1) == '\n'
        os.close(into)
        assert read() == '' and read() == ''
        os.close(out)
        # It is closed, and looking at it would raise.
        assert read() == ''


def test_without_a_terminal_lines_are_said_once(conductor, capsys):
    conductor.notes.append('a [note]')
    with Display(conductor) as display:
        display.show(0.0, ['nobody publishes x'])
        display.show(0.1, [])
        display.show(0.2 + LINE_PERIOD, [])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and lines[0] == 'a [note]' and 'nobody publishes x' in lines[1]


def test_the_picture_holds_the_figures(conductor):
    text = Display(conductor)._panel(0.0, ['nobody publishes x']).renderable
    for line in figures(conductor):
        assert line in text
    assert 'poses 4 of 40' in text and 'nobody publishes x' in text
