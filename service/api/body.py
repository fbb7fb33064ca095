"""Bodies read whole, up to a limit."""

from collections.abc import Sequence

from fastapi import Request

from service.errors import TooLarge, UnsupportedFormat

IDENTITY = "identity"


def is_plain(content_encoding: bytes | None, known: Sequence[str] = (IDENTITY,)) -> bool:
    """Tell whether a body is as it is: a header ``Content-Encoding`` says nothing else."""
    return (content_encoding or b"identity").decode("latin-1").strip().lower() in known


def encoding_refused(known: Sequence[str] = (IDENTITY,)) -> UnsupportedFormat:
    """Return the failure of a body that is encoded otherwise."""
    return UnsupportedFormat.at(
        "Content-Encoding",
        f"expected {', '.join(known)}; identity is the body as it is, not compressed",
    )


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body as it came; what arrives is counted, whatever the headers claim.

    Raises
    ------
    TooLarge
        If the body is longer than ``max_bytes``.
    """
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
