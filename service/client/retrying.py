"""Asking again, where that may help and does no harm."""

from http import HTTPStatus
from random import SystemRandom
from typing import IO

import httpx

from service.client.errors import OUTCOME_UNKNOWN, HowsureError, ServiceUnreachable, error_of
from service.client.request import Answer, Request
from service.client.steps import Sleep, Steps, sent

FIRST_SECONDS = 0.25
MOST_SECONDS = 10.0
# A service that says to come back later than this is not waited for.
MOST_RETRY_AFTER_SECONDS = 120.0
LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
# Of a proxy before a service that has just gone away: nobody knows whether it was done.
LOST = frozenset({HTTPStatus.BAD_GATEWAY})
# Nothing was sent yet.
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_random = SystemRandom()


def asked(request: Request, *, retries: int, into: IO[bytes] | None = None) -> Steps[Answer]:
    """Send a request, up to ``retries`` times more, and return its answer below 400.

    Again: what found no connection, or was answered 429 or 503; and what is repeatable also where
    the connection broke. Pauses double from a quarter of a second, shortened at random so that
    many clients do not come back at once, and are at least what ``Retry-After`` says.

    Raises
    ------
    HowsureError
        If the service refuses.
    ServiceUnreachable
        If no answer came.
    """
    for attempt in range(retries + 1):
        try:
            answer = yield from sent(request, into)
        except httpx.TransportError as error:
            may_help = request.repeatable or isinstance(error, NEVER_SENT)
            if attempt == retries or not may_help:
                raise _unreachable(error, attempt + 1) from error
            yield Sleep(_pause(attempt))
            continue
        if answer.status < HTTPStatus.BAD_REQUEST:
            return answer
        refusal = error_of(answer)
        after = _retry_after(answer)
        if attempt == retries or not _may_help(request, refusal) or after is None:
            raise refusal
        yield Sleep(max(after, _pause(attempt)))
    raise AssertionError("the last attempt returns or raises")


def _may_help(request: Request, refusal: HowsureError) -> bool:
    if refusal.status in LATER:
        return request.repeatable or refusal.type != OUTCOME_UNKNOWN
    return refusal.status in LOST and request.repeatable


def _pause(attempt: int) -> float:
    longest = min(MOST_SECONDS, FIRST_SECONDS * 2**attempt)
    return _random.uniform(longest / 2, longest)


def _retry_after(answer: Answer) -> float | None:
    """Return the seconds that are asked for; None if they are too many. A date counts as none."""
    try:
        seconds = float(answer.headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return max(seconds, 0.0) if seconds <= MOST_RETRY_AFTER_SECONDS else None


def _unreachable(error: httpx.TransportError, attempts: int) -> ServiceUnreachable:
    tried = "once" if attempts == 1 else f"{attempts} times"
    reason = str(error) or type(error).__name__
    return ServiceUnreachable("No answer", f"the service was asked {tried}: {reason}")
