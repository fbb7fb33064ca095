"""Bodies of requests that need none, or little: received whole before a route sees them."""

import asyncio
from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from service.errors import RequestTimeout, TooLarge

MOST_BYTES = 64 * 1024
# Routes that count what they receive themselves, each by the limits of what it takes.
LARGE_BODIES = frozenset(
    {
        ("POST", "/calibrate"),
        ("POST", "/calibrations/import"),
        ("POST", "/calibrations/{calibration_id}/evaluations"),
        ("POST", "/calibrations/{calibration_id}/refit"),
        ("POST", "/pages/calibrate"),
    }
)
# Received whole as well, though a picture may be longer.
MORE_BYTES = {("POST", "/pages/calibrations/{calibration_id}/try"): 16 * 1024**2}


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a head says that a body follows."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


async def received(
    receive: Receive, headers: Mapping[bytes, bytes], *, seconds: float, most: int = MOST_BYTES
) -> Receive:
    """Return what yields the whole body, and then what comes after it.

    Raises
    ------
    TooLarge
        If it is longer than ``most``, by what is claimed or by what comes.
    RequestTimeout
        If it takes longer than ``seconds``.
    ClientDisconnect
        If the client leaves before its end.
    """
    claimed = headers.get(b"content-length", b"0")
    if not claimed.isdigit() or int(claimed) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            whole = await _whole(receive, most)
    except TimeoutError as error:
        raise RequestTimeout.at("body", f"expected within {seconds:g} seconds") from error
    left: list[Message] = [{"type": "http.request", "body": whole, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


async def _whole(receive: Receive, most: int) -> bytes:
    whole = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        whole += message.get("body", b"")
        if len(whole) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(whole)


def _too_large(most: int) -> TooLarge:
    return TooLarge.at("body", f"expected at most {most} bytes")
