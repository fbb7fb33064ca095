"""ASGI middleware that authorises requests before their bodies are received."""

import time
from collections.abc import Hashable
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models import AuditVia
from service.access.api_keys import CALLER, READ, Caller
from service.access.audit_log import AuditEvent, evaluation_subject
from service.access.authenticator import require_scope
from service.access.credentials import PAGES, authorization, signed_in
from service.access.origins import AllowedOrigins
from service.access.page_session import without_foreign_cookies
from service.access.route_table import OPEN, SMALL, DeclaredRoute, declared_methods, declared_route
from service.access.write_only import without_content
from service.errors import (
    ForeignSite,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    RequestLimitReached,
    ServiceError,
    UnknownHost,
)
from service.http.bodies import BODY_HOLD, encoding_refused, has_body, is_plain, received
from service.http.prediction_exchange import Headers
from service.http.problems import FAILURE, error_response
from service.http.response_head import REQUEST_ID
from service.http.services import Services
from service.lru_cache import LruCache
from service.shared_amounts import NOBODY, Hold
from service.workspace import Workspace

ACTION = "howsure.action"
FORMS = (PAGES, "/sign-in", "/sign-out")
INTERNAL_ERROR = "internal-error"
# Written to the audit log a minute.
MOST_REFUSALS = 10
# These refusals are only counted: other sites can cause any number of them at no cost.
_ONLY_COUNTED = frozenset(kind.code() for kind in (RequestLimitReached, ForeignSite, UnknownHost))

log = structlog.get_logger(__name__)


@dataclass
class AskedAction:
    """A requested change and its audit event; copies of a scope share it."""

    name: str
    via: AuditVia
    subject: str | None
    act: AuditEvent | None = None


def asked_action(route: DeclaredRoute | None) -> AskedAction | None:
    """Return the audited change that a request asks for; None if there is none."""
    if route is None or route.rule.action is None:
        return None
    calibration = route.named.get("calibration_id")
    evaluation = route.named.get("evaluation_name")
    subject = calibration
    if calibration is not None and evaluation is not None:
        subject = evaluation_subject(calibration, evaluation)
    via: AuditVia = "page" if route.path.startswith(PAGES) else "api"
    return AskedAction(route.rule.action, via, subject)


def audit_event_of(scope: Scope) -> AuditEvent:
    """Return the audit event of a request: one object, however often this is called.

    The route must have an action, and the caller must be known.
    """
    asked: AskedAction = scope[ACTION]
    if asked.act is None:
        caller: Caller = scope[CALLER]
        request_id = scope.get("state", {}).get(REQUEST_ID)
        asked.act = AuditEvent(caller.tenant_id, asked.name, asked.via, caller.key_id, request_id)
    return asked.act


def write_refusal(scope: Scope, asked: AskedAction, code: str) -> None:
    """Record that a change was refused."""
    act = audit_event_of(scope)
    if act.is_committed:
        # The change was made. Only something after it failed, such as a wait.
        return
    workspace: Workspace = scope["app"].state.workspace
    try:
        act.refused(workspace.database, asked.subject, code)
    except (ServiceError, SQLAlchemyError) as error:
        # The database is unavailable, probably the reason for the refusal too.
        log.warning("refusal_not_written", action=asked.name, code=code, error=type(error).__name__)


WINDOW_SECONDS, MOST_REMEMBERED = 60.0, 10_000  # keys


class MinuteCounts:
    """Counts events by key, each key in the minute that begins with its first event.

    The keys that were counted last are remembered. Call it from one event loop only.
    """

    def __init__(self) -> None:
        self._counts: LruCache[Hashable, tuple[float, int]] = LruCache(MOST_REMEMBERED)

    def add(self, key: Hashable) -> int:
        """Count one event; return the count of its minute."""
        now = time.monotonic()
        since, count = self._counts.get(key) or (now, 0)
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._counts.put(key, (since, count + 1))
        return count + 1


