"""Errors as HTML pages for browsers: an ASGI layer around everything that refuses a request."""

import json
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.bodies import held_back
from service.http.negotiation import prefers_html
from service.web.page import page

PROBLEM = b"application/problem+json"
SIGN_IN = "/sign-in"
_UNAUTHORIZED = 401
# Headers of the problem that the page keeps.
_KEPT = (b"retry-after", b"connection", b"allow")


class HtmlErrors:
    """Replaces problem documents by pages for clients that prefer HTML.

    A client that needs an API key is redirected to the sign-in page.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http" or not prefers_html(scope):
            await self._app(scope, receive, send)
            return

        async def show(head: Message, body: bytes) -> None:
            # The metrics count the original status.
            scope["state"]["status"] = head["status"]
            response = _readable(Request(scope), head["status"], body)
            kept = [pair for pair in head["headers"] if pair[0].lower() in _KEPT]
            response.raw_headers.extend(kept)
            await response(scope, receive, send)

        await self._app(scope, receive, held_back(send, _is_problem, show))


def _is_problem(message: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(PROBLEM) for name, value in message["headers"]
    )


def _readable(request: Request, status: int, body: bytes) -> Response:
    if status == _UNAUTHORIZED:
        return _to_sign_in(request)
    return page(request, "problem.html", status=status, problem=json.loads(body))


def _to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page and back; htmx redirects the whole page, not a part of it."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    is_part = "hx-request" in request.headers
    if request.method != "GET" or is_part:
        target = "/"
    address = f"{SIGN_IN}?next={quote(target, safe='')}"
    if is_part:
        return Response(status_code=_UNAUTHORIZED, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)
