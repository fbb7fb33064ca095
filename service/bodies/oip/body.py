"""Bodies of requests: inflated up to a limit, and divided into JSON and raw tensors."""

import re
import zlib

from service.errors import MalformedRequest, TooLarge, UnsupportedFormat, shown

ENCODINGS = ("identity", "gzip", "deflate")
LENGTH_HEADER = "Inference-Header-Content-Length"
_WINDOW_BITS = {"gzip": 31, "deflate": 15}


def inflate(body: bytes, encoding: str, *, max_bytes: int) -> bytes:
    """Return the body as it was before ``Content-Encoding``.

    No more than ``max_bytes`` are made of it, however many it would give.

    Raises
    ------
    UnsupportedFormat
        If the encoding is another.
    TooLarge
        If it gives more than ``max_bytes``.
    MalformedRequest
        If it is not so encoded, or breaks off.
    """
    if encoding == "identity":
        return body
    if encoding not in _WINDOW_BITS:
        known = ", ".join(ENCODINGS)
        raise UnsupportedFormat.at("Content-Encoding", f"expected {known}, got {shown(encoding)}")
    engine = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        inflated = engine.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise MalformedRequest.at("body", f"this is no {encoding}: {error}") from error
    if len(inflated) > max_bytes:
        raise TooLarge.at("body", f"expected at most {max_bytes} bytes once it is inflated")
    if not engine.eof or engine.unused_data:
        raise MalformedRequest.at("body", f"expected one whole {encoding} stream and no more")
    return inflated


def divide(body: bytes, header_length: str | None) -> tuple[memoryview, memoryview]:
    """Return the JSON and the raw tensors behind it; without the header all is JSON.

    Raises
    ------
    MalformedRequest
        If the header is no number of bytes that the body has.
    """
    view = memoryview(body)
    if header_length is None:
        return view, view[len(view) :]
    digits = re.fullmatch(r"[0-9]{1,18}", header_length)
    if digits is None or int(header_length) > len(view):
        raise MalformedRequest.at(
            LENGTH_HEADER,
            f"expected a number of bytes from 0 to {len(view)}, which is the length of the body, "
            f"got {shown(header_length)}",
        )
    return view[: int(header_length)], view[int(header_length) :]
