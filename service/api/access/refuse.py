"""Answers requests that are refused before any route sees them, as an ASGI app does."""

from starlette.types import Scope, Send

from service.api.hot.refusal import refusal
from service.api.request_id import REQUEST_ID
from service.api.request_meter import FAILURE
from service.errors import ServiceError


async def refuse(scope: Scope, error: ServiceError, send: Send) -> None:
    """Answer with the failure, and say for the metrics which it is."""
    state = scope.setdefault("state", {})
    state[FAILURE] = error.code()
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    request_id: str = state.get(REQUEST_ID, "")
    answer = refusal(path.encode(), error, request_id.encode())
    length = (b"content-length", b"%d" % len(answer.body))
    start = {"type": "http.response.start", "status": int(answer.status)}
    await send(start | {"headers": [*answer.headers, length]})
    await send({"type": "http.response.body", "body": answer.body})
