"""Values of a report as HTML with their JSON pointers: each number of a page names its source."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from markupsafe import Markup

from howsure.numbers import FILTERS, edge, moment, percent
from howsure.report.located import Located, path_of, value_of
from howsure.shares import measured_percents
from howsure.statistics.measures.scale import Scale

_NUMBER = Markup('<span class="number" data-path="{}" data-value="{}">{}</span>')


def in_form(value: Any, form: str) -> str:  # noqa: ANN401 -- any JSON
    """Return a value in a form of `FILTERS`; a located one as HTML with its pointer."""
    show = FILTERS[form]
    text = show(_values(value))
    return str(text) if show is moment else _marked(value, text)


def _marked(value: Any, text: str) -> str:  # noqa: ANN401 -- any JSON
    """Return the text of a value; of a located one as HTML with its pointer."""
    path = path_of(value) if isinstance(value, Located) else None
    return str(text) if path is None else _NUMBER.format(path, json.dumps(value_of(value)), text)


def rate(value: Any, interval: Any) -> str:  # noqa: ANN401 -- any JSON
    """Return a measured share in percent with as many digits as beside its interval."""
    share, ends = _values(value), _values(interval)
    is_bare = share is None or ends is None
    return _marked(value, percent(share) if is_bare else measured_percents(share, ends)[0])


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


def _values(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    return value_of(value) if isinstance(value, Located) else value


LOCATED_FILTERS: Mapping[str, Callable[..., str]] = {
    "in_form": in_form,
    "rate": rate,
    "bounds": bounds,
    "with_interval": with_interval,
    "on_scale": on_scale,
    **{form: partial(in_form, form=form) for form in FILTERS},
}
