"""Shared state of a server's connections, and the ASGI cycle of one request."""

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from service.errors import ServiceError
from service.http.connection_limits import ConnectionLimits, IdleEviction, Pace
from service.http.prediction_exchange import Headers, HttpResponse, PredictionHandler
from service.http.request_record import OTHER, RequestLog
from service.http.response_head import ResponseHead
from service.shared_amounts import Line, SharedAmount

if TYPE_CHECKING:
    from service.http.connection import Connection

_log = logging.getLogger("uvicorn.error")


@dataclass(frozen=True, slots=True)
class Peers:
    """Both ends of a connection, as ASGI scopes name them."""

    server: tuple[str, int | None] | None
    client: tuple[str, int] | None
    scheme: str

    @classmethod
    def of(cls, transport: asyncio.Transport) -> "Peers":
        """Return the ends of a transport."""
        scheme = "https" if is_ssl(transport) else "http"
        return cls(get_local_addr(transport), get_remote_addr(transport), scheme)


def app_cycle(connection: "Connection", version: str, headers: Headers) -> RequestResponseCycle:
    """Return the ASGI cycle for the head that the connection has just received.

    Raises
    ------
    httptools.HttpParserInvalidURLError
        If the target is no URL.
    """
    target, peers = httptools.parse_url(connection.reader.url), connection.peers
    raw_path = target.path or b""
    path = raw_path.decode("ascii")
    scope = {
        "type": "http",
        "asgi": {"version": connection.config.asgi_version, "spec_version": "2.3"},
        "http_version": version,
        "server": peers.server,
        "client": peers.client,
        "scheme": peers.scheme,
        "root_path": "",
        "headers": headers,
        "state": connection.app_state.copy(),
        "method": connection.reader.parser.get_method().decode("ascii"),
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": target.query or b"",
    }
    return RequestResponseCycle(
        scope=cast("Any", scope),
        transport=connection.transport,
        flow=connection.flow,
        logger=_log,
        access_logger=_log,
        access_log=False,
        default_headers=connection.server_state.default_headers,
        message_event=asyncio.Event(),
        expect_100_continue=connection.reader.expects,
        keep_alive=connection.reader.keep_alive,
        on_response=connection.answered,
    )


@dataclass(eq=False, repr=False, kw_only=True)
class ConnectionContext:
    """The limits of connections and the handler of predictions.

    Parameters
    ----------
    stopping : asyncio.Event
        Set when the server stops: each response is then the last of its connection.
    limits : ConnectionLimits
    predictions : PredictionHandler, optional
        Without it the ASGI app handles every request.
    request_log : RequestLog
        For requests that are refused before their route is known.
    """

    stopping: asyncio.Event
    limits: ConnectionLimits = ConnectionLimits()  # noqa: RUF009 - frozen
    predictions: PredictionHandler | None = None
    request_log: RequestLog = RequestLog("none")  # noqa: RUF009 - it writes nothing

    def __post_init__(self) -> None:
        self.max_body_bytes = 0 if self.predictions is None else self.predictions.max_body_bytes
        self.wire = ResponseHead()
        self.room = IdleEviction(self.limits.max_connections)
        self.pace = Pace()
        self.unread = SharedAmount(Line.UNREAD_BYTES, self.limits.max_unread_bytes)
        self.receiving = SharedAmount(Line.RECEIVED_BYTES, self.limits.max_receiving_bytes)

    def log_refused(self, error: ServiceError, answer: HttpResponse, *, seconds: float) -> None:
        """Log a refused request."""
        self.request_log.answered(
            OTHER,
            OTHER,
            status=answer.status,
            seconds=seconds,
            request_id=answer.request_id.decode(),
            caller=None,
            failure=error.code(),
        )
