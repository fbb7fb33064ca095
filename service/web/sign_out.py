"""``/sign-out``: the browser forgets the key."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.operations.api_keys import Doorkeeper
from service.operations.api_keys.page_session import (
    SESSION,
    PageSession,
    read_session,
    session_cookie,
)
from service.operations.audit import Act
from service.operations.workspace import Workspace
from service.web.csrf import FIELD, require_token
from service.web.form_fields import form_fields
from service.web.page_route import PageRoute


async def sign_out(request: Request) -> Response:
    """Take the cookie back; a session that has ended by itself is none to end."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    is_secure = request.url.scheme == "https"
    session = read_session(request.cookies, doorkeeper.ring.session_secret, secure=is_secure)
    if session is not None:
        request.scope[SESSION] = session
        require_token(request, (await form_fields(request)).get(FIELD))
        await run_in_threadpool(_write_down, request, session)
    response = RedirectResponse("/sign-in", status_code=303)
    response.delete_cookie(
        session_cookie(secure=is_secure),
        path="/",
        secure=is_secure,
        httponly=True,
        samesite="lax",
    )
    return response


def _write_down(request: Request, session: PageSession) -> None:
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    workspace: Workspace = request.app.state.workspace
    caller = doorkeeper.ring.of_key(session.key_id)
    if caller is None:
        return
    request_id = getattr(request.state, "request_id", None)
    act = Act(caller.tenant_id, "sign-out", "page", caller.key_id, request_id)
    with workspace.database.session(is_news=False) as opened:
        act.accepted(opened, session.key_id)


ROUTES = (PageRoute("/sign-out", sign_out, method="POST"),)
