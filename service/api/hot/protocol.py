"""The hot path on a connection of uvicorn: without scope, task or events of ASGI."""

import asyncio
from functools import partial
from typing import Any, cast

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.dispatcher import too_slow
from service.api.hot.exchange import HotAnswer
from service.api.hot.front import HotFront
from service.api.hot.guarded_protocol import GuardedProtocol
from service.api.hot.hot_cycle import HotCycle
from service.api.hot.known_head import KnownHead
from service.api.hot.orderly_protocol import BODY, NOTHING
from service.api.hot.refusal import refusal
from service.api.hot.routes import HotRoute, hot_target
from service.errors import ServiceError, TooManyRequests

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Longer bodies are written by themselves, not copied behind their headers.
JOINED_BYTES = 2**16

log = structlog.get_logger(__name__)


def protocol_of(front: HotFront) -> type[asyncio.Protocol]:
    """Return what `uvicorn.Config` takes as ``http``."""
    # It calls what it is given, as it would a class.
    return cast("type[asyncio.Protocol]", partial(HotProtocol, front=front))


class HotProtocol(GuardedProtocol):
    """Answers hot requests itself.

    One that comes while others are under way on its connection takes the way of all others, through
    the ASGI app, so that answers stay in order; so does one with an upgrade, and one whose client
    does not read.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        front: HotFront,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop, front=front)
        self._receiving: HotCycle | None = None
        self._whole: HotCycle | None = None
        self._waiting: HotCycle | None = None
        self._fed = b""
        self._known: KnownHead | None = None

    def data_received(self, data: bytes) -> None:
        """Answer what begins as the last request did, without taking it apart anew."""
        known = self._known
        if known is not None and known.begins(data) and self._is_between():
            self._unset_keepalive_if_required()
            body = ArrivingBody(max_bytes=self.front.hot.max_body_bytes, budget=self.front.budget)
            body.add(data[known.size :])
            cycle = known.cycle(body, arrived=self.loop.time())
            self.cycle = cast("RequestResponseCycle", cycle)
            self._answer(cycle)
            return
        self._fed = data if self.stage is NOTHING else b""
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is hot."""
        if self._receiving is not None:
            self.front.hot.broke_off(self._receiving.found.route, arrived=self._receiving.arrived)
        for cycle in (self._receiving, self._waiting):
            if cycle is not None:
                log.info("client_left", path=cycle.found.route)
                cycle.leave()
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        """Begin a hot exchange, or hand the request on."""
        found = hot_target(self.url) if self.parser.get_method() == b"POST" else None
        if found is None or not self._can_be_hot():
            super().on_headers_complete()
            return
        self.check_head()
        self.stage = BODY
        self._begin(found)

    def on_body(self, body: bytes) -> None:
        """Keep what came."""
        if self._receiving is None:
            super().on_body(body)
        else:
            self.bytes_beside_body = 0
            self._receiving.body.add(body)

    def on_message_complete(self) -> None:
        """End the request."""
        if self._receiving is None:
            super().on_message_complete()
            return
        self.stage = NOTHING
        self._whole, self._receiving = self._receiving, None

    def begin_whole(self) -> None:
        """Have a whole request answered."""
        cycle = self._whole
        if cycle is not None:
            self._whole = None
            self._known = KnownHead.of(self._fed, cycle, claimed=self.claimed_length)
            self._fed = b""
            self._answer(cycle)

    def after_feed(self) -> ServiceError | None:
        """See to a request that is not whole yet."""
        cycle = self._receiving
        if cycle is not None:
            try:
                cycle.body.count()
            except TooManyRequests as error:
                return error
            if self.expect_100_continue and not cycle.body.size:
                self.expect_100_continue = False
                self.transport.write(CONTINUE)
        return super().after_feed()

    def time_body(self) -> None:
        """Ask of a hot body that it comes at a rate."""
        cycle = self._receiving
        if cycle is None:
            super().time_body()
        else:
            pace = cycle.pace_of(self.front.limits, self.loop.time())
            self.timer = self.loop.call_at(pace.due, self._look_at_pace, cycle)

    def answer_to_refused(self, error: ServiceError) -> HotAnswer:
        """Return what the hot path says of a hot request that is refused."""
        cycle, self._receiving = self._receiving, None
        if cycle is None:
            return super().answer_to_refused(error)
        cycle.end()
        return self.front.hot.refuse(cycle.found.route, error, arrived=cycle.arrived)

    def _is_between(self) -> bool:
        """Tell whether the parser waits for a first line, and nobody for an answer."""
        return (
            self.stage is NOTHING
            and not self.head_bytes
            and not self.is_refused
            and not self.is_under_way()
            and not self.flow.write_paused
        )

    def _can_be_hot(self) -> bool:
        return (
            not self.is_under_way()
            and not self.flow.write_paused
            and not self.parser.should_upgrade()
        )

    def _begin(self, found: HotRoute) -> None:
        body = ArrivingBody(max_bytes=self.front.hot.max_body_bytes, budget=self.front.budget)
        is_old = self.parser.get_http_version() == "1.0"
        self._receiving = cycle = HotCycle(
            found,
            target=self.url,
            headers=self.headers,
            arrived=self.arrived,
            keep_alive=not is_old and self.parser.should_keep_alive(),
            body=body,
        )
        # It stands where uvicorn looks whether an exchange is under way.
        self.cycle = cast("RequestResponseCycle", cycle)
        body.claim(self.claimed_length)

    def _answer(self, cycle: HotCycle) -> None:
        self._waiting = cycle
        try:
            give_up = self.front.hot.begin(cycle.request(), partial(self._reply, cycle))
        except Exception as error:
            # As an ASGI server does.
            log.exception("unexpected_error", path=cycle.found.route)
            self._reply(cycle, refusal(cycle.target, error))
        else:
            cycle.begun(give_up)

    def _reply(self, cycle: HotCycle, answer: HotAnswer) -> None:
        if cycle.response_complete:
            return
        cycle.end()
        self._waiting = None
        if self.transport.is_closing():
            return
        is_last = not cycle.keep_alive
        if self.front.stopping.is_set():
            is_last = is_last or not (self.pipeline or self.stage is not NOTHING)
        head = self.front.wire.head(answer, self.server_state, close=is_last)
        if len(answer.body) < JOINED_BYTES:
            self.transport.write(head + answer.body)
        else:
            self.transport.write(head)
            self.transport.write(answer.body)
        if is_last:
            self.transport.close()
        self.on_response_complete()

    def _look_at_pace(self, cycle: HotCycle) -> None:
        assert cycle.pace is not None  # noqa: S101 - made with the timer
        if cycle.pace.is_kept(cycle.body.size):
            self.time_body()
        else:
            self.refuse(too_slow())
