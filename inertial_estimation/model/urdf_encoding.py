# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which bytes a URDF is on disk, so that it can be written with those that it was read from.

Line ends and a byte order mark stay in the text. The encoding is the one that its first line
declares, UTF-8 where it declares none [XML 1.0, section 4.3.3].
"""

from __future__ import annotations

import codecs
import re

from inertial_estimation.errors import ModelError

MARK = '\ufeff'
UTF_8 = 'utf-8'
DECLARATION = re.compile(r'<\?xml[^>]*?\bencoding\s*=\s*(["\'])(.*?)\1')
REMEDY = (
    'save it as UTF-8, or state its encoding in its first line, as in <?xml version="1.0" '
    'encoding="ISO-8859-1"?>'
)
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def encoding_of(text: str) -> str:
    """Return in which encoding a URDF stands in a file."""
    found = DECLARATION.match(text.lstrip())
    return UTF_8 if text.startswith(MARK) or found is None else found.group(2)


def decoded(data: bytes, path: str) -> str:
    """Return the text of a URDF file, line ends as they are."""
    if data.startswith(WIDE):
        raise ModelError(f"'{path}' is in UTF-16, which is not read: save it as UTF-8")
    if b'\0' in data:
        raise ModelError(f"'{path}' is no text: name the URDF file of a robot")
    said = encoding_of(data.decode(UTF_8, 'replace'))
    try:
        text = data.decode(said)
        same = encoded(text) == data
    except LookupError as error:
        raise ModelError(
            f"'{path}' declares the encoding '{said}', which is unknown: {REMEDY}"
        ) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b'\n') + 1
        byte = data[error.start]
        raise ModelError(
            f"'{path}' is not in {said.upper()}: its line {line} holds the byte 0x{byte:02x}; "
            f'{REMEDY}'
        ) from error
    if not same:
        raise ModelError(f"'{path}' declares the encoding '{said}', but is in another: {REMEDY}")
    return text


def encoded(text: str) -> bytes:
    """Return the bytes of a URDF file."""
    return text.encode(encoding_of(text))
