"""The hot path on a connection of uvicorn: without scope, task or events of ASGI."""

import asyncio
from functools import partial
from typing import Any, cast

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from service.api.hot.arriving_body import ArrivingBody
from service.api.hot.arriving_request import ArrivingRequest
from service.api.hot.dispatcher import too_slow
from service.api.hot.exchange import HotAnswer, RequestHead
from service.api.hot.front import Front, HotFront
from service.api.hot.guarded_protocol import GuardedProtocol
from service.api.hot.hot_cycle import HotCycle
from service.api.hot.known_head import KnownHead
from service.api.hot.orderly_protocol import BODY, NOTHING
from service.api.hot.refusal import refusal
from service.api.hot.routes import HotRoute, hot_target, query_of
from service.errors import ServiceError, TooManyRequests

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Longer bodies are written by themselves, not copied behind their headers.
JOINED_BYTES = 2**16

log = structlog.get_logger(__name__)


def protocol_of(front: Front) -> type[asyncio.Protocol]:
    """Return what `uvicorn.Config` takes as ``http``."""
    # It calls what it is given, as it would a class.
    if isinstance(front, HotFront):
        return cast("type[asyncio.Protocol]", partial(HotProtocol, front=front))
    return cast("type[asyncio.Protocol]", partial(GuardedProtocol, front=front))


class HotProtocol(GuardedProtocol):
    """Answers hot requests itself.

    One that comes while others are under way on its connection takes the way of all others, through
    the ASGI app, so that answers stay in order; so does one with an upgrade, and one whose client
    does not read.
    """

    front: HotFront

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
        self._receiving: ArrivingRequest | None = None
        self._whole: HotCycle | None = None
        self._waiting: HotCycle | None = None
        self._fed = b""
        self._known: KnownHead | None = None

    def data_received(self, data: bytes) -> None:
        """Answer what begins as the last request did, without taking it apart anew."""
        known = self._known
        if known is not None and known.begins(data) and self._is_between():
            body, now = data[known.size :], self.loop.time()
            cycle = HotCycle(known.head, body, now, self, keep_alive=True)
            self.cycle = cast("RequestResponseCycle", cycle)
            self._answer(cycle)
            return
        self._fed = data if self.stage is NOTHING else b""
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is hot."""
        receiving, waiting = self._receiving, self._waiting
        if receiving is not None:
            self._receiving = None
            receiving.body.release()
            _left(receiving.head)
            self.front.hot.broke_off(receiving.head, arrived=receiving.arrived)
        if waiting is not None:
            self._waiting = None
            _left(waiting.head)
            waiting.leave()
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
            self.body_bytes += len(body)
            self._receiving.body.add(body)

    def on_message_complete(self) -> None:
        """End the request."""
        if self._receiving is None:
            super().on_message_complete()
            return
        self.stage = NOTHING
        received, self._receiving = self._receiving, None
        received.body.release()
        whole = received.body.whole()
        self._whole = HotCycle(
            received.head, whole, received.arrived, self, keep_alive=received.keep_alive
        )
        # It stands where uvicorn looks whether an exchange is under way.
        self.cycle = cast("RequestResponseCycle", self._whole)

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
        receiving = self._receiving
        if receiving is not None:
            try:
                receiving.body.count()
            except TooManyRequests as error:
                return error
            if self.expect_100_continue and not receiving.body.size:
                self.expect_100_continue = False
                self.transport.write(CONTINUE)
        return super().after_feed()

    def time_body(self) -> None:
        """Ask of a hot body that it comes at a rate."""
        receiving = self._receiving
        if receiving is None:
            super().time_body()
        else:
            pace = receiving.pace_of(self.front.limits, self.loop.time())
            self.timer = self.loop.call_at(pace.due, self._look_at_pace, receiving)

    def answer_to_refused(self, error: ServiceError) -> HotAnswer:
        """Return what the hot path says of a hot request that is refused."""
        receiving, self._receiving = self._receiving, None
        if receiving is None:
            return super().answer_to_refused(error)
        receiving.body.release()
        return self.front.hot.refuse(receiving.head, error, arrived=receiving.arrived)

    def write_answer(self, cycle: HotCycle, answer: HotAnswer) -> None:
        """Write the answer to the request that is under way."""
        self._waiting = None
        transport = self.transport
        if transport.is_closing():
            return
        is_last = not cycle.keep_alive
        if self.front.stopping.is_set():
            is_last = is_last or not (self.pipeline or self.stage is not NOTHING)
        head = self.front.wire.head(answer, self.server_state, close=is_last)
        if len(answer.body) < JOINED_BYTES:
            transport.write(head + answer.body)
        else:
            transport.write(head)
            transport.write(answer.body)
        if is_last:
            transport.close()
        if self.is_alone():
            self.server_state.total_requests += 1
            self.wait_for_next()
        else:
            self.on_response_complete()

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
        is_old = self.parser.get_http_version() == "1.0"
        hot = self.front.hot
        head = RequestHead(found.route, found.parameters, query_of(self.url), self.headers)
        head.request_id = self.request_id
        head.peer = self.client[0] if self.client else ""
        body = ArrivingBody(max_bytes=hot.max_body_bytes, budget=self.front.budget)
        self._receiving = ArrivingRequest(
            head,
            arrived=self.arrived,
            keep_alive=not is_old and self.parser.should_keep_alive(),
            body=body,
        )
        body.meter = hot.admit(head)
        body.claim(self.claimed_length)

    def _answer(self, cycle: HotCycle) -> None:
        self._waiting = cycle
        try:
            give_up = self.front.hot.begin(cycle)
        except Exception as error:
            # As an ASGI server does.
            log.exception("unexpected_error", path=cycle.head.route)
            request_id = cycle.head.request_id
            cycle.reply(refusal(cycle.head.route.encode(), error, request_id))
        else:
            if not cycle.response_complete:
                cycle.give_up = give_up
                # Who answers has the body; it is not kept for longer than there.
                cycle.body = b""

    def _look_at_pace(self, receiving: ArrivingRequest) -> None:
        assert receiving.pace is not None  # noqa: S101 - made with the timer
        if receiving.pace.is_kept(receiving.body.size):
            self.time_body()
        else:
            self.refuse(too_slow())


def _left(head: RequestHead) -> None:
    log.info("client_left", path=head.route)
