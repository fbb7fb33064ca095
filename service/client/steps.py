"""What a client does, a step at a time, so that it is written once for both of them.

A use of the service is a generator: it yields steps and is given what came of each, or the
exception that it raised. `sync_client` and `async_client` take the steps, each in its own way.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from inspect import Signature, signature
from typing import IO, Any, TypeAlias, TypeVar, get_args

from service.client.request import Answer, Request

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send a request and read its answer; one of 200 goes into the file, from its beginning on."""

    request: Request
    into: IO[bytes] | None = None


@dataclass(frozen=True)
class Sleep:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class OpenLines:
    """Send a request and, if it is answered 200, keep the answer open to read its lines.

    Nothing may come for ``silence`` seconds before it counts as broken.
    """

    request: Request
    silence: float


@dataclass(frozen=True)
class NextLine:
    """Read a line of what was opened last; None at its end."""


@dataclass(frozen=True)
class CloseLines:
    """Close what was opened last."""


Step: TypeAlias = Send | Sleep | OpenLines | NextLine | CloseLines
Steps: TypeAlias = Generator[Step, Any, T]


def shown_signature(use: Callable[..., Steps[Any]]) -> Signature:
    """Return what a method made of a use shows: its arguments, and what comes at the end."""
    found = signature(use)
    return found.replace(return_annotation=get_args(found.return_annotation)[-1])


def sent(request: Request, into: IO[bytes] | None = None) -> Steps[Answer]:
    """Send a request once, as it is."""
    answer: Answer = yield Send(request, into)
    return answer


def line() -> Steps[str | None]:
    """Read one line."""
    found: str | None = yield NextLine()
    return found
