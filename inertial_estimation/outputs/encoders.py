# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Topics of an output, and the encoders of their messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from inertial_estimation.arrays import Array
from inertial_estimation.outputs.topics import LABELLED, Layout, Output
from inertial_estimation.signals.messages import JOINT_STATE, MULTI_DOF_JOINT_STATE, Encoder

Encode = Callable[[int, Array], bytes]
"""Returns the message of a stamp [ns] and of values."""


def encoders(output: Output, layout: Layout) -> list[tuple[str, Encode]]:
    """Return the topics of an output, each with the encoder of its messages."""
    names, frames = output.names(layout) if output.names else (), output.frames(layout)
    if output.type in LABELLED:
        new = effort_encoder if output.type == JOINT_STATE else wrenches_encoder
        return [(output.topic, new(names, frames[0]).encode)]
    topics = [output.topic]
    if output.names:
        topics = [f'{output.topic}/{name}' for name in topic_names(names)]
    return [
        (topic, Encoder(output.type, frame).encode)
        for topic, frame in zip(topics, frames, strict=True)
    ]


def topic_names(names: Iterable[str]) -> list[str]:
    """Return names that are valid in a topic, different ones for different names."""
    safe: list[str] = []
    for name in names:
        token = re.sub(r'[^A-Za-z0-9_]', '_', name)
        if not token or token[0].isdigit():
            token = '_' + token
        candidate, count = token, 2
        while candidate in safe:
            candidate, count = f'{token}_{count}', count + 1
        safe.append(candidate)
    return safe


def effort_encoder(names: Sequence[str], frame_id: str = '') -> Encoder:
    """Return the encoder of JointState messages with efforts only, shape (n,) [Nm or N]."""
    return Encoder(JOINT_STATE, frame_id, names, (0, 0, len(names)))


def wrenches_encoder(names: Sequence[str], frame_id: str = '') -> Encoder:
    """Return the encoder of MultiDOFJointState messages with wrenches only, (n, 6) [N, Nm]."""
    return Encoder(MULTI_DOF_JOINT_STATE, frame_id, names, (0, 0, len(names)))
