"""Numbers and times as text for people."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from howsure.statistics import plain as shares

_NONE = "–"  # noqa: RUF001 - the sign of a cell without a number
_MINUS = "\u2212"
_TEN = 10
_THOUSAND = 1000
_MINUTE = 60
_DIGEST = 12


def percent(value: float | None) -> str:
    """Return a measured share in percent, with one to three digits: it differs from 0 and 1."""
    return _NONE if value is None else shares.percent(value)


def share(value: float) -> str:
    """Return a requested or promised share in percent, never rounded."""
    return shares.requested_percent(value)


def confidence(delta: float) -> str:
    """Return the confidence of a statement that fails with probability ``delta``, in percent."""
    return shares.confidence_percent(delta)


def number(value: float | None) -> str:
    """Return a number with four decimals."""
    return _NONE if value is None else f"{value:.4f}"


def count(value: int | None) -> str:
    """Return a count with separated thousands."""
    return _NONE if value is None else f"{value:,}"


def rough_count(value: int) -> str:
    """Return an estimated count, rounded up to two digits."""
    step: int = 10 ** max(len(str(value)) - 2, 0)
    return count(-(-value // step) * step)


def amount(value: float | None) -> str:
    """Return an expected count; below ten it has two significant figures."""
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= _TEN else f"{value:.2g}"


def edge(value: float | None) -> str:
    """Return an end of a bin with up to four significant figures."""
    return _NONE if value is None else f"{value:.4g}"


def short(value: float | None) -> str:
    """Return a number with three significant figures; from 1000 on as a whole number."""
    if value is None:
        return _NONE
    whole = value == 0 or abs(value) >= _THOUSAND
    return f"{value:,.0f}" if whole else f"{value:#.3g}".removesuffix(".")


def signed(value: float | None) -> str:
    """Return a difference with three figures and its sign."""
    if value is None:
        return _NONE
    sign = "" if value == 0 else _MINUS if value < 0 else "+"
    return sign + short(abs(value))


def plain(value: object) -> str:
    """Return a value unformatted."""
    return _NONE if value is None else str(value)


def digest(value: str | None) -> str:
    """Return the beginning of a SHA-256, enough to distinguish the files of one page."""
    return _NONE if value is None else value[:_DIGEST]


def moment(value: datetime | str) -> str:
    """Return a time in UTC, to the minute."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{found:%Y-%m-%d %H:%M} UTC"


def seconds(value: float) -> str:
    """Return a rough duration."""
    if value < _MINUTE:
        return f"{max(1, round(value))} s"
    minutes = round(value / _MINUTE)
    return f"{minutes} min" if minutes < _MINUTE else f"{minutes / _MINUTE:.1f} h"


FILTERS: Mapping[str, Callable[..., Any]] = {
    made.__name__: made
    for made in (
        percent,
        share,
        confidence,
        number,
        short,
        signed,
        count,
        amount,
        edge,
        plain,
        digest,
        rough_count,
        moment,
        seconds,
    )
}
