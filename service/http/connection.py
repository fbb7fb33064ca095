"""One HTTP/1.1 connection, from received bytes to sent responses.

Requests are answered one at a time, in their order. Predictions are answered without an ASGI scope
or task; all other requests run the ASGI app.
"""

import asyncio
from collections import deque
from typing import Any, cast

import structlog
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from service.access.api_keys import CALLER, Caller
from service.errors import ServiceError, TooManyConnections
from service.http.connection_context import ConnectionContext, Peers
from service.http.prediction_exchange import HttpResponse, PredictionHandler
from service.http.problems import problem_response
from service.http.request_reader import Prediction, RequestReader
from service.http.response_head import accepted_id
from service.shared_amounts import NOBODY, Hold

# Longer bodies are written by themselves, not copied behind their headers.
JOINED_BYTES = 2**16
# Received bytes of a connection are parsed for this time before others have their turn.
TURN_SECONDS = 0.001
READ_BYTES = 2**20  # of a large body at once

log = structlog.get_logger(__name__)


class Flow(FlowControl):
    """Receives no more while received bytes are not parsed."""

    def __init__(self, transport: asyncio.Transport, reader: RequestReader) -> None:
        super().__init__(transport)
        self._reader = reader

    def resume_reading(self) -> None:
        """Receive more, unless the reader has enough."""
        if not self._reader.received:
            super().resume_reading()


