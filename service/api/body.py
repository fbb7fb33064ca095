"""Bodies read whole, up to a limit."""

from collections.abc import Sequence

from fastapi import Request

from service.errors import TooLarge, UnsupportedFormat

IDENTITY = "identity"


def encoding_of(request: Request) -> str:
    """Return how the body is encoded, ``identity`` if it is not."""
    return request.headers.get("content-encoding", IDENTITY).strip().lower()


async def read_body(
    request: Request, *, max_bytes: int, encodings: Sequence[str] = (IDENTITY,)
) -> bytes:
    """Return the body as it came; what arrives is counted, whatever the headers claim.

    Raises
    ------
    TooLarge
        If the body is longer than ``max_bytes``.
    UnsupportedFormat
        If it is encoded otherwise, by gzip for example.
    """
    if encoding_of(request) not in encodings:
        known = ", ".join(encodings)
        raise UnsupportedFormat.at(
            "Content-Encoding", f"expected {known}; identity is the body as it is, not compressed"
        )
    too_large = TooLarge.at("body", f"expected at most {max_bytes} bytes")
    claimed = request.headers.get("content-length", "0")
    if claimed.isdigit() and int(claimed) > max_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise too_large
        parts.append(chunk)
    return b"".join(parts)
