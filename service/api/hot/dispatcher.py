"""The hot path as plain ASGI, under whatever server."""

import asyncio
from typing import TypeAlias

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.access.bearer import CALLER, peer_of
from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.exchange import HotAnswer, HotApp, HotRequest, RequestHead
from service.api.hot.limits import BodyBudget, ConnectionLimits, Pace
from service.api.hot.routes import HotRoute, hot_route
from service.api.request_id import REQUEST_ID
from service.errors import RequestTimeout, ServiceError
from service.operations.tenants import TenantMeter

log = structlog.get_logger(__name__)

Answered: TypeAlias = "asyncio.Future[HotAnswer]"


class HotDispatcher:
    """An ASGI app that answers hot requests by ``hot`` and passes all else on to ``app``.

    Parameters
    ----------
    app : ASGIApp
    hot : HotApp
    budget : BodyBudget
        The one of the server's own connections, if it is theirs as well.
    limits : ConnectionLimits
        Of which the time of a body counts here; the rest is the server's.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hot: HotApp,
        budget: BodyBudget,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._app = app
        self._hot = hot
        self._budget = budget
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one hot request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        root_path = scope.get("root_path", "")
        found = hot_route(scope["method"], scope["path"], root_path=root_path)
        if found is None:
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(found, scope, receive)
        except ClientDisconnect:
            log.info("client_left", path=found.route)
            return
        await _send(answer, send)

    async def _answer(self, found: HotRoute, scope: Scope, receive: Receive) -> HotAnswer:
        arrived = asyncio.get_running_loop().time()
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        head = RequestHead(found.route, found.parameters, scope.get("query_string", b""), headers)
        head.request_id = scope.get("state", {}).get(REQUEST_ID, "").encode()
        head.peer = peer_of(scope)
        head.caller = scope.get(CALLER)
        try:
            meter = self._hot.admit(head)
            body = await self._read(headers, receive, arrived, meter)
        except ServiceError as error:
            return self._hot.refuse(head, error, arrived=arrived)
        except ClientDisconnect:
            self._hot.broke_off(head, arrived=arrived)
            raise
        answered: Answered = asyncio.get_running_loop().create_future()
        return await self._exchange(_Request(head, body, arrived, answered), receive)

    async def _read(
        self,
        headers: list[tuple[bytes, bytes]],
        receive: Receive,
        arrived: float,
        meter: TenantMeter,
    ) -> bytes:
        body = ArrivingBody(max_bytes=self._hot.max_body_bytes, budget=self._budget)
        body.meter = meter
        body.claim(dict(headers).get(b"content-length", b"0"))
        pace = Pace(self._limits, arrived=arrived, started=arrived)
        is_last = False
        try:
            while not is_last:
                body.count()
                chunk, is_last = await _next_chunk(receive, body, pace)
                body.add(chunk)
        finally:
            body.release()
        return body.whole()

    async def _exchange(self, request: "_Request", receive: Receive) -> HotAnswer:
        give_up = self._hot.begin(request)
        try:
            return await _unless_client_leaves(request.answered, receive)
        finally:
            # Also where the server ends this task; after the reply it does nothing.
            give_up()


class _Request(HotRequest, eq=False):
    answered: Answered

    def reply(self, answer: HotAnswer) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)


async def _next_chunk(receive: Receive, body: ArrivingBody, pace: Pace) -> tuple[bytes, bool]:
    """Return what comes next, and whether it is the last.

    Raises
    ------
    RequestTimeout
        If the body comes too slowly.
    ClientDisconnect
        If the client leaves before the body's end.
    """
    while True:
        try:
            async with asyncio.timeout_at(pace.due):
                message = await receive()
            break
        except TimeoutError:
            if not pace.is_kept(body.size):
                raise too_slow() from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), not message.get("more_body", False)


def too_slow() -> RequestTimeout:
    """Return the failure of a body that does not come fast enough."""
    return RequestTimeout.at("body", "it arrives too slowly; send it again, without a pause")


async def _unless_client_leaves(answered: Answered, receive: Receive) -> HotAnswer:
    if answered.done():
        return answered.result()
    left = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((answered, left), return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
    if not answered.done():
        left.result()
        raise ClientDisconnect
    return answered.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(answer: HotAnswer, send: Send) -> None:
    length = (b"content-length", b"%d" % len(answer.body))
    start = {"type": "http.response.start", "status": answer.status}
    await send(start | {"headers": [*answer.headers, length]})
    await send({"type": "http.response.body", "body": answer.body})
