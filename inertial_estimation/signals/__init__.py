# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From the bytes of sensor messages to samples, without ROS.

The decoders know one encoding, plain little-endian CDR (encapsulation ``00 01 00 00``), which
every common machine sends. For anything else they return None, and the caller uses a general
deserializer. A layout is parsed once; then only names, frames and lengths are compared, with the
padding masked out, since it is uninitialised memory.
"""
