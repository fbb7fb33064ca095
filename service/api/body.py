"""Bodies read whole, up to a limit."""

from fastapi import Request

from service.errors import TooLarge, UnsupportedFormat


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body; what arrives is counted, whatever the headers claim.

    Raises
    ------
    TooLarge
        If the body is longer than ``max_bytes``.
    UnsupportedFormat
        If it is encoded, by gzip for example.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedFormat.at("Content-Encoding", "send the body as it is, not compressed")
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
