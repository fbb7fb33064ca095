"""Numbers and times as text for people."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from howsure import shares

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


MOSTLY_WRONG = 0.5  # below it a larger error rate is no advice


def missing_labels(
    missing: Mapping[float, int | None], accuracy: float = 1.0, *, out_of_reach: bool = False
) -> str:
    """Return what to do if no requested error rate passed its test.

    ``missing`` has, for each error rate, about how many labels must be added to prove it, or None
    if that is unknown. ``out_of_reach`` tells that no number would be enough.
    """
    known = {rate: n_labels for rate, n_labels in missing.items() if n_labels is not None}
    if not known and accuracy < MOSTLY_WRONG:
        return (
            f"Only {percent(accuracy)} of answers are correct: check the labels, the order of the "
            "classes and the preprocessing before anything else."
        )
    if not known and not out_of_reach:
        return (
            "These samples do not tell how many more would prove it. Add labelled samples, or "
            "choose a larger error rate."
        )
    if not known:
        return (
            "At the error rates seen here, more labels would not prove it. Choose a larger error "
            "rate."
        )
    nearest = min(known, key=lambda rate: known[rate])
    to_prove = f" to prove {share(nearest)}" if len(missing) > 1 else ""
    return (
        f"Add about {rough_count(known[nearest])} labelled samples like these{to_prove}, better "
        "twice as many, or choose a larger error rate."
    )
