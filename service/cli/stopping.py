"""The stop of a command that runs until a signal: exit status 0 and one sentence."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the block without an error.

    uvicorn handles both while it serves, and raises them again when it has shut down. Further
    signals are ignored, because the first one already ends everything.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, _interrupt)
    with suppress(KeyboardInterrupt):
        yield


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
