"""uvicorn's HTTP protocol, which refuses requests in their turn and ends in good order."""

import asyncio
import math
from enum import Enum
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from service.api.hot.exchange import HotAnswer
from service.api.hot.front import Front
from service.api.hot.refusal import refusal
from service.api.request_id import HEADER as REQUEST_ID_HEADER
from service.api.request_id import accepted_id
from service.errors import MalformedRequest, ServiceError

# How long a client that was refused may go on sending before it has read why.
LINGER_SECONDS = 5.0


class Stage(Enum):
    """What is received next."""

    NOTHING = "between two requests"
    HEAD = "a request line or headers"
    BODY = "a body"


NOTHING, HEAD, BODY = Stage


class OrderlyProtocol(HttpToolsProtocol):
    """Knows what it receives, and answers what it refuses behind all that came before."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        front: Front,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front = front
        # uvicorn's are whole seconds.
        self.timeout_keep_alive = front.limits.keep_alive_seconds  # type: ignore[assignment]
        self.stage = NOTHING
        self.is_refused = False
        self.arrived = self.loop.time()
        self.claimed_length = b"0"
        # What the client calls its request, empty if it does not.
        self.request_id = b""
        # Exchanges before the newest that are not answered yet.
        self._earlier: list[RequestResponseCycle] = []
        self._last_word: bytes | None = None
        # When the last answer was written.
        self._answered = -math.inf
        self._linger: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever works on an answer."""
        if self._linger is not None:
            self._linger.cancel()
        self._unset_keepalive_if_required()
        for cycle in self._earlier:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def feed(self, data: bytes) -> ServiceError | None:
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
            return self.feed(rest) if rest else None
        except httptools.HttpParserCallbackError as error:
            refused = error.__context__
            return refused if isinstance(refused, ServiceError) else _malformed()
        except httptools.HttpParserError:
            return _malformed()
        return None

    def on_message_begin(self) -> None:
        """Begin a request; what only an ASGI app needs is made when it is known to be for one."""
        self.stage = HEAD
        self.arrived = self.loop.time()
        self.url = b""
        self.claimed_length, self.request_id = b"0", b""
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
        elif name == REQUEST_ID_HEADER:
            self.request_id = accepted_id(value)
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Hand the request to the ASGI app, now or when its turn comes."""
        self.stage = BODY
        target, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = target, expects
        self.headers += headers
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:
            return
        is_stopping = self.front.stopping.is_set()
        if before is not None and not before.response_complete:
            self._earlier.append(before)
            before.keep_alive = before.keep_alive or is_stopping
        if is_stopping:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """End the request; what follows is the next."""
        self.stage = NOTHING
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with what waits, and come to the last word if there is one."""
        super().on_response_complete()
        self._answered = self.loop.time()
        if not self.cycle.response_complete:
            return
        self._earlier.clear()
        if self._last_word is not None and not self.transport.is_closing():
            self._say(self._last_word)

    def is_alone(self) -> bool:
        """Tell whether nothing waits for the answer that was just written."""
        return not (self.pipeline or self._earlier or self._last_word or self.flow.read_paused)

    def wait_for_next(self) -> None:
        """Begin to wait for the next request."""
        self._answered = self.loop.time()
        # A timer that runs is not set anew for each request: it looks at the time when it is due.
        if self.timeout_keep_alive_task is None and not self.transport.is_closing():
            self._wait(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that nothing came on for as long as it may be idle."""
        self.timeout_keep_alive_task = None
        if self.stage is not NOTHING or self.is_under_way():
            return
        left = self._answered + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait(left)
        else:
            super().timeout_keep_alive_handler()

    def _wait(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def shutdown(self) -> None:
        """End, unless a request is under way or half received."""
        if self.stage is NOTHING or self.is_refused:
            super().shutdown()

    def is_under_way(self) -> bool:
        """Tell whether an answer is owed."""
        return self.cycle is not None and not self.cycle.response_complete

    def refuse(self, error: ServiceError) -> None:
        """Answer what is not received to its end, when its turn comes, and close."""
        self.is_refused = True
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
        answer = refusal(self.url or b"", error, self.request_id)
        self.front.log_refused(error, answer, seconds=self.loop.time() - self.arrived)
        return answer

    def _say(self, word: bytes) -> None:
        """Write the last answer; a client that still sends is given time to read it."""
        self.transport.write(word)
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._linger = self.loop.call_later(LINGER_SECONDS, self.transport.abort)


def _malformed() -> MalformedRequest:
    return MalformedRequest.at("request", "it cannot be read as HTTP/1.1")
