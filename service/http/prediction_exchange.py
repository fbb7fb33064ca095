"""Prediction requests and responses between a connection and its handler."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import unquote

import httptools
import msgspec

from service.access.rate_limits import TenantLimiter

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class RequestHead(msgspec.Struct, eq=False):
    """The head of a POST to one of the routes of `routes.py`; equal requests may share it.

    ``route`` is the path as it is declared, ``parameters`` holds the values of its braces,
    percent-decoded. Names of headers are lower case; ``Content-Length`` and ``X-Request-Id`` are
    left out. ``target`` is the path and query as they came. ``memo`` is for the handler: what it
    found out about this head. ``peer`` is the client's address, empty where there is none.
    """

    route: str
    parameters: Mapping[str, str]
    query: bytes
    headers: Headers
    memo: Any = None
    peer: str = ""
    target: bytes = b""


class HttpResponse(msgspec.Struct, eq=False):
    """An answer; ``headers`` are all but those that every answer has.

    Where ``request_id`` is empty the request is given one.
    """

    status: int
    body: bytes
    headers: Headers = ()
    request_id: bytes = b""


class ReceivedRequest(msgspec.Struct, eq=False):
    """A head and its body; ``arrived`` is the time of the event loop at the first line.

    ``request_id`` is the client's name for the request, empty if it gave none. Whoever receives
    the request makes a class of it that passes the answer on.
    """

    head: RequestHead
    body: bytes
    arrived: float
    request_id: bytes

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
        """Find out who asks, before more of a body is received; return what the tenant uses.

        Raises
        ------
        ServiceError
            If the caller may not predict.
        """

    def begin(self, request: ReceivedRequest) -> GiveUp:
        """Answer a request by calling its ``reply`` once, perhaps before this returns.

        Calling what is returned says that the client left: nothing is replied from then on, and
        work that has not begun is dropped. After the reply it does nothing.
        """

    def refuse(
        self, head: RequestHead, error: Exception, *, arrived: float, request_id: bytes
    ) -> HttpResponse:
        """Return the answer to a request that failed, and count it."""

    def client_disconnected(self, head: RequestHead, *, arrived: float, request_id: bytes) -> None:
        """Count a request whose client left before it was received whole."""


PREDICT = "/predict"
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"

_MODELS = "/v2/models/"
_INFER = "/infer"
# Longer targets are worked out anew each time, so that what is remembered stays small.
_REMEMBERED_LENGTH = 512


class HotRoute(NamedTuple):
    """A route as it is declared, and what the path has in the place of its braces."""

    route: str
    parameters: Mapping[str, str]


_PREDICT = HotRoute(PREDICT, MappingProxyType({}))


def hot_route(method: str, path: str, *, root_path: str = "") -> HotRoute | None:
    """Return the hot route of a decoded path, such as ASGI has it, if it is one.

    A name has no slash, not even an encoded one, as in all other routes: the path is decoded before
    it is taken apart. A trailing slash makes another path.
    """
    if method != "POST":
        return None
    if root_path and path.startswith(f"{root_path}/"):
        path = path[len(root_path) :]
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
    """Return the same for what stands behind POST in the first line of a request."""
    path, _, _ = target.partition(b"?")
    if len(path) <= _REMEMBERED_LENGTH:
        return _remembered(path)
    return _of_raw_path(path)


def prediction_head(target: bytes, headers: Headers, *, peer: str) -> RequestHead | None:
    """Return the head of a POST to one of the routes, None if it is to another."""
    found = hot_target(target)
    if found is None:
        return None
    return RequestHead(
        found.route, found.parameters, query_of(target), headers, peer=peer, target=target
    )


def query_of(target: bytes) -> bytes:
    """Return the query of a target that is hot."""
    return target.partition(b"#")[0].partition(b"?")[2]


def _of_raw_path(path: bytes) -> HotRoute | None:
    if not path.startswith(b"/") or b"#" in path:
        try:
            path = httptools.parse_url(path).path or b""
        except httptools.HttpParserInvalidURLError:
            return None
    # Paths with other bytes than ASCII are refused further on.
    return hot_route("POST", unquote(path.decode("ascii"))) if path.isascii() else None


_remembered = lru_cache(maxsize=1024)(_of_raw_path)
