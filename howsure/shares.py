"""Shares as text."""

import math
from collections.abc import Sequence
from decimal import Decimal

MOST_DIGITS = 3  # after the point of a measured percentage
BARELY = 1.01  # times a promised rate: both may look the same when rounded
SMALL = 0.01  # shares below it, and above one minus it, need more digits


def percent(share: float, *, digits: int = 1) -> str:
    """Return a measured share in percent, such as ``46.5 %``.

    ``digits`` follow the point, or up to three if fewer would show 0 % or 100 % for another share.
    """
    if not 0.0 < share < 1.0:
        return f"{100.0 * share:.{digits}f} %"
    for n in range(digits, MOST_DIGITS + 1):
        if 10.0**-n / 2 <= 100.0 * min(share, 1.0 - share):
            return f"{100.0 * share:.{n}f} %"
    return "above 99.999 %" if share > 1 / 2 else "below 0.001 %"


def measured_percents(share: float, interval: tuple[float, float]) -> tuple[str, str, str]:
    """Return a measured share and the ends of its interval in percent, with equally many digits.

    One digit follows the point. Within 1 % of 0 % or 100 %, the share has two significant figures;
    a share of exactly 0 % or 100 % has as many digits as its interval needs.
    """
    lower, upper = interval
    tail = min(share, 1.0 - share) or max(share - lower, upper - share)
    digits = 1
    if 0.0 < tail < SMALL:
        digits = min(1 - math.floor(math.log10(100.0 * tail)), MOST_DIGITS)
    return (
        percent(share, digits=digits),
        percent(lower, digits=digits),
        percent(upper, digits=digits),
    )


def percent_with_interval(
    share: float, interval: tuple[float, float], *, weighted: bool = False
) -> str:
    """Return a measured share with its interval, such as ``0.14 % (0.05 % to 0.28 %)``."""
    shown, lower, upper = measured_percents(share, interval)
    return f"{shown} ({lower} to {upper}{', weighted' * weighted})"


def excess_in_words(share: float, interval: Sequence[float], promised: float) -> str:
    """Return what to say of an error rate above the promised one; empty of any other."""
    if share <= promised:
        return ""
    if interval[0] > promised:
        return ", clearly more than promised"
    return f", {'barely ' * (share < BARELY * promised)}more than promised, which may be chance"


def percentage(share: float) -> str:
    """Return a requested share times 100, with all digits that were requested."""
    return _plainly(100 * _decimal(share))


def requested_percent(share: float) -> str:
    """Return a requested or promised share in percent, never rounded, such as ``0.25 %``."""
    return f"{percentage(share)} %"


def confidence_percent(delta: float) -> str:
    """Return the confidence of a statement that fails with probability ``delta``, in percent."""
    return f"{_plainly(100 * (1 - _decimal(delta)))} %"


def _decimal(share: float) -> Decimal:
    # The shortest digits that give this number are those that were requested.
    return Decimal(repr(float(share)))


def _plainly(number: Decimal) -> str:
    return f"{number.normalize():f}"
