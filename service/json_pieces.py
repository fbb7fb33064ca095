"""JSON text of large documents, written so that other threads can run meanwhile."""

import json
from collections.abc import Iterator, Mapping
from functools import partial

import msgspec
from starlette.responses import StreamingResponse


class _Compact(json.JSONEncoder):
    """Writes plain data and parts of reports without spaces, hundreds of times as fast."""

    def encode(self, o: object) -> str:
        return msgspec.json.encode(o).decode()


_COMPACT = _Compact(separators=(",", ":"))
# Deep enough for the single measures of several reports, and for the single bins of a document.
DEPTH = 6


def json_pieces(
    value: object,
    encoder: json.JSONEncoder = _COMPACT,
    *,
    depth: int = DEPTH,
) -> Iterator[str]:
    """Yield the text that an encoder writes in pieces; by default it has no spaces.

    Encoding in one call would stop all other threads until its end. Objects and lists that hold
    others are divided down to ``depth``; what is below them is one piece. A call for each number
    would take ten times as long.

    By default a number that is not finite is null.
    """
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    inside = partial(json_pieces, encoder=encoder, depth=depth - 1)
    if not depth or not _holds_containers(value):
        yield encoder.encode(value)
    elif isinstance(value, dict):
        separator = "{"
        for key in sorted(value) if encoder.sort_keys else value:
            yield f"{separator}{encoder.encode(str(key))}{encoder.key_separator}"
            yield from inside(value[key])
            separator = encoder.item_separator
        yield "}"
    elif isinstance(value, list | tuple):
        separator = "["
        for part in value:
            yield separator
            yield from inside(part)
            separator = encoder.item_separator
        yield "]"


def _holds_containers(value: object) -> bool:
    if not isinstance(value, dict | list | tuple):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return any(isinstance(part, dict | list | tuple | msgspec.Struct) for part in parts)


CHUNK_CHARACTERS = 2**16


def json_chunks(value: object) -> Iterator[bytes]:
    """Yield the text in UTF-8, in chunks of about 64 KiB."""
    pieces: list[str] = []
    size = 0
    for piece in json_pieces(value):
        pieces.append(piece)
        size += len(piece)
        if size >= CHUNK_CHARACTERS:
            yield "".join(pieces).encode()
            pieces, size = [], 0
    yield "".join(pieces).encode()


class LargeJSONResponse(StreamingResponse):
    """A JSON response of any size, written in chunks; make it in a thread.

    To join the chunks of 60 MB in one call would stop all threads for long.
    """

    media_type = "application/json"

    def __init__(self, content: object, headers: Mapping[str, str] | None = None) -> None:
        chunks = list(json_chunks(content))
        length = str(sum(map(len, chunks)))
        super().__init__(chunks, headers={**(headers or {}), "content-length": length})
