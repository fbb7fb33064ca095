"""Pages and reports as text that is the same on every machine, for golden texts."""

import re
from html.parser import HTMLParser
from itertools import groupby

_BLOCKS = frozenset(
    [
        *("p", "div", "li", "ul", "ol", "dl", "dt", "h1", "h2", "h3", "pre", "caption"),
        *("table", "tr", "thead", "tbody", "figure", "figcaption", "details", "summary"),
        *("section", "nav", "header", "footer", "main"),
        *("form", "fieldset", "legend", "label", "option"),
    ]
)
_CELLS = frozenset({"td", "th", "dd"})
_UNSEEN = frozenset({"style", "script", "svg"})
# Scores depend on the processor in their last digits, times on all that runs beside the tests.
_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"```json.*?```", re.DOTALL), "<configuration>"),
    (re.compile(r"python \d[^\n|]*"), "<versions>"),
    (re.compile(r"(?<![-\w])[0-9a-f]{12}(?![-\w])"), "<digest>"),
    (re.compile(r"(https?://)?127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"request [0-9a-f]{20}"), "request <id>"),
    (re.compile(r"(?<![:\d.])(\d+(\.\d+)?e[-+]\d+|\d+(\.\d+)+(?!\d| %))"), "#"),
    (re.compile(r"\S+ ± #"), "# ± #"),
)
MOST_LINES = 3  # of a table


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self._space(tag)
        if tag == "br" or "hint" in (attributes.get("class") or ""):
            self.parts.append(" ")
        if tag in _UNSEEN:
            self._open.append(tag)
        if tag in ("input", "textarea", "img") and attributes.get("type") != "hidden":
            self.parts.append(f" [{attributes.get('alt') or attributes.get('value') or ''}] ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN:
            self._open.remove(tag)
        if tag != "dt":
            self._space(tag)

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.parts.append(re.sub(r"[\s\xa0]+", " ", data))

    def _space(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")
        elif tag in _CELLS:
            self.parts.append(" | ")


def visible_text(markup: str) -> str:
    """Return the text of the main part of a page in reading order, a line for each block or row.

    Of pictures it has the words, without the table of their numbers.
    """
    _, tag, markup = markup.rpartition("<main") if "<main" in markup else ("", "", markup)
    markup = f"{tag}{markup}".partition("</main>")[0]
    # A page repeats the numbers of a figure in a table behind it.
    numbers = r"<details[^>]*>\s*<summary>Numbers</summary>.*?</details>"
    markup = re.sub(numbers, "", markup, flags=re.DOTALL)
    parser = _Text()
    parser.feed(markup)
    lines = [" ".join(line.split()) for line in "".join(parser.parts).splitlines()]
    lines = [re.sub(r"[ |]*\| [ |]*", " | ", line).strip(" |") for line in lines]
    return "\n".join(line for line in lines if line)


def stable_text(text: str) -> str:
    """Return text without empty lines and numbers that vary, with the first rows of each table."""
    for pattern, kind in _VARYING:
        text = pattern.sub(kind, text)
    lines = []
    written = [line for line in text.splitlines() if line.strip()]
    for is_table, part in groupby(written, lambda line: " | " in line):
        rows = list(part)
        is_long = is_table and len(rows) > MOST_LINES
        lines += [*rows[:MOST_LINES], "…"] if is_long else rows
    return "\n".join(lines)


def document(parts: dict[str, str]) -> str:
    """Return texts under their titles as one."""
    return "\n\n".join(f"===== {title}\n{stable_text(text)}" for title, text in parts.items())
