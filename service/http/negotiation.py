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
        If none of them is.
    """
    best: Format | None = None
    best_quality = 0.0
    for name, media_type in offered.items():
        quality = _quality(accept or "*/*", media_type)
        if quality > best_quality:
            best, best_quality = name, quality
    if best is None:
        raise NotAcceptable(f"this is offered as {', '.join(offered.values())}")
    return best


def _quality(accept: str, media_type: str) -> float:
    """Return the quality of the most specific range that covers the media type."""
    found = (0, 0.0)
    for entry in accept.split(","):
        parts = [part.strip().lower() for part in entry.split(";")]
        kind = media_type.split("/", maxsplit=1)[0]
        specificity = {media_type: 3, f"{kind}/*": 2, "*/*": 1}.get(parts[0], 0)
        if specificity > found[0]:
            found = (specificity, _weight(parts[1:]))
    return found[1]


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
    qualities: dict[str, float] = {}
    for entry in sent.decode("latin-1").split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        qualities[kind] = _weight(parameters)
    html = qualities.get(HTML, 0.0)
    return html > 0 and all(qualities.get(kind, 0.0) <= html for kind in _PROGRAMS)
