"""``/sign-in``: a key, once, in the place of a cookie that stands for it."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.errors import Forbidden, Unauthenticated
from service.operations.api_keys import READ, Caller, Doorkeeper, require_scope
from service.operations.api_keys.page_session import new_session
from service.operations.audit import Act
from service.operations.workspace import Workspace
from service.web.csrf import FIELD, require_token
from service.web.form_fields import form_fields
from service.web.page import page, set_session
from service.web.page_route import PageRoute

HOME = "/"
_REFUSED = {Unauthenticated: 401, Forbidden: 403}


async def show(request: Request) -> Response:
    """Ask for a key, where one is asked for."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    target = _local(request.query_params.get("next"))
    if doorkeeper.ring.is_open:
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
    await run_in_threadpool(_write_down, request, caller)
    response = RedirectResponse(target, status_code=303)
    set_session(request, response, new_session(caller.key_id))
    return response


def _caller(request: Request, key: str) -> Caller:
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    peer = "" if request.client is None else request.client.host
    caller = doorkeeper.known([b"Bearer " + key.encode("utf-8", "replace")], peer)
    require_scope(caller, {READ})
    caller.is_used = True
    return caller


def _write_down(request: Request, caller: Caller) -> None:
    workspace: Workspace = request.app.state.workspace
    request_id = getattr(request.state, "request_id", None)
    act = Act(caller.tenant_id, "sign-in", "page", caller.key_id, request_id)
    with workspace.database.session(is_news=False) as session:
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
