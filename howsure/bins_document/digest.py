"""Digest of a bins document's content, independent of how its JSON is written."""

import hashlib
import struct

import msgspec

from howsure.bins_document.document import BinsDocument

# Names and values that follow from others are not part of the content.
NO_CONTENT = ("content_sha256", "calibration")
NO_CONTENT_OF_A_BIN = ("weight", "odds_ratio")
# The digest of a document before `signed`.
UNSIGNED = "0" * 64


def content_sha256(document: BinsDocument) -> str:
    """Return the SHA-256 of the content, as JSON in UTF-8: keys sorted, no white space.

    Programs write real numbers differently, such as ``1``, ``1.0`` and ``1e0``. Each is replaced
    by the 16 hexadecimal digits of its big-endian binary64.
    """
    content = msgspec.to_builtins(document)
    for name in NO_CONTENT:
        content.pop(name, None)
    for table in content["tables"]:
        for row in table["bins"]:
            for name in NO_CONTENT_OF_A_BIN:
                row.pop(name, None)
    return hashlib.sha256(msgspec.json.encode(_bits(content), order="sorted")).hexdigest()


def signed(document: BinsDocument) -> BinsDocument:
    """Return a document with the digest of its content."""
    return msgspec.structs.replace(document, content_sha256=content_sha256(document))


def _bits(value: object) -> object:
    if isinstance(value, float):
        # Some programs write -0 as 0, and the two compare equal.
        return struct.pack(">d", value + 0.0).hex()
    if isinstance(value, dict):
        return {key: _bits(part) for key, part in value.items()}
    return [_bits(part) for part in value] if isinstance(value, list | tuple) else value
