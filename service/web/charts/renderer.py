"""Figures as pictures: drawn by a process of their own, once each."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from service.web.charts.figure import Figure
from service.web.charts.svg import with_words

DRAWER = Path(__file__).with_name("drawer.py")
MOST_KEPT = 32 * 2**20  # bytes of pictures
SECONDS = 60.0  # for the figures of a page, which are drawn in one usually
IDLE_SECONDS = 600.0  # after which the process ends, and gives back a hundred megabytes


class Renderer:
    """Draws figures, and keeps what it drew as long as there is room.

    One for a server process; its calls may come from any thread and wait for one another, so that
    one core at most is busy drawing. The process that draws starts with the first figure, ends when
    nothing was drawn for a while, and starts anew if it died.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: OrderedDict[bytes, str] = OrderedDict()
        self._bytes = 0
        self._idle: threading.Timer | None = None

    def draw(self, figures: Sequence[Figure]) -> list[str | None]:
        """Return the pictures as SVG, their colours CSS variables; None where one cannot be drawn.

        A page is to be readable without: the numbers are in the figure's table.
        """
        with self._lock:
            try:
                ends = time.monotonic() + SECONDS
                return [self._draw(figure, ends) for figure in figures]
            finally:
                self._end_when_idle()

    def warm(self) -> None:
        """Start the process that draws, so that the first picture need not wait for it.

        Where it draws already this has nothing to do, and does not wait for it.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            with suppress(OSError):  # no process may be started just now: a picture says so later
                self._running()
            self._end_when_idle()
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process that draws."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._end()

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._process is not None:
            self._idle = threading.Timer(IDLE_SECONDS, self.close)
            self._idle.daemon = True
            self._idle.start()

    def _draw(self, figure: Figure, ends: float) -> str | None:
        line = json.dumps(asked(figure), allow_nan=False).encode()
        key = hashlib.sha256(
            b"\n".join((line, figure.title.encode(), figure.note.encode()))
        ).digest()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        drawn = self._ask(line, ends)
        if drawn is None:
            return None
        picture = with_words(drawn, figure, key.hex()[:12])
        self._keep(key, picture)
        return picture

    def _ask(self, line: bytes, ends: float) -> str | None:
        """Return what the process draws; None if it cannot, takes too long, or dies."""
        seconds = ends - time.monotonic()
        if seconds <= 0.0:
            return None
        try:
            process = self._running()
        except OSError:
            return None
        deadline = threading.Timer(seconds, process.kill)
        deadline.start()
        try:
            if process.stdin is None or process.stdout is None:
                return None
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            deadline.cancel()
        if not answer:
            self._end()
            return None
        found: str | None = json.loads(answer).get("svg")
        return found

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 -- this file, by this Python
                [sys.executable, "-P", str(DRAWER)],  # a file: the package would bring the service
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={
                    name: os.environ[name]
                    for name in ("PATH", "HOME", "LANG")
                    if name in os.environ
                },
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _keep(self, key: bytes, picture: str) -> None:
        self._kept[key] = picture
        self._bytes += len(picture)
        while self._bytes > MOST_KEPT:
            self._bytes -= len(self._kept.popitem(last=False)[1])


def asked(figure: Figure) -> dict[str, Any]:
    """Return what the process that draws has to know of a figure."""
    return {"chart": figure.chart, "data": figure.data, "parameters": figure.parameters}
