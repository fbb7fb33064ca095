"""What a connection receives: httptools decides where each request begins and ends."""

from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.access.rate_limits import TenantLimiter
from service.errors import MalformedRequest, ServiceError, TooLarge
from service.http.connection_context import app_cycle
from service.http.parsers import (
    check_framing,
    expects_continue,
    may_be_remembered,
    request_parser,
    resumed_parser,
)
from service.http.prediction_exchange import (
    GiveUp,
    HttpResponse,
    ReceivedRequest,
    RequestHead,
    prediction_head,
)
from service.http.response_head import accepted_id

if TYPE_CHECKING:
    from service.http.connection import Connection

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Of the headers that are not compared with those of the last head; others are checked anew.
SHORT_BYTES = 128


class Prediction(ReceivedRequest, eq=False):
    """A prediction that was received whole; it passes its answer to its connection, once."""

    connection: "Connection | None"
    keep_alive: bool
    give_up: GiveUp | None = None

    def reply(self, answer: HttpResponse) -> None:
        """Pass the answer on, unless there was one or the client has left."""
        connection = self.connection
        if connection is not None:
            self.connection = self.give_up = None
            self.body = b""
            connection.write_answer(answer, keep_alive=self.keep_alive)


class RequestReader:
    """Parses what a connection receives, and puts requests in its queue.

    A prediction is put there when it is whole, a request for the app at the end of its head. Only
    the meaning of the last prediction's head is remembered, never bytes.
    """

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.context, self.loop = connection.context, connection.loop
        self.handler = connection.handler
        self.max_body_bytes = connection.context.max_body_bytes
        self.parser = request_parser(self)
        # The request being received: its head; then the head of a prediction, or the cycle of the
        # app, until its body ends.
        self.is_in_head = False
        self.head: RequestHead | None = None
        self.cycle: RequestResponseCycle | None = None
        # The head of the last prediction, with what it was found to mean.
        self.known: RequestHead | None = None
        self.url = self.length = self.request_id = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.keep_alive = self.expects = self.is_upgrade = False
        self.body: bytes | bytearray = b""
        # Bytes since the last head or request ended, and those that are of a body.
        self.n_received = self.n_body = 0
        self.seen_body = 0  # of the body, when the connection was looked at last
        # Bytes charged to the budget, and to whom.
        self.charged = 0
        self.meter: TenantLimiter | None = None
        # When the request began.
        self.arrived = self.loop.time()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self.is_in_head = True
        self.arrived = self.connection.since = self.loop.time()
        self.url = self.length = self.request_id = b""
        self.headers = []

    def on_url(self, url: bytes) -> None:
        """Keep the target, which may come in pieces."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but not a trailer; what differs from request to request is set apart."""
        if not self.is_in_head:
            return
        name = name.lower()
        if name == b"content-length":
            self.length = value
        elif name == b"x-request-id" and not self.request_id:
            self.request_id = value
        else:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Find out whether this is a prediction: as the last one was, or by a look at the head."""
        parser, known = self.parser, self.known
        self.keep_alive = parser.should_keep_alive()
        if (
            known is None
            or known.headers != self.headers
            or known.target != self.url
            or not self.keep_alive
            or parser.get_method() != b"POST"
            or len(self.length) + len(self.request_id) > SHORT_BYTES
        ):
            self._interpret_head()
        else:
            self.expects = False
            self.head = known
        self.is_in_head = False
        self.n_received = 0
        if self.request_id:
            self.request_id = accepted_id(self.request_id)
        if self.length and self.head is not None and int(self.length) > self.max_body_bytes:
            self._refuse_body()

    def on_body(self, body: bytes) -> None:
        """Keep what came, or hand it to the app."""
        self.n_body += len(body)
        cycle = self.cycle
        if cycle is None:
            if not self.body:
                self.body = body
            else:
                if isinstance(self.body, bytes):
                    # A list of chunks would take many times the bytes of chunks that are small.
                    self.body = bytearray(self.body)
                self.body += body
            if self.n_body > self.max_body_bytes:
                self._refuse_body()
        elif not cycle.response_complete:
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.connection.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End the request."""
        if self.is_upgrade:
            return  # httptools ends it at its head; its body is still to come
        self.n_received = self.n_body = self.seen_body = 0
        if self.head is not None:
            head, self.head = self.head, None
            body, self.body = bytes(self.body), b""
            if self.meter is not None:
                self.release_budget()
            self.connection.queue.append(
                Prediction(
                    head, body, self.arrived, self.request_id, self.connection, self.keep_alive
                )
            )
        elif self.cycle is not None:
            cycle, self.cycle = self.cycle, None
            cycle.more_body = False
            cycle.message_event.set()

    def is_receiving(self) -> bool:
        """Tell whether a request is half there."""
        return self.is_in_head or self.head is not None or self.cycle is not None

    def has_head(self) -> bool:
        """Tell whether a request is half there whose head is whole."""
        return self.head is not None or self.cycle is not None

    def feed(self, data: bytes) -> None:
        """Parse what arrived."""
        self.n_received += len(data)
        rest: bytes | memoryview = data
        while rest:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = memoryview(rest)[upgrade.args[0] :]
                self._ignore_upgrade()
                continue
            except httptools.HttpParserCallbackError as error:
                cause = error.__context__
                self.connection.refuse(cause if isinstance(cause, ServiceError) else _malformed())
            except httptools.HttpParserError:
                self.connection.refuse(_malformed())
            return

    def _ignore_upgrade(self) -> None:
        """Stay with HTTP/1.1: clients offer HTTP/2 with requests like all others.

        httptools ends such a request at its head, whatever length it says. Another parser is told
        the same length, reads the body, and goes on with the requests behind it.
        """
        self.is_upgrade = False
        framing = [pair for pair in self.headers if pair[0] == b"transfer-encoding"]
        if self.length:
            framing.append((b"content-length", self.length))
        self.parser = resumed_parser(self, framing)

    def _interpret_head(self) -> None:
        """Check a head; see whether it is of a prediction or for the app."""
        parser, context = self.parser, self.context
        version = parser.get_http_version()
        self.keep_alive = self.keep_alive and version == "1.1"
        headers = list(self.headers)
        if self.length:
            headers.append((b"content-length", self.length))
        if self.request_id:
            headers.append((b"x-request-id", self.request_id))
        context.limits.check_head(self.url, headers)
        check_framing(version, headers)
        self.expects = expects_continue(headers)
        self.is_upgrade = parser.should_upgrade()
        is_post = parser.get_method() == b"POST"
        if context.predictions is not None and is_post:
            self.head = prediction_head(self.url, self.headers, peer=self.connection.peers.address)
        if self.head is None:
            self.cycle = app_cycle(self.connection, version, headers)
            self.connection.queue.append(self.cycle)
        elif self.keep_alive and not self.is_upgrade and may_be_remembered(headers):
            self.known = self.head

    def _refuse_body(self) -> None:
        """Refuse a prediction with a body that is too long, to callers who may predict."""
        self._authenticate()
        raise TooLarge.at("body", f"expected at most {self.max_body_bytes} bytes")

    def check_unfinished(self) -> None:
        """Check a request of which more is to come."""
        limits, connection = self.context.limits, self.connection
        if limits.is_exceeded(beside_body=self.n_received - self.n_body, body=self.n_body):
            connection.refuse(limits.head_too_large())
        elif self.head is not None:
            try:
                self._charge_budget()
            except ServiceError as error:
                connection.refuse(error)
                return
            is_next = connection.current is None and not connection.queue
            if self.expects and not self.body and is_next:
                self.expects = False
                connection.transport.write(CONTINUE)

    def _authenticate(self) -> TenantLimiter:
        """Find out who asks, once for a body."""
        if self.meter is None:
            assert self.head is not None  # noqa: S101 - only asked for predictions
            self.meter = self.handler.authenticate(self.head)
        return self.meter

    def _charge_budget(self) -> None:
        """Count a body that is not whole yet: all that it claims, or what has come of it."""
        meter = self._authenticate()
        missing = max(int(self.length or 0), len(self.body)) - self.charged
        if missing > 0:
            if not self.charged and meter.requests is not None:
                meter.requests.check_available()
            self.context.budget.take(missing, meter.share)
            self.charged += missing

    def release_budget(self) -> None:
        """Count a body no longer: it is whole, or given up."""
        if self.meter is not None:
            self.context.budget.give_back(self.charged, self.meter.share)
            self.charged, self.meter = 0, None


def _malformed() -> MalformedRequest:
    return MalformedRequest.at("request", "it cannot be read as HTTP/1.1")
