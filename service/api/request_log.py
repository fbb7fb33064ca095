"""A log line for each request that is over, of those that are asked for."""

import time
from http import HTTPStatus
from typing import Literal, TypeAlias

import structlog

from service.operations.api_keys import Caller

LoggedRequests: TypeAlias = Literal["none", "failures", "all"]
CLIENT_LEFT = 499
# In the place of a method or a route that is none.
OTHER = "other"
# Failures are cheap to cause: what fails beyond this is counted, and not written line by line.
MOST_A_SECOND = 20
_LEAST = {"none": 1000, "failures": int(HTTPStatus.BAD_REQUEST), "all": 0}

log = structlog.get_logger(__name__)


class RequestLog:
    """Writes who asked what and what became of it: never a path as it came, a header or a body.

    Parameters
    ----------
    which : {"none", "failures", "all"}
        Failures are answers of 400 and above; of a client that left is told elsewhere.
    """

    def __init__(self, which: LoggedRequests) -> None:
        self._least = _LEAST[which]
        self._is_bounded = which == "failures"
        self._second = 0
        self._written = 0
        self._left_out = 0

    def answered(
        self,
        method: str,
        route: str,
        *,
        status: int,
        seconds: float,
        request_id: str,
        caller: Caller | None,
        failure: str | None,
    ) -> None:
        """Write it down; ``route`` is the path as it is declared."""
        if status < self._least or (self._is_bounded and not self._has_room(status)):
            return
        write = log.warning if status >= HTTPStatus.INTERNAL_SERVER_ERROR else log.info
        found = {"method": method, "route": route, "status": int(status)}
        found |= {"seconds": round(seconds, 6), "request_id": request_id}
        if failure is not None:
            found["failure"] = failure
        if caller is not None:
            found |= {"key": caller.key_id, "tenant": str(caller.tenant_id)}
        if self._left_out:
            found["left_out"] = self._left_out
            self._left_out = 0
        write("request", **found)

    def _has_room(self, status: int) -> bool:
        if status == CLIENT_LEFT:
            return False
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._written = second, 0
        self._written += 1
        if self._written > MOST_A_SECOND:
            self._left_out += 1
            return False
        return True
