"""``/sign-in``: a key, once, in the place of a cookie that stands for it."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.access.api_keys import READ, Caller
from service.access.audit_log import AuditEvent
from service.access.authenticator import require_scope
from service.access.page_session import (
    SESSION,
    PageSession,
    new_session,
    read_session,
    session_cookie,
)
from service.errors import Forbidden, Unauthenticated
from service.http.bodies import form_fields
from service.http.services import services_of
from service.web.csrf import FIELD, require_token
from service.web.page import page, set_session
from service.web.page_route import PageRoute, workspace_of

HOME = "/"
_REFUSED = {Unauthenticated: 401, Forbidden: 403}


async def show(request: Request) -> Response:
    """Ask for a key, where one is asked for."""
    authenticator = services_of(request.scope).authenticator
    target = _local(request.query_params.get("next"))
    if authenticator.ring.is_open:
        return RedirectResponse(target, status_code=303)
    return page(request, "sign_in.html", target=target, refused=None)


async def sign_in(request: Request) -> Response:
    """Take a key and set the cookie."""
    fields = await form_fields(request)
    require_token(request, fields.get(FIELD))
    target = _local(fields.get("next"))
    try:
        caller = _caller(request, fields.get("key", "").strip())
    except (Unauthenticated, Forbidden) as error:
        status = _REFUSED[type(error)]
        return page(request, "sign_in.html", status=status, target=target, refused=error.message)
    if caller.key_id is None:
        return RedirectResponse(target, status_code=303)
    await run_in_threadpool(_record_sign_in, request, caller)
    response = RedirectResponse(target, status_code=303)
    set_session(request, response, new_session(caller.key_id))
    return response


def _caller(request: Request, key: str) -> Caller:
    authenticator = services_of(request.scope).authenticator
    peer = "" if request.client is None else request.client.host
    caller = authenticator.known([b"Bearer " + key.encode("utf-8", "replace")], peer)
    require_scope(caller, {READ})
    caller.is_used = True
    return caller


def _record_sign_in(request: Request, caller: Caller) -> None:
    workspace = workspace_of(request)
    request_id = getattr(request.state, "request_id", None)
    act = AuditEvent(caller.tenant_id, "sign-in", "page", caller.key_id, request_id)
    with workspace.database.session(invalidates_cache=False) as session:
        act.accepted(session, str(caller.key_id))


def _local(target: str | None) -> str:
    """Return where to go on: a place of this service, wherever else a link may point."""
    given = target or HOME
    is_local = given.startswith("/") and given.isprintable() and "\\" not in given
    return given if is_local and not given.startswith("//") else HOME


ROUTES = (
    PageRoute("/sign-in", show),
    PageRoute("/sign-in", sign_in, method="POST"),
)


async def sign_out(request: Request) -> Response:
    """Take the cookie back; a session that has ended by itself is none to end."""
    authenticator = services_of(request.scope).authenticator
    is_secure = request.url.scheme == "https"
    session = read_session(request.cookies, authenticator.ring.session_secret, secure=is_secure)
    if session is not None:
        request.scope[SESSION] = session
        require_token(request, (await form_fields(request)).get(FIELD))
        await run_in_threadpool(_record_sign_out, request, session)
    response = RedirectResponse("/sign-in", status_code=303)
    response.delete_cookie(
        session_cookie(secure=is_secure),
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


def _record_sign_out(request: Request, session: PageSession) -> None:
    authenticator = services_of(request.scope).authenticator
    workspace = workspace_of(request)
    caller = authenticator.ring.of_key(session.key_id)
    if caller is None:
        return
    request_id = getattr(request.state, "request_id", None)
    act = AuditEvent(caller.tenant_id, "sign-out", "page", caller.key_id, request_id)
    with workspace.database.session(invalidates_cache=False) as opened:
        act.accepted(opened, session.key_id)


SIGN_OUT_ROUTES = (PageRoute("/sign-out", sign_out, method="POST"),)
