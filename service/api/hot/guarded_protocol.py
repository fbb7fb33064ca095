"""Limits for what a connection may take: bytes of headers, and time."""

import asyncio
import math
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from service.api.hot.dispatcher import too_slow
from service.api.hot.framing import check_framing
from service.api.hot.front import Front
from service.api.hot.orderly_protocol import BODY, HEAD, NOTHING, OrderlyProtocol, Stage
from service.api.hot.refusal import refusal
from service.api.hot.stall_watch import StallWatch
from service.errors import (
    HeadersTooLarge,
    RequestTimeout,
    ServiceError,
    TooManyConnections,
)

# Bytes of the first line beside its target, and of each header beside its name and value.
_FIRST_LINE_BYTES = len("POST  HTTP/1.1\r\n")
_HEADER_BYTES = len(": \r\n")
# A chunk of one byte takes five more; extensions of chunks are nothing that anybody needs.
_BESIDE_EACH_BYTE = 8


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
        # Received of a head that is not complete.
        self.head_bytes = 0
        # Received behind a head, and how much of that is a body and not what it is wrapped in.
        self._wire_bytes = 0
        self.body_bytes = 0
        self.timer: asyncio.TimerHandle | None = None
        self._timed: tuple[Stage, float] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._feed_bytes = 0
        limits = front.limits
        self._body_stall = StallWatch(
            self.loop,
            seconds=limits.window_seconds,
            least=limits.upload_bytes_per_second,
            measure=self._bytes_of_body,
            stalled=self._body_is_late,
        )
        self._unread = StallWatch(
            self.loop,
            seconds=limits.stall_seconds,
            measure=self._bytes_unread,
            stalled=self._give_up,
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request, if there is room for one more connection."""
        super().connection_made(transport)
        if not self.front.room.has_room(self.connections, self.loop.time()):
            self._turn_away()
            return
        self._timed = (NOTHING, self.arrived)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        self._stop_timing()
        self._unread.stop()
        if self._rest is not None:
            self._rest.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrives apart."""
        if self.is_refused:
            return
        self._unset_keepalive_if_required()
        self._feed_bytes = len(data)
        if self.stage is BODY:
            self._wire_bytes += len(data)
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
        self.body_bytes += len(body)
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
        MalformedRequest
            If it can be understood in two ways; see `check_framing`.
        """
        limit = self.front.limits.max_header_bytes
        # A short feed cannot hold a long head: most are not measured.
        if self.head_bytes + self._feed_bytes > limit:
            size = _FIRST_LINE_BYTES + len(self.url)
            size += sum(len(name) + len(value) + _HEADER_BYTES for name, value in self.headers)
            if size > limit:
                raise self._head_too_large()
        if len(self.headers) > self.front.limits.max_headers:
            raise HeadersTooLarge.at(
                "headers", f"expected at most {self.front.limits.max_headers} of them"
            )
        check_framing(self.parser.get_http_version(), self.headers)
        self.head_bytes = 0
        self._wire_bytes = self.body_bytes = 0

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
        beside_body = self._wire_bytes - self.body_bytes
        if self.head_bytes > limit or beside_body > limit + _BESIDE_EACH_BYTE * self.body_bytes:
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

    def on_response_complete(self) -> None:
        """Go on; a client that goes on sending what was answered has a while to end it."""
        super().on_response_complete()
        if self.stage is BODY and self._rest is None and not self.is_under_way():
            seconds = self.front.limits.header_seconds
            self._rest = self.loop.call_later(seconds, self._give_up)

    def on_message_complete(self) -> None:
        """End the request."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        super().on_message_complete()

    def waits_since(self) -> float | None:
        """Return when a connection began to wait on which nobody is owed anything."""
        if self.is_under_way() or self.stage is BODY:
            return None
        return max(self.arrived, self._answered) if self.stage is NOTHING else self.arrived

    def has_asked(self) -> bool:
        """Tell whether a request was answered, and none is half there."""
        return self.stage is NOTHING and self._answered > -math.inf

    def leave(self) -> None:
        """End a connection that waits, for the room it takes."""
        self.connections.discard(self)
        self.transport.abort()

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

    def _turn_away(self) -> None:
        self.is_refused = True
        busy = TooManyConnections("No more connections are taken just now.", retry_after=1)
        answer = refusal(b"", busy)
        self.transport.write(self.front.wire.head(answer, self.server_state, close=True))
        self.transport.write(answer.body)
        self.transport.close()

    def _body_is_late(self) -> None:
        if self.is_under_way():
            self.refuse(too_slow())
        else:
            self._give_up()

    def _stop_timing(self) -> None:
        self._timed = None
        self._body_stall.stop()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _bytes_of_body(self) -> int | None:
        return None if self.flow.read_paused else self._wire_bytes

    def _bytes_unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _give_up(self) -> None:
        self.transport.abort()

    def _head_too_large(self) -> HeadersTooLarge:
        limit = self.front.limits.max_header_bytes
        return HeadersTooLarge.at(
            "headers", f"expected at most {limit} bytes with the request line"
        )
