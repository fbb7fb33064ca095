"""What all connections of a server have in common."""

import asyncio
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message

from service.api.hot.dispatcher import HotDispatcher
from service.api.hot.exchange import HotApp
from service.api.hot.limits import BodyBudget, ConnectionLimits
from service.api.hot.wire import Wire


class Front:
    """The limits of connections.

    Parameters
    ----------
    stopping : asyncio.Event
        Set once the server is to end: each answer is then the last of its connection.
    limits : ConnectionLimits
    """

    def __init__(self, *, stopping: asyncio.Event, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.stopping = stopping
        self.wire = Wire()


class HotFront(Front):
    """The same, and where hot requests go.

    Parameters
    ----------
    hot : HotApp
    stopping, limits
        As in `Front`.
    """

    def __init__(
        self,
        hot: HotApp,
        *,
        stopping: asyncio.Event,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(stopping=stopping, limits=limits)
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
