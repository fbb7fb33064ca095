"""Values of a report with their JSON pointers, so that each number of a page names its source."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from msgspec import Struct


def pointer(*parts: object) -> str:
    """Return the JSON pointer (RFC 6901) of these parts."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


_MISSING = object()


class Located:
    """A value of a document with its JSON pointer (RFC 6901).

    Parts are read by name or index, ``figures.accuracy.interval[0]`` in templates. A part that the
    document lacks is false, not `present`, and shown as an empty cell. It has no public
    attributes, because templates would find them in place of parts.
    """

    __slots__ = ("_path", "_value")

    def __init__(self, value: Any, path: str = "") -> None:  # noqa: ANN401 -- any JSON
        self._value = value
        self._path = path

    def __getitem__(self, part: object) -> "Located":
        """Return a part of the value."""
        found: Any = _MISSING
        if isinstance(self._value, Mapping):
            # Some names are numbers until they are JSON.
            found = {str(key): one for key, one in self._value.items()}.get(str(part), _MISSING)
        elif isinstance(self._value, list | tuple):
            if isinstance(part, int) and part < len(self._value):
                found = self._value[part]
        elif is_dataclass(self._value) or isinstance(self._value, Struct):
            found = getattr(self._value, str(part), _MISSING)
        return Located(found, self._path + pointer(part))

    def __iter__(self) -> Iterator[Any]:
        """Yield the names of an object, or the parts of a list."""
        if isinstance(self._value, list | tuple):
            return (self[index] for index in range(len(self._value)))
        return map(str, self._value if isinstance(self._value, Mapping) else ())

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return self._value is not _MISSING and bool(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, Located) else other))

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return str(self._value)


def present(located: Located) -> bool:
    """Tell whether the value exists and is not null."""
    return value_of(located) is not None


def value_of(located: Located) -> Any:  # noqa: ANN401 -- any JSON
    """Return the value; None if the document lacks it."""
    return None if located._value is _MISSING else located._value  # noqa: SLF001 -- same module


def path_of(located: Located) -> str | None:
    """Return the JSON pointer of the value; None without a value."""
    return None if value_of(located) is None else located._path  # noqa: SLF001 -- same module
