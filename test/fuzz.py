# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Search for input that a reader does not survive: `python test/fuzz.py READER RUNS`.

Atheris is guided by the coverage of the package, and writes such input to a file. It ends the
process.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import atheris

with atheris.instrument_imports(include=['inertial_estimation']):
    from fuzz_targets import TARGETS, survives

if __name__ == '__main__':
    name, runs = sys.argv[1:]
    # A disk would take longer than most readers.
    if Path('/dev/shm').is_dir():
        tempfile.tempdir = '/dev/shm'
    read, examples = TARGETS[name]()
    corpus = Path(tempfile.mkdtemp())
    for k, example in enumerate(examples):
        (corpus / str(k)).write_bytes(example)
    limits = '-timeout=10', '-rss_limit_mb=2000', f'-max_len={2 * max(map(len, examples))}'
    atheris.Setup([name, f'-runs={runs}', *limits, str(corpus)], partial(survives, read))
    atheris.Fuzz()
