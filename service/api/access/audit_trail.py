"""Writes down what was refused: plain ASGI, around the guard, which refuses some of it.

What is done is written by who does it, in the same transaction.
"""

from dataclasses import dataclass
from http import HTTPStatus

import structlog
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.access.actions import AskedAction, asked_action
from service.api.access.bearer import CALLER
from service.api.request_id import REQUEST_ID
from service.api.request_meter import FAILURE
from service.errors import ForeignSite, RequestLimitReached, ServiceError, UnknownHost
from service.operations.api_keys import Caller
from service.operations.audit import Act
from service.operations.workspace import Workspace

_AUDITED = "howsure.audited"
INTERNAL_ERROR = "internal-error"
# Of these there may be any number, at no cost to who has them sent: a page of another site may.
_ONLY_COUNTED = frozenset(kind.code() for kind in (RequestLimitReached, ForeignSite, UnknownHost))

log = structlog.get_logger(__name__)


@dataclass
class _Audited:
    """What a request asks to be changed, and the act made of it; copies of a scope share it."""

    asked: AskedAction
    act: Act | None = None


class AuditTrail:
    """An ASGI app that passes everything on.

    Who is not known to anybody is in no row: there is no tenant whose it would be.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; if it asked for a change in vain, write that down afterwards."""
        asked = None
        if scope["type"] == "http":
            path: str = scope["path"].removeprefix(scope.get("root_path", ""))
            asked = asked_action(scope["method"], path)
        if asked is None:
            await self._app(scope, receive, send)
            return
        scope[_AUDITED] = _Audited(asked)
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            if status >= HTTPStatus.BAD_REQUEST and CALLER in scope:
                await run_in_threadpool(_refused, scope, asked)


def act_of(scope: Scope) -> Act:
    """Return what the request asks to be changed, by whom: one object, however often it is asked.

    Its route is one of `ACTIONS`, and its caller known.
    """
    audited: _Audited = scope[_AUDITED]
    if audited.act is None:
        caller: Caller = scope[CALLER]
        request_id = scope.get("state", {}).get(REQUEST_ID)
        asked = audited.asked
        audited.act = Act(caller.tenant_id, asked.name, asked.via, caller.key_id, request_id)
    return audited.act


def _refused(scope: Scope, asked: AskedAction) -> None:
    act = act_of(scope)
    if act.is_kept:
        # It was done: what failed came after it, a wait or a file that is swept later.
        return
    app = scope["app"]
    assert isinstance(app, FastAPI)  # noqa: S101 - the service itself
    workspace: Workspace = app.state.workspace
    code = scope.get("state", {}).get(FAILURE, INTERNAL_ERROR)
    if code in _ONLY_COUNTED:
        return
    try:
        act.refused(workspace.database, asked.subject, code)
    except (ServiceError, SQLAlchemyError) as error:
        # The database is away, for which it was refused most likely; nothing was changed.
        log.warning("refusal_not_written", action=asked.name, code=code, error=type(error).__name__)
