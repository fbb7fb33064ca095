"""Prediction requests and responses between a connection and its handler."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import unquote
from uuid import UUID

import httptools
import msgspec

from service.access.rate_limits import TenantLimiter

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class RequestHead(msgspec.Struct, eq=False):
    """The head of a POST to a prediction route; equal requests may share it.

    ``route`` is the path template and ``parameters`` holds its percent-decoded values. Header names
    are lower case; ``Content-Length`` and ``X-Request-Id`` are omitted. ``target`` is the received
    path and query. ``memo`` is a cache for the handler.
    """

    route: str
    parameters: Mapping[str, str]
    query: bytes
    headers: Headers
    memo: Any = None
    target: bytes = b""


class HttpResponse(msgspec.Struct, eq=False):
    """A response; ``headers`` excludes those that every response has.

    If ``request_id`` is empty, a new id is assigned.
    """

    status: int
    body: bytes
    headers: Headers = ()
    request_id: bytes = b""


class ReceivedRequest(msgspec.Struct, eq=False):
    """A head and its body; ``arrived`` is the event loop's time at the first line.

    ``request_id`` is the client's id of the request, or empty. Its handler sets ``holder``, the
    tenant, if tenants share the service. Subclasses pass the response on.
    """

    head: RequestHead
    body: bytes
    arrived: float
    request_id: bytes
    holder: UUID | None = None

    def reply(self, answer: HttpResponse) -> None:
        """Pass the answer on."""
        raise NotImplementedError


GiveUp: TypeAlias = Callable[[], None]


class PredictionHandler(Protocol):
    """Answers predictions; all calls come from one event loop, none of them blocks it."""

    @property
    def max_body_bytes(self) -> int:
        """Longest body that is received."""

    def authenticate(self, head: RequestHead) -> TenantLimiter:
        """Authenticate the caller before more of the body is received; return the tenant's limiter.

        Raises
        ------
        ServiceError
            If the caller may not predict.
        """

    def begin(self, request: ReceivedRequest) -> GiveUp:
        """Answer a request by calling its ``reply`` once, perhaps before this returns.

        The returned function tells that the client has left: there is no reply then, and work that
        has not begun is dropped. After the reply it does nothing.
        """

    def refuse(
        self, head: RequestHead, error: Exception, *, arrived: float, request_id: bytes
    ) -> HttpResponse:
        """Return the response to a failed request, and count it."""

    def client_disconnected(self, head: RequestHead, *, arrived: float, request_id: bytes) -> None:
        """Count a request whose client left before its end."""


PREDICT = "/predict"
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"

_MODELS = "/v2/models/"
_INFER = "/infer"


class HotRoute(NamedTuple):
    """A path template and the values of its parameters."""

    route: str
    parameters: Mapping[str, str]


_PREDICT = HotRoute(PREDICT, MappingProxyType({}))


def hot_route(path: str) -> HotRoute | None:
    """Return the prediction route of a decoded path, if it is one.

    The path is decoded before it is split, so a name contains no slash, not even an encoded one. A
    path with a trailing slash is another path.
    """
    if path == PREDICT:
        return _PREDICT
    if not (path.startswith(_MODELS) and path.endswith(_INFER)):
        return None
    match path[len(_MODELS) : -len(_INFER)].split("/"):
        case [name] if name:
            return HotRoute(INFER, MappingProxyType({"model_name": name}))
        case [name, "versions", version] if name and version:
            parameters = {"model_name": name, "model_version": version}
            return HotRoute(INFER_VERSION, MappingProxyType(parameters))
    return None


def hot_target(target: bytes) -> HotRoute | None:
    """Return the prediction route of the target of a POST request, if it is one."""
    path, _, _ = target.partition(b"?")
    if not path.startswith(b"/") or b"#" in path:
        try:
            path = httptools.parse_url(path).path or b""
        except httptools.HttpParserInvalidURLError:
            return None
    # Paths with non-ASCII bytes are refused later.
    return hot_route(unquote(path.decode("ascii"))) if path.isascii() else None


def prediction_head(target: bytes, headers: Headers) -> RequestHead | None:
    """Return the head of a POST to a prediction route; None for other routes."""
    found = hot_target(target)
    if found is None:
        return None
    return RequestHead(found.route, found.parameters, query_of(target), headers, target=target)


def query_of(target: bytes) -> bytes:
    """Return the query of a target."""
    return target.partition(b"#")[0].partition(b"?")[2]
