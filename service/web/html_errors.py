"""Refusals as pages, for who reads them in a browser: plain ASGI, around all that refuses."""

import json
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.negotiation import prefers_html
from service.web.page import page

PROBLEM = b"application/problem+json"
SIGN_IN = "/sign-in"
_UNAUTHORIZED = 401
# What of a refusal's headers holds for its page too.
_KEPT = (b"retry-after", b"connection", b"allow")


class ReadableRefusals:
    """An ASGI app that passes everything on, but for problems to who prefers pages.

    Who is to send a key is led to where one is asked for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http" or not prefers_html(scope):
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        body = bytearray()

        async def watch(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and _is_problem(message):
                begun = message
            elif begun is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    # It is counted as what it was.
                    scope["state"]["status"] = begun["status"]
                    response = _readable(Request(scope), begun["status"], bytes(body))
                    kept = [pair for pair in begun["headers"] if pair[0].lower() in _KEPT]
                    response.raw_headers.extend(kept)
                    await response(scope, receive, send)

        await self._app(scope, receive, watch)


def _is_problem(message: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(PROBLEM) for name, value in message["headers"]
    )


def _readable(request: Request, status: int, body: bytes) -> Response:
    if status == _UNAUTHORIZED:
        return _to_sign_in(request)
    return page(request, "problem.html", status=status, problem=json.loads(body))


def _to_sign_in(request: Request) -> Response:
    """Lead there, and from there back; a part of a page has the whole of it led there."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    is_part = "hx-request" in request.headers
    if request.method != "GET" or is_part:
        target = "/"
    address = f"{SIGN_IN}?next={quote(target, safe='')}"
    if is_part:
        return Response(status_code=_UNAUTHORIZED, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)
