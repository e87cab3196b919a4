# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Read and write the bytes of sensor messages, without ROS.

The node reads subscriptions and the replay reads bags with the same decoders. They know
one encoding, plain little-endian CDR (encapsulation ``00 01 00 00``), which is what ROS 2
sends on every common machine; for anything else they return None and the caller falls back to
a general deserializer.

A stream keeps its names, frame and lengths for hours. A decoder therefore parses a layout once
and afterwards only compares, with the padding masked out: it is uninitialised memory.
"""

from inertial_estimation.messages.decoders import (
    ImuDecoder,
    JointStateDecoder,
    OrientationDecoder,
    PointDecoder,
    TemperatureDecoder,
    WrenchDecoder,
)
from inertial_estimation.messages.encoders import (
    JointEffortEncoder,
    WrenchEncoder,
    WrenchesEncoder,
)
from inertial_estimation.messages.names import topic_names
from inertial_estimation.messages.readings import (
    ImuReading,
    JointReading,
    OrientationReading,
    PointReading,
    TemperatureReading,
    WrenchReading,
    absent_if,
)

__all__ = [
    'ImuDecoder',
    'ImuReading',
    'JointEffortEncoder',
    'JointReading',
    'JointStateDecoder',
    'OrientationDecoder',
    'OrientationReading',
    'PointDecoder',
    'PointReading',
    'TemperatureDecoder',
    'TemperatureReading',
    'WrenchDecoder',
    'WrenchEncoder',
    'WrenchReading',
    'WrenchesEncoder',
    'absent_if',
    'topic_names',
]
