"""Text in pictures: its width, its lines, and names of strangers as characters of XML."""

import unicodedata
from functools import lru_cache
from html import escape

FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
SIZE = 11.0
# Shares of the font size, as of DejaVu Sans, which is wide; all others are as wide as a digit.
_WIDTHS = {
    **dict.fromkeys("ijl.,:;|!'I ()[]/\\ftr-\u00a0\u2019", 0.4),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ&w<>+=\u2212\u2264\u00d7\u00b1", 0.76),
    **dict.fromkeys("mMW%@\u2026\u2014", 1.0),
}
_DIGIT, _WIDE, _UNKNOWN = 0.635, 1.05, 0.75
_ELLIPSIS = "\u2026"


def text_width(text: str, size: float = SIZE) -> float:
    """Return about how many pixels a line of text takes, rather too many than too few."""
    return size * sum(map(_letter_width, text))


@lru_cache(1024)
def _letter_width(letter: str) -> float:
    if letter in _WIDTHS:
        return _WIDTHS[letter]
    if unicodedata.combining(letter):
        return 0.0
    if letter.isascii():
        return _DIGIT
    return _WIDE if unicodedata.east_asian_width(letter) in "WF" else _UNKNOWN


def fit_text(text: str, width: float, size: float = SIZE) -> str:
    """Return the text, or as much of its start as fits into a width, with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + _ELLIPSIS, size) > width:
        text = text[:-1]
    return text.rstrip() + _ELLIPSIS


def wrap_text(text: str, width: float, size: float = SIZE) -> list[str]:
    """Return the lines of a text; a word that is wider than a line is broken."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if text_width(longer, size) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while text_width(line, size) > width:
            end = _end_of_line(line, width, size)
            lines.append(line[:end])
            line = line[end:]
    return [*lines, line] if line else lines


def _end_of_line(word: str, width: float, size: float) -> int:
    end = 1
    while end < len(word) and text_width(word[: end + 1], size) <= width:
        end += 1
    return end


def xml_text(text: str) -> str:
    """Return text as XML; what is not printable, and may not even be XML, becomes ``\ufffd``."""
    return escape("".join(one if one.isprintable() or one.isspace() else "\ufffd" for one in text))
