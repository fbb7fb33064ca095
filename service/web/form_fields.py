"""The fields of a small form."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from service.errors import MalformedRequest, TooLarge

MOST_BYTES = 8192


async def form_fields(request: Request, *, most_bytes: int = MOST_BYTES) -> dict[str, str]:
    """Return the fields by name, of those sent twice the last.

    Raises
    ------
    TooLarge, MalformedRequest
        If it is longer than its longest, or cannot be read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise TooLarge.at("body", f"expected a form of at most {most_bytes} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise MalformedRequest.at("body", "expected application/x-www-form-urlencoded") from error
    return dict(pairs)
