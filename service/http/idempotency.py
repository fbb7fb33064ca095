"""``Idempotency-Key``: the header that makes a repeated request safe."""

import hashlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from service.errors import InvalidInput
from service.storage.idempotency_keys import HEADER, KeyedRequest, KeyTaken, made_before
from service.workspace import Workspace


@dataclass(frozen=True)
class Started:
    """The calibration of a request, and whether an earlier request with the same key made it."""

    calibration_id: uuid.UUID
    replayed: bool


def run_idempotent(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    request: KeyedRequest | None,
    start: Callable[[], uuid.UUID],
) -> Started:
    """Return the calibration of an earlier request with the same key, or call ``start``.

    ``start`` stores the key in the transaction that adds the calibration. Of several simultaneous
    requests one succeeds; the others roll back and find its calibration.

    Raises
    ------
    InvalidInput
        If the key was used for a different request.
    """
    if request is None:
        return Started(start(), replayed=False)
    while True:
        with workspace.database.reading(tenant_id) as session:
            found = made_before(session, tenant_id, request)
        if found is not None:
            return Started(found, replayed=True)
        try:
            return Started(start(), replayed=False)
        except KeyTaken:
            # It can be found now, unless it was deleted at once.
            continue


MAX_CHARACTERS = 255
REPLAYED_HEADER = "Idempotency-Replayed"
# A string as in RFC 9651: printable ASCII with `"` and `\` escaped.
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_KEY = re.compile(rf"[\x20-\x7e]{{1,{MAX_CHARACTERS}}}")

IDEMPOTENCY_KEY_HEADER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Chosen by the client for each request, in quotes or bare: 1 to "
    f"{MAX_CHARACTERS} printable ASCII characters. A repeated request gets the calibration of the "
    f"first one, with `{REPLAYED_HEADER}: true`; a request with other content gets 422. A key is "
    "kept as long as its calibration.",
    "schema": {"type": "string"},
    "example": '"8e03978e-40d5-43e8-bc93-6894a57f9324"',
}


def idempotency_key(request: Request) -> str | None:
    """Return the idempotency key of a request; None without one.

    Raises
    ------
    InvalidInput
        If the key is invalid or repeated.
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    key = _unquoted(given[0].strip())
    if len(given) > 1 or key is None or _KEY.fullmatch(key) is None:
        raise InvalidInput.at(
            HEADER,
            f"expected one key of 1 to {MAX_CHARACTERS} printable ASCII characters, in quotes or "
            "bare",
        )
    return key


def _unquoted(given: str) -> str | None:
    if not given.startswith('"'):
        return given
    found = _QUOTED.fullmatch(given)
    return None if found is None else re.sub(r"\\(.)", r"\1", found[1])


def keyed_request(key: str | None, request: Request, content: object) -> KeyedRequest | None:
    """Return the key with a digest of the request; None without a key.

    ``content`` is the body as plain data, with digests instead of files.
    """
    if key is None:
        return None
    asked = [request.method, request.url.path, request.url.query, content]
    return KeyedRequest(key, digest_of(json.dumps(asked).encode()))


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return hashlib.sha256(body).hexdigest()


def tell_replayed(response: Response, started: Started) -> None:
    """Mark a response that shows the calibration of an earlier request."""
    if started.replayed:
        response.headers[REPLAYED_HEADER] = "true"
