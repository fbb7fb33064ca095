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


class HotFront:
    """Where hot requests go, and the limits of connections.

    Parameters
    ----------
    hot : HotApp
    limits : ConnectionLimits
    stopping : asyncio.Event
        Set once the server is to end: each answer is then the last of its connection.
    """

    def __init__(
        self,
        hot: HotApp,
        *,
        stopping: asyncio.Event,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - frozen
    ) -> None:
        self.hot = hot
        self.limits = limits
        self.stopping = stopping
        self.budget = BodyBudget(limits.max_receiving_bytes)
        self.wire = Wire()

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
