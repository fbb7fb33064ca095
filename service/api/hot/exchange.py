"""One exchange of the hot path: a request that was received whole, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from service.errors import ServiceError
from service.operations.api_keys import Caller
from service.operations.tenants import TenantMeter

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class RequestHead(msgspec.Struct, eq=False):
    """All that a POST to one of the routes of `routes.py` says before its body.

    ``route`` is the path as it is declared, ``parameters`` what it has in braces, percent-decoded;
    names of headers are lower case. ``memo`` is the app's own: what it made of this head, which
    several requests may share. ``request_id`` is what the request is to be called, empty where
    that is for the app to say. ``peer`` is the address that it comes from, if there is one.
    """

    route: str
    parameters: Mapping[str, str]
    query: bytes
    headers: Headers
    memo: Any = None
    request_id: bytes = b""
    peer: str = ""
    caller: Caller | None = None


class HotAnswer(msgspec.Struct, eq=False):
    """An answer; ``headers`` are all but those that every answer has.

    Where ``request_id`` is empty the request is given one.
    """

    status: int
    body: bytes
    headers: Headers = ()
    request_id: bytes = b""


class HotRequest(msgspec.Struct, eq=False):
    """A head and its body; ``arrived`` is the time of the event loop at the first line.

    Who received it makes a class of it that passes the answer on.
    """

    head: RequestHead
    body: bytes
    arrived: float

    def reply(self, answer: HotAnswer) -> None:
        """Pass the answer on."""
        raise NotImplementedError


GiveUp: TypeAlias = Callable[[], None]


class HotApp(Protocol):
    """Answers requests; all calls come from one event loop, none of them blocks it."""

    @property
    def max_body_bytes(self) -> int:
        """Longest body that is received."""

    def admit(self, head: RequestHead) -> TenantMeter:
        """Look who asks, before anything of the body is taken; return what is used by whom.

        Raises
        ------
        ServiceError
            If it is nobody who may.
        """

    def begin(self, request: HotRequest) -> GiveUp:
        """Answer a request by calling its ``reply`` once, perhaps before this returns.

        Calling what is returned says that the client left: nothing is replied from then on, and
        work that has not begun is dropped. After the reply it does nothing.
        """

    def refuse(self, head: RequestHead, error: ServiceError, *, arrived: float) -> HotAnswer:
        """Return the answer to a request that was not received whole, and count it."""

    def broke_off(self, head: RequestHead, *, arrived: float) -> None:
        """Count a request whose client left before it was received whole."""
