"""Requests that may be repeated: what one has made is answered again, and not made twice."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from service.operations.workspace import Workspace
from service.storage.idempotency_keys import KeyedRequest, KeyTaken, made_before


@dataclass(frozen=True)
class Started:
    """The calibration of a request, and whether an earlier one of the same key has made it."""

    calibration_id: uuid.UUID
    replayed: bool


def only_once(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    request: KeyedRequest | None,
    start: Callable[[], uuid.UUID],
) -> Started:
    """Return what the request has made before, or let ``start`` make it.

    ``start`` keeps the key in the transaction that makes the calibration, so that of several at
    once one makes it, and the others undo what they did and find it.

    Raises
    ------
    InvalidInput
        If the key came with another request before.
    """
    if request is None:
        return Started(start(), replayed=False)
    while True:
        with workspace.database.reading() as session:
            found = made_before(session, tenant_id, request)
        if found is not None:
            return Started(found, replayed=True)
        try:
            return Started(start(), replayed=False)
        except KeyTaken:
            # It is found now, unless it was deleted at once.
            continue
