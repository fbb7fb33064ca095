"""The stop of a command that runs until a signal: exit status 0 and one sentence."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SECONDS_UNTIL_NEXT_TRY = 0.01


class _Stopped(KeyboardInterrupt):
    """A stop signal. Python gives a process that has caught it the exit status it asks for.

    That is not so for a plain KeyboardInterrupt which passes through ``exec``.
    """


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the block without an error.

    uvicorn handles both while it serves, and raises them again when it has shut down. Further
    signals are ignored, because the first one already ends everything.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _try_again)
    before, sys.unraisablehook = sys.unraisablehook, _try_again_later
    try:
        with suppress(_Stopped):
            yield
    finally:
        _ignore_signals()
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = before


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise _Stopped


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _try_again_later(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send the signal again if its exception was lost.

    Python drops exceptions in finalizers and in callbacks of weak references, and a signal may come
    while one of them runs.
    """
    if not isinstance(unraisable.exc_value, _Stopped):
        sys.__unraisablehook__(unraisable)
        return
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_UNTIL_NEXT_TRY)


def _try_again(_number: int, _frame: FrameType | None) -> None:
    # No exception here: a server may handle the signal by now, and it shuts down in order.
    signal.raise_signal(signal.SIGINT)