class Connection(asyncio.Protocol):
    """Reads requests, has them answered in order, and writes the responses.

    A refusal is the last entry of the queue, so it follows the responses to all earlier requests.
    `Deadlines.enforce` checks every connection ten times a second.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        context: ConnectionContext,
    ) -> None:
        self.context = context
        # Used only for heads of predictions.
        self.handler = cast("PredictionHandler", context.predictions)
        self.config, self.app_state = config, app_state
        self.server_state = server_state
        self.loop = _loop or asyncio.get_event_loop()
        self.transport: asyncio.Transport
        self.flow: Flow
        self.peers: Peers
        # Requests after the current one; an `HttpResponse` is a refusal.
        self.queue: deque[Prediction | RequestResponseCycle | HttpResponse] = deque()
        self.current: Prediction | RequestResponseCycle | None = None
        self.n_answered = 0
        # Start of the wait for the rest of a request, or for the next one.
        self.since = self.loop.time()
        # What the client has not read, for the tenant of the last response, and at some time.
        self.unread_hold = Hold(context.unread, NOBODY)
        self.unread, self.unread_since = 0, self.since
        self.is_due = False  # whether received bytes are parsed in the next turn of the loop
        self.is_shut = False  # whether the server ends its connections
        self.is_refused = False
        self.refused_at: float | None = None  # when the refusal was written
        self.reader = RequestReader(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request, unless there are too many connections."""
        self.transport, self.flow = transport, Flow(transport, self.reader)
        self.peers = Peers.of(transport)
        connections = self.server_state.connections
        connections.add(self)  # type: ignore[arg-type]  # uvicorn names its own classes
        if not self.context.room.make_room(connections, self.loop.time()):
            self.is_refused = True
            busy = TooManyConnections("The server has too many connections.", retry_after=1)
            self.write_answer(problem_response("", busy), keep_alive=False)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as in asyncio
        """Tell the reader and the handler of a request that the client has left."""
        self.server_state.connections.discard(self)
        self.unread_hold.change_to(0)
        reader = self.reader
        if reader.head is not None:
            head, reader.head = reader.head, None
            reader.end_hold()
            self.handler.client_disconnected(
                head, arrived=reader.arrived, request_id=reader.request_id
            )
        current, self.current = self.current, None
        for one in (current, reader.cycle, *self.queue):
            if isinstance(one, RequestResponseCycle):
                _disconnect(one)
        if isinstance(current, Prediction):
            give_up, current.connection, current.give_up = current.give_up, None, None
            if give_up is not None:
                give_up()
        self.queue.clear()
        reader.forget()
        self.is_refused = True
        del reader.parser  # which refers to the reader
        self.flow.resume_writing()

    def pause_writing(self) -> None:
        """Start no further response until the client has read."""
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """Continue with the next response: the client has read nearly all."""
        self.unread, self.unread_since = self.transport.get_write_buffer_size(), self.loop.time()
        self.flow.resume_writing()
        self._answer_next()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and start the next response."""
        if not self.is_refused:
            self.reader.receive(data)
            self._parse()

    def _parse(self) -> None:
        """Parse received bytes up to the next request, and start the next response.

        Each further request has its own turn of the event loop, however fast it is answered, and so
        has the rest of a body in many small chunks.
        """
        reader, is_over, self.is_due = self.reader, False, False
        until = self.loop.time() + TURN_SECONDS
        while reader.received and not (self.queue or is_over or self.is_refused):
            reader.parse_some()
            is_over = bool(self.queue) or self.loop.time() > until
        if is_over:
            self._answer_next()
        if self.is_refused:
            return
        # What was received may end the request.
        if not reader.received and (reader.n_received or reader.is_receiving()):
            reader.check_unfinished()
            if reader.n_body and not self.is_refused and reader.receive_whole():
                self.transport.set_protocol(LargeBody(self))
        is_behind = reader.head is not None and self.current is not None
        if self.is_refused or self.transport.is_closing():
            return
        if self.queue or is_behind or reader.received:
            # At most one unfinished request is read after the current one.
            self.flow.pause_reading()
            self._stay_for_more()
            if reader.received and not self.queue:
                self._read_on()
        elif not reader.is_ahead():
            self.flow.resume_reading()

    def body_received(self, n_bytes: int) -> None:
        """Count bytes of a large body; end the request with the last one."""
        self.reader.received_whole(n_bytes)
        if self.reader.whole is None:
            self.transport.set_protocol(self)
            self._answer_next()
        self._parse()

    # Answering.

    def _answer_next(self) -> None:
        """Start the next response, once the previous one is written and read."""
        if self.current is not None or not self.queue or self.flow.write_paused:
            return
        if self.transport.is_closing():
            return  # the previous response was the last
        first = self.queue.popleft()
        if isinstance(first, HttpResponse):
            self._write_refusal(first)
            return
        self.current = first
        if isinstance(first, Prediction):
            self._begin_prediction(first)
        else:
            self.end_after_answer()
            task = self.loop.create_task(first.run_asgi(self.config.loaded_app))
            task.add_done_callback(self.server_state.tasks.discard)
            self.server_state.tasks.add(task)
        if not self.queue and self.reader.head is None:
            self._read_on()

    def _read_on(self) -> None:
        """Parse what has been received; if that is all parsed, receive more."""
        if self.reader.received:
            if not self.is_due:
                self.is_due = True
                self.loop.call_soon(self._parse)
        elif self.flow.read_paused:
            self.flow.resume_reading()

    def _begin_prediction(self, prediction: Prediction) -> None:
        handler = self.handler
        try:
            give_up = handler.begin(prediction)
        except Exception as error:
            # Respond with 500, as an ASGI server does.
            log.exception("unexpected_error", path=prediction.head.route)
            prediction.reply(
                handler.refuse(
                    prediction.head,
                    error,
                    arrived=prediction.arrived,
                    request_id=prediction.request_id,
                )
            )
        else:
            if prediction.connection is not None:
                prediction.give_up = give_up
                # The handler has the body; do not keep it alive here.
                prediction.body = b""

    def write_answer(self, answer: HttpResponse, *, keep_alive: bool) -> None:
        """Write the response to a prediction."""
        transport = self.transport
        if transport.is_closing():
            return
        is_last = not keep_alive or self.is_ending()
        head = self.context.wire.head(answer, self.server_state, close=is_last)
        if len(answer.body) < JOINED_BYTES:
            transport.write(head + answer.body)
        else:
            transport.write(head)
            transport.write(answer.body)
        if is_last:
            transport.close()
        self.answered()

    def answered(self) -> None:
        """Continue with the next request, for a client without a key in its turn."""
        if isinstance(self.current, RequestResponseCycle):
            caller = cast("Caller | None", self.current.scope.get(CALLER))
            self.unread_hold.move_to(NOBODY if caller is None else caller.meter.holder)
        self.n_answered += 1
        self.server_state.total_requests += 1
        is_stranger = self.unread_hold.holder is NOBODY
        pause = self.context.pace.pause(self.loop.time()) if is_stranger else 0.0
        if pause:
            self.loop.call_later(pause, self._go_on)
        else:
            self._go_on()

    def _go_on(self) -> None:
        self.current = None
        self.since = self.loop.time()
        if self.is_shut:
            self.shutdown()
        if self.transport.is_closing():
            return
        if self.queue:
            self.loop.call_soon(self._answer_next)
        else:
            self._read_on()
            if self.reader.head is not None and not self.reader.received:
                self.reader.check_unfinished()

    # Ending.

    def refuse(self, error: ServiceError) -> None:
        """Refuse an incomplete request when its turn comes, and close the connection."""
        if self.is_refused:
            return
        self.is_refused = True
        self.reader.forget()
        if self.reader.whole is not None:
            self.transport.set_protocol(self)
        cycle, self.reader.cycle = self.reader.cycle, None
        if cycle is not None and (cycle.response_started or cycle.response_complete):
            self.transport.close()
            return
        self.queue.append(self._refusal(error))
        if cycle is not None:
            _disconnect(cycle)
            if cycle is self.current:
                self.current = None
            else:
                self.queue.remove(cycle)
        self._answer_next()

    def _refusal(self, error: ServiceError) -> HttpResponse:
        reader, request_id = self.reader, accepted_id(self.reader.request_id)
        if reader.head is None:
            answer = problem_response(reader.url.decode("latin-1"), error, request_id)
            seconds = self.loop.time() - reader.arrived
            self.context.log_refused(error, answer, seconds=seconds)
            return answer
        head, reader.head = reader.head, None
        reader.end_hold()
        return self.handler.refuse(head, error, arrived=reader.arrived, request_id=request_id)

    def _write_refusal(self, answer: HttpResponse) -> None:
        """Write the last response; a client that is still sending gets time to read it."""
        transport = self.transport
        transport.write(self.context.wire.head(answer, self.server_state, close=True) + answer.body)
        if transport.can_write_eof():
            transport.write_eof()
        self.refused_at = self.loop.time()
        self.flow.resume_reading()

    def is_ending(self) -> bool:
        """Tell whether the server is stopping and no received request waits for a response."""
        if not self.context.stopping.is_set() or self.queue or self.reader.received:
            return False
        # The body of the current request may still be coming.
        return not self.reader.is_receiving() or self.reader.cycle is self.current is not None

    def end_after_answer(self) -> None:
        """Announce the end of the connection in a response of the app that has not started."""
        current = self.current
        if isinstance(current, RequestResponseCycle) and not current.response_started:
            current.keep_alive = current.keep_alive and not self.is_ending()

    def _stay_for_more(self) -> None:
        """Keep the connection open after the current response: another request has come."""
        current = self.current
        if isinstance(current, RequestResponseCycle) and not current.response_started:
            current.keep_alive = current.keep_alive or self.context.stopping.is_set()

    def shutdown(self) -> None:
        """Close, unless a request is being answered or received."""
        self.is_shut = True
        reader = self.reader
        is_coming = bool(self.queue or reader.received) or reader.is_receiving()
        is_owed = self.current is not None or is_coming
        if not is_owed or self.refused_at is not None:
            self.transport.close()
        else:
            self.end_after_answer()

    # For `ConnectionRoom`.

    def waits_since(self) -> float | None:
        """Return the start of the idle time; None while a request is received or answered."""
        cycle = self.reader.cycle
        # The rest of a body whose request was answered serves nobody.
        is_owed = self.reader.head is not None or not (cycle is None or cycle.response_complete)
        is_idle = self.current is None and not self.queue and not is_owed
        return self.since if is_idle else None

    def has_asked(self) -> bool:
        """Tell whether a request was answered, and no other has begun."""
        return self.n_answered > 0 and not self.reader.is_in_head

    def leave(self) -> None:
        """Close an idle connection to make room."""
        self.server_state.connections.discard(self)
        self.transport.abort()


class LargeBody(asyncio.BufferedProtocol):
    """Replaces a connection until a large body is complete: the system writes into its memory."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the connection that the client has left."""
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell the connection that the client does not read."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Tell the connection that the client has read."""
        self._connection.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as in asyncio
        """Return the memory of the next bytes."""
        reader = self._connection.reader
        return cast("memoryview", reader.whole)[reader.n_body :][:READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on how many bytes were received."""
        self._connection.body_received(nbytes)


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
