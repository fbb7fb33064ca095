"""Limits for what a connection may take: bytes of headers, and time."""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from service.api.hot.front import Front
from service.api.hot.orderly_protocol import BODY, HEAD, NOTHING, OrderlyProtocol, Stage
from service.api.hot.stall_watch import StallWatch
from service.errors import HeadersTooLarge, RequestTimeout, ServiceError

# Bytes of the first line beside its target, and of each header beside its name and value.
_FIRST_LINE_BYTES = len("POST  HTTP/1.1\r\n")
_HEADER_BYTES = len(": \r\n")


class GuardedProtocol(OrderlyProtocol):
    """Refuses heads that are too long, and what comes too slowly; of every request."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        front: Front,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop, front=front)
        # Received of a head that is not complete, and since the last byte of a body.
        self.head_bytes = 0
        self.bytes_beside_body = 0
        self.timer: asyncio.TimerHandle | None = None
        self._timed: tuple[Stage, float] | None = None
        self._feed_bytes = 0
        self._body_bytes = 0
        seconds = front.limits.stall_seconds
        self._body_stall = StallWatch(
            self.loop, seconds=seconds, measure=self._bytes_of_body, stalled=self._give_up
        )
        self._unread = StallWatch(
            self.loop, seconds=seconds, measure=self._bytes_unread, stalled=self._give_up
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request."""
        super().connection_made(transport)
        self._timed = (NOTHING, self.arrived)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        self._stop_timing()
        self._unread.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrives apart."""
        if self.is_refused:
            return
        self._unset_keepalive_if_required()
        self._feed_bytes = len(data)
        if self.stage is BODY:
            self._body_bytes += len(data)
            self.bytes_beside_body += len(data)
        else:
            self.head_bytes += len(data)
        failure = self.feed(data)
        self.begin_whole()
        if failure is None:
            failure = self.after_feed()
        if failure is not None:
            self.refuse(failure)

    def pause_writing(self) -> None:
        """Begin to watch whether the client reads."""
        super().pause_writing()
        self._unread.start()

    def resume_writing(self) -> None:
        """Go on: it does."""
        super().resume_writing()
        self._unread.stop()

    def on_headers_complete(self) -> None:
        """Go on with a head that is not too long."""
        self.check_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Hand on what came."""
        self.bytes_beside_body = 0
        super().on_body(body)

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to another protocol."""
        self._stop_timing()
        super().handle_websocket_upgrade()

    def refuse(self, error: ServiceError) -> None:
        """Wait for nothing more."""
        self._stop_timing()
        super().refuse(error)

    def check_head(self) -> None:
        """End the head of a request.

        Raises
        ------
        HeadersTooLarge
            If it is longer than it may be.
        """
        limit = self.front.limits.max_header_bytes
        # A short feed cannot hold a long head: most are not measured.
        if self.head_bytes + self._feed_bytes > limit:
            size = _FIRST_LINE_BYTES + len(self.url)
            size += sum(len(name) + len(value) + _HEADER_BYTES for name, value in self.headers)
            if size > limit:
                raise self._head_too_large()
        self.head_bytes = 0
        self.bytes_beside_body = 0

    def begin_whole(self) -> None:
        """Begin what was received whole, outside the parser."""

    def after_feed(self) -> ServiceError | None:
        """See to the time and the room that what is received may take; return what is wrong."""
        if self.stage is NOTHING:
            if self._timed is not None:
                self._stop_timing()
            if self.timeout_keep_alive_task is None and not self.is_under_way():
                self._wait_for_more_than_blanks()
            return None
        limit = self.front.limits.max_header_bytes
        if self.head_bytes > limit or self.bytes_beside_body > limit:
            return self._head_too_large()
        timed = (self.stage, self.arrived)
        if timed != self._timed:
            self._stop_timing()
            self._timed = timed
            if self.stage is HEAD:
                self._time_head()
            else:
                self.time_body()
        return None

    def time_body(self) -> None:
        """Begin to watch a body that did not come at once."""
        self._body_stall.start()

    def _wait_for_more_than_blanks(self) -> None:
        if not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(
                self.front.limits.header_seconds, self.timeout_keep_alive_handler
            )

    def _time_head(self) -> None:
        due = self.arrived + self.front.limits.header_seconds
        self.timer = self.loop.call_at(due, self._head_is_late)

    def _head_is_late(self) -> None:
        if self.flow.read_paused:
            # It is not read as long as others are under way.
            self.arrived = self.loop.time()
            self._timed = (HEAD, self.arrived)
            self._time_head()
        elif self.stage is HEAD:
            seconds = self.front.limits.header_seconds
            self.refuse(RequestTimeout.at("headers", f"expected within {seconds:g} seconds"))
        else:
            self.transport.close()

    def _stop_timing(self) -> None:
        self._timed = None
        self._body_stall.stop()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _bytes_of_body(self) -> int | None:
        return None if self.flow.read_paused else self._body_bytes

    def _bytes_unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _give_up(self) -> None:
        self.transport.abort()

    def _head_too_large(self) -> HeadersTooLarge:
        limit = self.front.limits.max_header_bytes
        return HeadersTooLarge.at(
            "headers", f"expected at most {limit} bytes with the request line"
        )
