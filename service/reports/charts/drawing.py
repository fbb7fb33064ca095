"""Figures as SVG, drawn by a separate process and cached."""

import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

import structlog

from service.lru_cache import LruCache
from service.reports.charts.figure import Figure
from service.reports.charts.palette import FONT, colour

VEGA_PROCESS = Path(__file__).with_name("vega_process.py")
MAX_CACHE_BYTES = 32 * 2**20
SECONDS = 60.0  # for all figures of a page, which usually take one
IDLE_SECONDS = 600.0  # after which the process ends and frees a hundred megabytes


log = structlog.get_logger(__name__)


class Renderer:
    """Draws figures and caches the pictures.

    A server process has one. Calls may come from any thread and wait for one another, so drawing
    uses one core at most. The drawing process starts with the first figure, ends when it is idle,
    and is started again if it dies.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pictures: LruCache[bytes, str] = LruCache(MAX_CACHE_BYTES, len)
        self._idle: threading.Timer | None = None

    def draw(self, figures: Sequence[Figure]) -> list[str | None]:
        """Return the pictures as SVG with CSS variables as colours; None if one cannot be drawn.

        Pages are readable without pictures: each figure has a table of its numbers.
        """
        with self._lock:
            try:
                ends = time.monotonic() + SECONDS
                pictures = []
                for figure in figures:
                    pictures.append(self._draw(figure, ends))
                    if pictures[-1] is None and self._process is None:
                        ends = 0.0  # it does not start, or died: once a page is enough
                if None in pictures:
                    log.warning("pictures_not_drawn", count=pictures.count(None))
                return pictures
            finally:
                self._end_when_idle()

    def warm(self) -> None:
        """Start the drawing process ahead of the first picture.

        Returns at once if the process is already drawing.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            with suppress(OSError):  # drawing reports it later
                self._running()
            self._end_when_idle()
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the drawing process."""
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
        # With the figure's key, for a page may show two that are alike.
        words = f"{figure.title}\n{figure.note}\n{figure.chart}\n{figure.key}"
        key = hashlib.sha256(b"\n".join((line, words.encode()))).digest()
        picture = self._pictures.get(key)
        if picture is None:
            drawn = self._ask(line, ends)
            if drawn is None:
                return None
            picture = add_title(drawn, figure, key.hex()[:12])
            self._pictures.put(key, picture)
        return picture

    def _ask(self, line: bytes, ends: float) -> str | None:
        """Return the picture that the process draws; None if it fails, dies or takes too long."""
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
                # A file, because the package would import the service.
                [sys.executable, "-P", str(VEGA_PROCESS)],
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


def asked(figure: Figure) -> dict[str, Any]:
    """Return the request to the drawing process."""
    return {"chart": figure.chart, "data": figure.data, "parameters": figure.parameters}


# Titles and notes are added here, because Vega is slow with text. The limits suit wide fonts.
TITLE_LETTERS, TITLE_SIZE, TITLE_LINE = 42, 13, 17
NOTE_LETTERS, NOTE_SIZE, NOTE_LINE = 52, 12, 15
MARGIN, GAP = 4, 8

_OPENING = re.compile(r'<svg[^>]*viewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"[^>]*>')
_TAG = re.compile(r"<[^>]*>")
_MARK = re.compile(r'<path transform="translate\((?P<x>[^,]*),(?P<y>[^)]*)\)" (?P<look>[^>]*)/>')
OFTEN = 8
# A screen reader treats the picture as one image with its title and note.
_ROLE = re.compile(r' (?:role="graphics-\w+"|aria-\w+="[^"]*")')
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def add_title(drawn: str, figure: Figure, name: str) -> str:
    """Return the picture with title and note, which are also its text alternative.

    ``name`` is unique on the page. Coordinates are rounded to a hundredth of a pixel.
    """
    found = _OPENING.match(drawn)
    if found is None:
        raise ValueError("the picture is not an SVG of Vega")
    words, top = _words(figure)
    width, height = float(found["width"]), float(found["height"]) + top
    body = _TAG.sub(_shortened, drawn[found.end() : -len("</svg>")])
    body = _drawn_once(_ROLE.sub("", body), name)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'aria-labelledby="t{name} d{name}"><title id="t{name}">{escape(figure.title)}</title>'
        f'<desc id="d{name}">{escape(figure.note)}</desc>{words}'
        f'<g transform="translate(0,{top})">{body}</g></svg>'
    )


def _words(figure: Figure) -> tuple[str, int]:
    """Return title and note as lines of text, and the height that they take."""
    titles = textwrap.wrap(figure.title, TITLE_LETTERS)
    notes = textwrap.wrap(figure.note, NOTE_LETTERS)
    ends = len(titles) * TITLE_LINE
    lines = [
        *_lines(titles, 0, TITLE_LINE, f'font-size="{TITLE_SIZE}" font-weight="bold"', "ink"),
        *_lines(notes, ends + MARGIN, NOTE_LINE, f'font-size="{NOTE_SIZE}"', "muted"),
    ]
    group = f'<g font-family="{FONT}">{"".join(lines)}</g>'
    return group, ends + len(notes) * NOTE_LINE + MARGIN + GAP


def _lines(lines: list[str], top: int, height: int, look: str, ink: str) -> list[str]:
    return [
        f'<text x="{MARGIN}" y="{top + (at + 1) * height - 3}" {look} fill="{colour(ink)}">'
        f"{escape(line)}</text>"
        for at, line in enumerate(lines)
    ]


def _drawn_once(body: str, name: str) -> str:
    """Define a frequent mark once and reuse it, which saves a third of the bytes."""
    looks = Counter(found["look"] for found in _MARK.finditer(body))
    often = {look: at for at, (look, n) in enumerate(looks.most_common()) if n >= OFTEN}
    if not often:
        return body

    def used(found: re.Match[str]) -> str:
        place = often.get(found["look"])
        if place is None:
            return found[0]
        return f'<use href="#m{name}{place}" x="{found["x"]}" y="{found["y"]}"/>'

    marks = "".join(f'<path id="m{name}{place}" {look}/>' for look, place in often.items())
    return f"<defs>{marks}</defs>{_MARK.sub(used, body)}"


def _shortened(tag: re.Match[str]) -> str:
    return _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag[0])


# The start of a picture of Vega: the frame with axes and marks.
_FRAME = re.compile(
    r'<g transform="translate\(0,(?P<words>[\d.]+)\)"><g fill="none"[^>]*'
    r'transform="translate\((?P<left>[\d.]+),(?P<top>[\d.]+)\)">'
    r'<g class="mark-group role-frame root"><g transform="translate\(0,0\)">'
    r'<path class="background" d="M0,0h(?P<width>[\d.]+)v(?P<height>[\d.]+)h-'
)
# The round ends of an empty line keep their size when the frame is stretched.
_DOTS = "".join(
    f'<path d="M0 0h0" stroke="var(--chart-{ink})" stroke-width="{size}" stroke-linecap="round" '
    'vector-effect="non-scaling-stroke"/>'
    for ink, size in (("ground", 21), ("ink", 17), ("ground", 11), ("before", 7))
)


def add_marker(picture: str, *, most: float, at: tuple[float, float] | None) -> str:
    """Return a picture of axes from 0 to 1 and from 0 to ``most`` with a mark.

    The mark is ``g.point`` in a frame with the units of the axes, so its ``transform`` takes values
    of the axes. Without a place the mark is hidden.

    Raises
    ------
    ValueError
        If the frame of the axes is not found.
    """
    found = _FRAME.search(picture)
    if found is None:
        raise ValueError("the picture has no frame of axes")
    left, top, width, height = (
        float(found["left"]),
        float(found["words"]) + float(found["top"]),
        float(found["width"]),
        float(found["height"]),
    )
    hidden = ' visibility="hidden"' if at is None else ""
    x, y = (0.0, 0.0) if at is None else (at[0], min(at[1], most))
    mark = (
        f'<g class="frame-of-point" data-most="{most!r}" '
        f'transform="translate({left + 0.5:g} {top + height + 0.5:g}) '
        f'scale({width:g} {-height / most!r})">'
        f'<g class="point" transform="translate({x!r} {y!r})"{hidden}>{_DOTS}</g></g>'
    )
    return f"{picture.removesuffix('</svg>')}{mark}</svg>"
