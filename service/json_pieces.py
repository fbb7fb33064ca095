"""JSON text of large documents, written so that other threads can run meanwhile."""

import json
from collections.abc import Iterator
from functools import partial

from starlette.responses import Response

_dumps = partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
# Deep enough for the single bins of several reports.
DEPTH = 8


def json_pieces(
    value: object,
    *,
    depth: int = DEPTH,
    sort_keys: bool = False,
) -> Iterator[str]:
    """Yield the text without spaces in pieces.

    Encoding in one call would stop all other threads until its end. Objects and lists are divided
    down to ``depth``; what is below them is one piece.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    inside = partial(json_pieces, depth=depth - 1, sort_keys=sort_keys)
    if depth and isinstance(value, dict):
        separator = "{"
        for key in sorted(value) if sort_keys else value:
            yield f"{separator}{_dumps(str(key))}:"
            yield from inside(value[key])
            separator = ","
        yield "}" if value else "{}"
    elif depth and isinstance(value, list | tuple):
        separator = "["
        for part in value:
            yield separator
            yield from inside(part)
            separator = ","
        yield "]" if value else "[]"
    else:
        yield _dumps(value, sort_keys=sort_keys)


class LargeJSONResponse(Response):
    """A JSON response of any size; make it in a thread."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the text."""
        return "".join(json_pieces(content)).encode()
