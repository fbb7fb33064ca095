"""Numbers of pages, and where they are from: JSON pointers (RFC 6901)."""

from typing import Any


def at(document: Any, path: str) -> Any:
    """Return what a pointer leads to."""
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document
