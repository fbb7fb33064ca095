"""The HTTP server of the service, in the foreground or embedded."""

import asyncio
import socket

import uvicorn
from fastapi import FastAPI

GRACE_SECONDS = 5


class Server(uvicorn.Server):
    """Tells the application when it begins to shut down, so that what waits there comes to an end.

    Requests still under way get ``GRACE_SECONDS``.
    """

    def __init__(self, app: FastAPI, *, uds: str | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                uds=uds,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._stopping: asyncio.Event = app.state.stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking requests, let those under way end, and stop the application."""
        self._stopping.set()
        await super().shutdown(sockets)
