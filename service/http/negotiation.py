"""Content negotiation by the Accept header."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from starlette.types import Scope

from service.errors import NotAcceptable

Format = TypeVar("Format", bound=str)


def chosen_format(accept: str | None, offered: Mapping[Format, str]) -> Format:
    """Return the name of the offered media type that the header prefers; the first by default.

    Raises
    ------
    NotAcceptable
        If the header accepts none of them.
    """
    ranges = _qualities(accept or "*/*")
    quality = {name: _quality(ranges, media_type) for name, media_type in offered.items()}
    best = max(quality, key=quality.__getitem__)
    if not quality[best]:
        raise NotAcceptable(f"this is offered as {', '.join(offered.values())}")
    return best


def _quality(ranges: Mapping[str, float], media_type: str) -> float:
    """Return the quality of the most specific range that covers the media type."""
    covering = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
    return next((ranges[name] for name in covering if name in ranges), 0.0)


def _qualities(accept: str) -> dict[str, float]:
    """Return the quality of each media range of a header."""
    ranges: dict[str, float] = {}
    for entry in accept.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        ranges.setdefault(name, _weight(parameters))
    return ranges


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return max(0.0, min(1.0, float(parameter[2:])))
            except ValueError:
                return 0.0
    return 1.0


HTML = "text/html"
_PROGRAMS = ("application/json", "application/problem+json")


def prefers_html(scope: Scope) -> bool:
    """Tell whether `Accept` names HTML, and no format for programs with a higher quality.

    A client that accepts anything, such as `curl`, is not a browser.
    """
    sent = b",".join(value for name, value in scope["headers"] if name == b"accept")
    qualities = _qualities(sent.decode("latin-1"))
    html = qualities.get(HTML, 0.0)
    return html > 0 and all(qualities.get(kind, 0.0) <= html for kind in _PROGRAMS)
