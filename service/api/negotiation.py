"""Which of the formats on offer the caller accepts."""

from collections.abc import Mapping

from fastapi import Request
from starlette.exceptions import HTTPException

NOT_ACCEPTABLE = 406


def chosen_format(request: Request, offered: Mapping[str, str]) -> str:
    """Return the name of the offered media type that ``Accept`` prefers; the first by default.

    Raises
    ------
    HTTPException
        406, if none is acceptable.
    """
    accept = request.headers.get("accept", "*/*")
    best, best_quality = "", 0.0
    for name, media_type in offered.items():
        quality = _quality(accept, media_type)
        if quality > best_quality:
            best, best_quality = name, quality
    if not best:
        raise HTTPException(NOT_ACCEPTABLE, f"this is offered as {', '.join(offered.values())}")
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


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return max(0.0, min(1.0, float(parameter[2:])))
            except ValueError:
                return 0.0
    return 1.0
