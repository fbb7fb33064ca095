"""Numbers of a report as they stand on a page: each says where in the report it is from."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

from service.web.charts.figure import pointer
from service.web.words import FILTERS

_NUMBER = Markup('<span class="number" data-path="{}" data-value="{}">{}</span>')
_MISSING = object()


class Pointed:
    """Reads a report by JSON pointers (RFC 6901); what is shown cannot be another number.

    Parameters
    ----------
    report : mapping
        As ``GET /report`` gives it.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self._report = report

    def value(self, *parts: object) -> Any:  # noqa: ANN401 - whatever the report holds there
        """Return what is there, None if nothing is."""
        found = self._found(parts)
        return None if found is _MISSING else found

    def number(self, form: str, *parts: object) -> Markup:
        """Return it as HTML, in one of the forms of `words`; what there is not points nowhere."""
        value = self._found(parts)
        if value is _MISSING:
            return escape(FILTERS[form](None))
        return _NUMBER.format(pointer(*_flat(parts)), json.dumps(value), FILTERS[form](value))

    def _found(self, parts: Iterable[object]) -> Any:  # noqa: ANN401 - whatever is there
        found: Any = self._report
        for part in _flat(parts):
            if isinstance(found, list) and isinstance(part, int) and part < len(found):
                found = found[part]
            elif isinstance(found, Mapping):
                found = found.get(str(part), _MISSING)
            else:
                return _MISSING
        return found


def _flat(parts: Iterable[object]) -> Iterator[object]:
    """Yield the parts; some come together, as a place below which others are."""
    for part in parts:
        if isinstance(part, tuple):
            yield from part
        else:
            yield part
