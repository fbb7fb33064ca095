"""The numbers of a page, each with the address of the JSON that it is from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"br", "img", "input", "link", "meta"})


@dataclass
class _Numbers(HTMLParser):
    default: str
    open: list[str] = field(default_factory=list)
    found: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        outside = self.open[-1] if self.open else self.default
        source = attributes.get("data-source") or outside
        if tag not in _VOID:
            self.open.append(source)
        if "data-path" in attributes:
            self.found.append(
                (source, attributes["data-path"] or "", attributes["data-value"] or "")
            )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Marks of pictures hold nothing."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.open.pop()


def numbers_of(text: str, default: str) -> list[tuple[str, str, str]]:
    """Return source, JSON pointer and value of each number; ``data-source`` is of what is in it.

    Elements without an end tag would mislead it: the pages have none but those that have none ever.
    """
    parser = _Numbers(default)
    parser.feed(text)
    return parser.found


def at(found: Any, path: str) -> Any:
    """Return what is at a JSON pointer."""
    for name in _names(path):
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found


def _names(path: str) -> Iterator[str]:
    for part in path.split("/")[1:]:
        yield part.replace("~1", "/").replace("~0", "~")
