"""What all connections of a server have in common."""

import asyncio
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from service.api.hot.connection_room import ConnectionRoom
from service.api.hot.dispatcher import HotDispatcher
from service.api.hot.exchange import HotAnswer, HotApp
from service.api.hot.limits import BodyBudget, ConnectionLimits
from service.api.hot.wire import Wire
from service.api.request_log import OTHER, RequestLog
from service.errors import ServiceError


class Front:
    """The limits of connections.

    Parameters
    ----------
    stopping : asyncio.Event
        Set once the server is to end: each answer is then the last of its connection.
    limits : ConnectionLimits
    request_log : RequestLog
        Of what is refused before anybody knows what it asks for.
    """

    def __init__(
        self,
        *,
        stopping: asyncio.Event,
        limits: ConnectionLimits,
        request_log: RequestLog = RequestLog("none"),  # noqa: B008 - it writes nothing
    ) -> None:
        self.limits = limits
        self._request_log = request_log
        self.stopping = stopping
        self.wire = Wire()
        self.room = ConnectionRoom(limits.max_connections)

    def log_refused(self, error: ServiceError, answer: HotAnswer, *, seconds: float) -> None:
        """Write down what was refused."""
        self._request_log.answered(
            OTHER,
            OTHER,
            status=answer.status,
            seconds=seconds,
            request_id=answer.request_id.decode(),
            caller=None,
            failure=error.code(),
        )


class HotFront(Front):
    """The same, and where hot requests go.

    Parameters
    ----------
    hot : HotApp
    stopping, limits, request_log
        As in `Front`.
    """

    def __init__(
        self,
        hot: HotApp,
        *,
        stopping: asyncio.Event,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
        request_log: RequestLog = RequestLog("none"),  # noqa: B008 - it writes nothing
    ) -> None:
        super().__init__(stopping=stopping, limits=limits, request_log=request_log)
        self.hot = hot
        self.budget = BodyBudget(limits.max_receiving_bytes)

    async def respond(self, request: Request) -> Response:
        """Answer a hot request that has come as far as a route of its own."""
        sent: list[Message] = []

        async def keep(message: Message) -> None:
            sent.append(message)

        await self.around(Response(status_code=HTTPStatus.NOT_FOUND))(
            request.scope, request.receive, keep
        )
        if not sent:
            raise ClientDisconnect
        start, body = sent
        response = Response(body["body"], start["status"])
        response.raw_headers = start["headers"]
        return response

    def around(self, app: ASGIApp) -> HotDispatcher:
        """Return ``app`` with the hot path before it, for what does not come by a connection."""
        return HotDispatcher(app, hot=self.hot, budget=self.budget, limits=self.limits)
