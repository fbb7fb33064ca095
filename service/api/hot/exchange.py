"""One exchange of the hot path: a request that was received whole, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from service.errors import ServiceError

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class RequestHead(msgspec.Struct, eq=False):
    """All that a POST to one of the routes of `routes.py` says before its body.

    ``route`` is the path as it is declared, ``parameters`` what it has in braces, percent-decoded;
    names of headers are lower case. ``memo`` is the app's own: what it made of this head, which
    several requests may share.
    """

    route: str
    parameters: Mapping[str, str]
    query: bytes
    headers: Headers
    memo: Any = None


class HotAnswer(msgspec.Struct, eq=False):
    """An answer; ``headers`` are all but content-length, date and connection."""

    status: int
    body: bytes
    headers: Headers = ()


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

    def admit(self, head: RequestHead) -> None:
        """Look who asks, before anything of the body is taken.

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

    def refuse(self, route: str, error: ServiceError, *, arrived: float) -> HotAnswer:
        """Return the answer to a request that was not received whole, and count it."""

    def broke_off(self, route: str, *, arrived: float) -> None:
        """Count a request whose client left before it was received whole."""