class Guard:
    """An ASGI app that checks API key, origin and body of a request and passes it on.

    If the caller is known, a refused change is recorded in the audit log, whether the guard or the
    route refused it.
    """

    def __init__(self, app: ASGIApp, *, allowed_origins: AllowedOrigins) -> None:
        self._app = app
        self._allowed_origins = allowed_origins
        # By key, action and reason. Otherwise a key without rights could fill the database.
        self._refusals = MinuteCounts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        scope["headers"] = without_foreign_cookies(headers)
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        route = declared_route(scope["method"], path)
        asked = asked_action(route)
        if asked is None:
            await self._pass_on(scope, receive, send, route, path)
            return
        scope[ACTION] = asked
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            whole_or_cut = without_content(scope, watch, path)
            await self._pass_on(scope, receive, whole_or_cut, route, path)
        finally:
            if status >= HTTPStatus.BAD_REQUEST and CALLER in scope:
                await self._record(scope, asked)

    async def _record(self, scope: Scope, asked: AskedAction) -> None:
        code = scope.get("state", {}).get(FAILURE, INTERNAL_ERROR)
        caller: Caller = scope[CALLER]
        if code in _ONLY_COUNTED:
            return
        refusal = (caller.tenant_id, caller.key_id, asked.name, code)
        if self._refusals.add(refusal) <= MOST_REFUSALS:
            await run_in_threadpool(write_refusal, scope, asked, code)

    async def _pass_on(
        self, scope: Scope, receive: Receive, send: Send, route: DeclaredRoute | None, path: str
    ) -> None:
        headers = scope["headers"]
        with Hold(scope["app"].state.front.receiving, NOBODY) as scope[BODY_HOLD]:
            try:
                caller = _caller(scope, route, path, headers)
                if caller is not None:
                    scope[CALLER] = caller
                    scope[BODY_HOLD].move_to(caller.meter.holder)
                # Open routes reveal and change nothing, so any origin may use them.
                if route is None or route.rule.scopes != OPEN:
                    is_open = caller is not None and caller.key_id is None
                    self._allowed_origins.check(scope["method"], headers, is_open=is_open)
                if scope["method"] == "POST" and path.startswith(FORMS):
                    self._allowed_origins.check_form(headers)
                if b"%00" in scope["query_string"]:  # PostgreSQL stores no such text
                    message = "expected texts without NUL, got %00; leave it out"
                    raise InvalidInput.at("query", message)
                receive = await _bounded(scope, receive, route, dict(headers))
            except ServiceError as error:
                await error_response(scope, error)(scope, receive, send)
                return
            except ClientDisconnect:
                return
            await self._app(scope, receive, send)


async def _bounded(
    scope: Scope, receive: Receive, route: DeclaredRoute | None, headers: dict[bytes, bytes]
) -> Receive:
    """Check the encoding of a body; receive it here unless its route does so itself."""
    may_be_compressed = route is not None and route.rule.may_be_compressed
    if not is_plain(headers.get(b"content-encoding")) and not may_be_compressed:
        raise encoding_refused()
    most = SMALL if route is None else route.rule.body
    if most is None or not has_body(headers):
        return receive
    return await received(scope, receive, most=most)


def _caller(
    scope: Scope, found: DeclaredRoute | None, path: str, headers: Headers
) -> Caller | None:
    """Return the caller; None on routes that need none.

    Raises
    ------
    Unauthenticated, Forbidden
        If the caller is unknown or lacks the scope.
    TooManyRequests
        If the tenant's limit is reached.
    MethodNotAllowed, NotFound
        If no such route is declared. Unknown callers learn this only of open paths.
    """
    services: Services | None = getattr(scope["app"].state, "services", None)
    if services is None:
        raise Overloaded("The service is starting.", retry_after=1)
    ring = services.authenticator.ring
    if ring.is_open:
        return ring.anonymous
    values = authorization(headers)
    signed = None if values else signed_in(scope, path, ring)
    if found is not None:
        # The metrics count by route.
        scope["route"] = SimpleNamespace(path=found.path)
        if found.rule.scopes == OPEN:
            return None
        # Set before the scopes are checked: the audit log names refused callers too.
        caller = scope[CALLER] = signed or ring.caller(values)
        if caller.meter.requests is not None:
            caller.meter.requests.take()
        require_scope(caller, found.rule.scopes)
        if path.startswith(PAGES):  # forms, too, are answered with pages that show what is stored
            require_scope(caller, {READ})
        caller.is_used = True
        return caller
    allowed = declared_methods(path)
    asks_for_keys = not allowed or any(rule.scopes != OPEN for rule in allowed.values())
    if asks_for_keys and signed is None:
        ring.caller(values)
    if allowed:
        raise MethodNotAllowed(list(allowed))
    raise NotFound("There is nothing at this path for this method.")
