"""Values of a report with their JSON pointers, so that each number of a page names its source."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from howsure.numbers import FILTERS, edge, moment, percent
from howsure.shares import measured_percents
from howsure.statistics.measures.scale import Scale


def pointer(*parts: object) -> str:
    """Return the JSON pointer (RFC 6901) of these parts."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


_NUMBER = Markup('<span class="number" data-path="{}" data-value="{}">{}</span>')
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


def shown(value: Any, form: str) -> str:  # noqa: ANN401 -- any JSON
    """Return a value in a form of `FILTERS`; a located one as HTML with its pointer."""
    show = FILTERS[form]
    if not isinstance(value, Located):
        return str(show(value))
    text = show(value_of(value))
    return str(text) if show is moment else _marked(value, text)


def _marked(value: Any, text: str) -> str:  # noqa: ANN401 -- any JSON
    """Return the text of a value; of a located one as HTML with its pointer."""
    if not isinstance(value, Located) or value._value is _MISSING:  # noqa: SLF001 -- same module
        return str(text)
    return _NUMBER.format(value._path, json.dumps(value._value), text)  # noqa: SLF001 -- same module


def rate(value: Any, interval: Any) -> str:  # noqa: ANN401 -- any JSON
    """Return a measured share in percent with as many digits as beside its interval."""
    found, ends = _values(value), _values(interval)
    if found is None or ends is None:
        return _marked(value, percent(found))
    return _marked(value, measured_percents(found, ends)[0])


def bounds(interval: Any, value: Any) -> str:  # noqa: ANN401 -- any JSON
    """Return the interval of a measured share, such as ``0.05 % to 0.28 %``."""
    _, *ends = measured_percents(_values(value), _values(interval))
    lower, upper = (_marked(interval[end], text) for end, text in enumerate(ends))
    return Markup("{} to {}").format(lower, upper)


def with_interval(value: Any, interval: Any, *, weighted: object = False) -> str:  # noqa: ANN401 -- any JSON
    """Return a measured share with its interval, such as ``0.14 % (0.05 % to 0.28 %)``."""
    more = ", weighted" if weighted else ""
    return Markup("{} ({}{})").format(rate(value, interval), bounds(interval, value), more)


def on_scale(value: Located | float | None, scale: Scale) -> str:
    """Return a value of a measure on the scale on which people read it."""
    return _marked(value, edge(scale.of(_values(value))))


def _values(found: Any) -> Any:  # noqa: ANN401 -- any JSON
    return value_of(found) if isinstance(found, Located) else found


LOCATED_FILTERS: Mapping[str, Callable[..., str]] = {
    "shown": shown,
    "rate": rate,
    "bounds": bounds,
    "with_interval": with_interval,
    "on_scale": on_scale,
    **{form: partial(shown, form=form) for form in FILTERS},
}
