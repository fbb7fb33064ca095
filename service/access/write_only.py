"""Responses to keys that may write and not read: what was made, and nothing of what it holds."""

from functools import partial
from http import HTTPStatus

import msgspec
from starlette.types import Message, Scope, Send

from service.access.api_keys import CALLER, READ
from service.http.bodies import held_back

# The statuses of changes that are answered with JSON.
_SUCCESS = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED})
CONTENT_LENGTH = b"content-length"
# Tells clients which scope would show the rest.
WITHHELD = (b"howsure-withheld", READ.encode())
# A dry run stores nothing: its response tells only of what the request holds.
_DRY_RUN = ("/calibrate", HTTPStatus.OK)


def without_content(scope: Scope, send: Send, path: str) -> Send:
    """Return how to send the response to a change: whole only to callers that may read."""

    def is_withheld(head: Message) -> bool:
        may_read = CALLER not in scope or READ in scope[CALLER].scopes
        return not may_read and head["status"] in _SUCCESS and (path, head["status"]) != _DRY_RUN

    return held_back(send, is_withheld, partial(_send_reference, send))


async def _send_reference(send: Send, head: Message, body: bytes) -> None:
    """Send id, status and location of what was made."""
    location = [value.decode() for name, value in head["headers"] if name == b"location"]
    resource = msgspec.json.decode(body) | dict(zip(["location"], location, strict=False))
    kept = [name for name in ("id", "status", "location") if name in resource]
    content = msgspec.json.encode({name: resource[name] for name in kept})
    headers = [header for header in head["headers"] if header[0] != CONTENT_LENGTH]
    headers += [(CONTENT_LENGTH, str(len(content)).encode()), WITHHELD]
    await send({**head, "headers": headers})
    await send({"type": "http.response.body", "body": content})
