"""uvicorn's HTTP protocol, with limits for what a connection may take."""

import asyncio
from enum import Enum
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.api.hot.exchange import HotAnswer
from service.api.hot.front import HotFront
from service.api.hot.refusal import refusal
from service.api.hot.stall_watch import StallWatch
from service.errors import HeadersTooLarge, MalformedRequest, RequestTimeout, ServiceError

# How long a client that was refused may go on sending before it has read why.
LINGER_SECONDS = 5.0
# Bytes of the first line beside its target, and of each header beside its name and value.
_FIRST_LINE_BYTES = len("POST  HTTP/1.1\r\n")
_HEADER_BYTES = len(": \r\n")


class Stage(Enum):
    """What is received next."""

    NOTHING = "between two requests"
    HEAD = "a request line or headers"
    BODY = "a body"


NOTHING, HEAD, BODY = Stage


class GuardedProtocol(HttpToolsProtocol):
    """Bounds headers and time, answers what it refuses, and lets connections end in good order."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        front: HotFront,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front = front
        self.stage = NOTHING
        self.arrived = self.loop.time()
        self.head_bytes = 0
        self.claimed_length = b"0"
        self._feed_bytes = 0
        self._body_bytes = 0
        # Received since the last byte that a body consists of.
        self.bytes_beside_body = 0
        self._timed: tuple[Stage, float] | None = None
        self.timer: asyncio.TimerHandle | None = None
        # Exchanges before the newest that are not answered yet.
        self._earlier: list[RequestResponseCycle] = []
        self._is_refused = False
        self._last_word: bytes | None = None
        seconds = front.limits.stall_seconds
        self._body_stall = StallWatch(
            self.loop, seconds=seconds, measure=self._bytes_of_body, stalled=self._give_up
        )
        self._unread = StallWatch(
            self.loop, seconds=seconds, measure=self._bytes_unread, stalled=self._give_up
        )

    # Called by the transport.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Wait for the first request."""
        super().connection_made(transport)
        self._timed = (NOTHING, self.arrived)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever works on an answer."""
        self._stop_timing()
        self._unread.stop()
        self._unset_keepalive_if_required()
        for cycle in self._earlier:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrives apart."""
        if self._is_refused:
            return
        self._unset_keepalive_if_required()
        self._feed_bytes = len(data)
        if self.stage is BODY:
            self._body_bytes += len(data)
            self.bytes_beside_body += len(data)
        else:
            self.head_bytes += len(data)
        failure = self._feed(data)
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

    # Called by the parser.
    def on_message_begin(self) -> None:
        """Begin a request; what only an ASGI app needs is made when it is known to be for one."""
        self.stage = HEAD
        self.arrived = self.loop.time()
        self.url = b""
        self.claimed_length = b"0"
        self.expect_100_continue = False
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but not what stands behind a body."""
        if self.stage is not HEAD:
            return
        name = name.lower()
        if name == b"content-length":
            self.claimed_length = value
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Hand the request to the ASGI app, now or when its turn comes."""
        self.check_head()
        target, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = target, expects
        self.headers += headers
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:
            return
        if before is not None and not before.response_complete:
            self._earlier.append(before)
            before.keep_alive = before.keep_alive or self.front.stopping.is_set()
        if self.front.stopping.is_set():
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Hand on what came."""
        self.bytes_beside_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request; what follows is the next."""
        self.stage = NOTHING
        self.head_bytes = 0
        super().on_message_complete()

    # Called by whoever answers, and by the server.
    def on_response_complete(self) -> None:
        """Go on with what waits, and come to the last word if there is one."""
        super().on_response_complete()
        if not self.cycle.response_complete:
            return
        self._earlier.clear()
        if self._last_word is not None and not self.transport.is_closing():
            self._say(self._last_word)

    def shutdown(self) -> None:
        """End, unless a request is under way or half received."""
        if self.stage is NOTHING or self._is_refused:
            super().shutdown()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to another protocol."""
        self._stop_timing()
        super().handle_websocket_upgrade()

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
        self.stage = BODY
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

    def is_under_way(self) -> bool:
        """Tell whether an answer is owed."""
        return self.cycle is not None and not self.cycle.response_complete

    def time_body(self) -> None:
        """Begin to watch a body that did not come at once."""
        self._body_stall.start()

    def refuse(self, error: ServiceError) -> None:
        """Answer what is not received to its end, when its turn comes, and close."""
        self._is_refused = True
        self._stop_timing()
        answer = self.answer_to_refused(error)
        word = self.front.wire.head(answer, self.server_state, close=True) + answer.body
        if not self.is_under_way():
            self._say(word)
        elif self.stage is not BODY:
            self._last_word = word
        elif self._earlier or self.cycle.response_started:
            # The body is of a request that is being answered.
            self.transport.close()
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._say(word)

    def answer_to_refused(self, error: ServiceError) -> HotAnswer:
        """Return what a request that is refused is answered."""
        return refusal(self.url or b"", error)

    def _feed(self, data: bytes) -> ServiceError | None:
        """Parse what arrived, and return what is wrong with it."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return None
            # There is no other protocol: the connection goes on with this one.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            rest = data[upgrade.args[0] :]
            return self._feed(rest) if rest else None
        except httptools.HttpParserCallbackError as error:
            refused = error.__context__
            return refused if isinstance(refused, ServiceError) else _malformed()
        except httptools.HttpParserError:
            return _malformed()
        return None

    def _say(self, word: bytes) -> None:
        """Write the last answer; a client that still sends is given time to read it."""
        self.transport.write(word)
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _wait_for_more_than_blanks(self) -> None:
        if not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _time_head(self) -> None:
        self.timer = self.loop.call_at(
            self.arrived + self.front.limits.header_seconds, self._head_is_late
        )

    def _head_is_late(self) -> None:
        if self.flow.read_paused:
            # It is not read as long as others are under way.
            self.arrived = self.loop.time()
            self._timed = (HEAD, self.arrived)
            self._time_head()
        elif self.stage is HEAD:
            self.refuse(
                RequestTimeout.at(
                    "headers", f"expected within {self.front.limits.header_seconds:g} seconds"
                )
            )
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


def _malformed() -> MalformedRequest:
    return MalformedRequest.at("request", "it cannot be read as HTTP/1.1")
