"""A drawn picture with its words: to be read, and read aloud."""

import re
import textwrap
from collections import Counter
from html import escape

from service.web.charts.figure import Figure
from service.web.charts.palette import FONT, colour

# Vega would take a third of its time to measure these words; so few letters fit in wide fonts.
TITLE_LETTERS, TITLE_SIZE, TITLE_LINE = 42, 13, 17
NOTE_LETTERS, NOTE_SIZE, NOTE_LINE = 56, 11, 14
MARGIN, GAP = 4, 8

_OPENING = re.compile(r'<svg[^>]*viewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"[^>]*>')
_TAG = re.compile(r"<[^>]*>")
_MARK = re.compile(r'<path transform="translate\((?P<x>[^,]*),(?P<y>[^)]*)\)" (?P<look>[^>]*)/>')
OFTEN = 8
# The picture is one image to whoever has it read aloud: its title and note say what it shows.
_ROLE = re.compile(r' (?:role="graphics-\w+"|aria-\w+="[^"]*")')
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def with_words(drawn: str, figure: Figure, name: str) -> str:
    """Return the picture below its title and note, which are its text alternative as well.

    ``name`` tells it from others of the page. Coordinates keep a hundredth of a pixel.
    """
    found = _OPENING.match(drawn)
    if found is None:
        raise ValueError("the picture does not begin as an SVG does")
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
    """Return title and note as lines of text, and where the picture begins."""
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
    """Draw a mark that comes often once, and use it at each place: a third of a picture's bytes."""
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
