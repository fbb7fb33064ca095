"""Trying again what the service has no room for at the moment."""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import structlog

from service.errors import Overloaded, StorageFull

FIRST_PAUSE_SECONDS = 0.25
LAST_PAUSE_SECONDS = 5.0
BEAT_SECONDS = 0.5

Given = ParamSpec("Given")
Result = TypeVar("Result")

log = structlog.get_logger(__name__)


def until_possible(
    call: Callable[Given, Result], while_waiting: Callable[[], None]
) -> Callable[Given, Result]:
    """Return ``call``, tried again while it raises `Overloaded`.

    ``while_waiting`` is called before each attempt but the first and during the pauses; it raises
    to give up. A disk that is full is not waited for.
    """

    def patient(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return call(*args, **kwargs)
            except StorageFull:
                raise
            except Overloaded as error:
                log.info("tried_again_later", reason=error.message, pause=pause)
            _pause(pause, while_waiting)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    return patient


def _pause(seconds: float, while_waiting: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while_waiting()
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, BEAT_SECONDS))
        while_waiting()
