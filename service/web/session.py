"""``/sign-in`` and ``/sign-out``: a page session in exchange for an API key."""

from datetime import UTC, datetime, timedelta

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.access.api_keys import READ, Caller
from service.access.audit_log import AuditEvent
from service.access.authenticator import require_scope
from service.access.page_session import (
    SESSION,
    new_session,
    read_session,
    session_cookie,
)
from service.errors import Forbidden, Unauthenticated
from service.http.bodies import form_fields
from service.http.problems import status_of
from service.http.services import services_of
from service.storage.audit_log import audit_page
from service.web.page import page, set_session
from service.web.page_route import workspace_of

HOME = "/"


def show(request: Request) -> Response:
    """Show the form for the API key, if the service needs one."""
    authenticator = services_of(request.scope).authenticator
    target = _local(request.query_params.get("next"))
    if authenticator.ring.is_open:
        return RedirectResponse(target, status_code=303)
    return page(request, "sign_in.html", target=target, refused=None)


async def sign_in(request: Request) -> Response:
    """Check the key and set the cookie."""
    fields = await form_fields(request)
    target = _local(fields.get("next"))
    try:
        caller = _caller(request, fields.get("key", "").strip())
    except (Unauthenticated, Forbidden) as error:
        status = status_of(error)
        return page(request, "sign_in.html", status=status, target=target, refused=error.message)
    if caller.key_id is None:
        return RedirectResponse(target, status_code=303)
    await run_in_threadpool(_record, request, "sign-in", caller)
    response = RedirectResponse(target, status_code=303)
    set_session(request, response, new_session(caller.key_id))
    return response


def _caller(request: Request, key: str) -> Caller:
    ring = services_of(request.scope).authenticator.ring
    caller = ring.caller([b"Bearer " + key.encode("utf-8", "replace")])
    if caller.meter.requests is not None:
        caller.meter.requests.take()
    require_scope(caller, {READ})
    caller.is_used = True
    return caller


RECORDED_EVERY = timedelta(hours=1)


def _record(request: Request, action: str, caller: Caller) -> None:
    """Record it, once per key and hour: any number of requests may repeat it."""
    database, key_id = workspace_of(request).database, str(caller.key_id)
    since, only = datetime.now(UTC) - RECORDED_EVERY, {"action": action, "key_id": key_id}
    with database.reading(caller.tenant_id) as session:
        if audit_page(session, caller.tenant_id, limit=1, since=since, only=only)[0]:
            return
    request_id = getattr(request.state, "request_id", None)
    act = AuditEvent(caller.tenant_id, action, "page", caller.key_id, request_id)
    with database.session(caller.tenant_id, invalidates_cache=False) as session:
        act.accepted(session, key_id)


def _local(target: str | None) -> str:
    """Return the address to redirect to; the home page unless it is a path of this service."""
    given = target or HOME
    is_local = given.startswith("/") and given.isprintable() and "\\" not in given
    return given if is_local and not given.startswith("//") else HOME


async def sign_out(request: Request) -> Response:
    """Delete the cookie, and record the sign-out of a valid session."""
    authenticator = services_of(request.scope).authenticator
    is_secure = request.url.scheme == "https"
    session = read_session(request.cookies, authenticator.ring.session_secret, secure=is_secure)
    if session is not None:
        request.scope[SESSION] = session
        caller = authenticator.ring.of_key(session.key_id)
        if caller is not None:
            await run_in_threadpool(_record, request, "sign-out", caller)
    response = RedirectResponse("/sign-in", status_code=303)
    response.delete_cookie(
        session_cookie(secure=is_secure),
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="lax",
    )
    return response
