"""Digest of a bins document's content, independent of how its JSON is written."""

import hashlib
import struct
from typing import Any

from service.bins.schemas import BinsDocument
from service.json_pieces import SORTED, json_pieces

# Names and values that follow from others are not part of the content.
_NO_CONTENT = {"content_sha256", "calibration", "tables"}
_NO_CONTENT_OF_A_TABLE = {"bins": {"__all__": {"weight", "odds_ratio"}}}


def content_sha256(document: BinsDocument) -> str:
    """Return the SHA-256 of the content, as JSON in UTF-8: keys sorted, no white space.

    Programs write real numbers differently, such as ``1``, ``1.0`` and ``1e0``. Each is replaced
    by the 16 hexadecimal digits of its big-endian binary64.
    """
    content = document.model_dump(by_alias=True, exclude=_NO_CONTENT)
    tables = [
        table.model_dump(by_alias=True, exclude=_NO_CONTENT_OF_A_TABLE) for table in document.tables
    ]
    digest = hashlib.sha256()
    for piece in json_pieces(_bits(content | {"tables": tables}), SORTED):
        digest.update(piece.encode())
    return digest.hexdigest()


def _bits(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, float):
        # Some programs write -0 as 0, and the two compare equal.
        return struct.pack(">d", value + 0.0).hex()
    if isinstance(value, dict):
        return {key: _bits(part) for key, part in value.items()}
    return [_bits(part) for part in value] if isinstance(value, list | tuple) else value
