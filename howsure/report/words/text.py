"""Numbers and untrusted names as the text of a picture."""

import math
from typing import Any

from howsure import numbers
from howsure.printable import escaped

MOST_OF_A_NAME = 40
NONE = "\u2013"
count, signed = numbers.count, numbers.signed
PLAIN = (1e-6, 1e6)  # other numbers are shown with powers of ten


def name(text: Any) -> str:  # noqa: ANN401 -- class names may be numbers
    """Return a name as one short line of visible characters that are valid in XML."""
    name = escaped(str(text))
    return name if len(name) <= MOST_OF_A_NAME else f"{name[: MOST_OF_A_NAME - 1]}…"


def percent(value: float | None) -> str:
    """Return a share as pages do, on one line."""
    return numbers.percent(value).replace(" ", "\u00a0")


def requested(share: float) -> str:
    """Return a requested share with all its digits, on one line."""
    return numbers.share(share).replace(" ", "\u00a0")


def figures(value: float | None, most: int) -> str:
    """Return a number with at most ``most`` significant figures."""
    if value is None:
        return NONE
    if value == 0.0 or not PLAIN[0] <= abs(value) < PLAIN[1]:
        return f"{value:.{most}g}"
    digits = max(most - 1 - math.floor(math.log10(abs(value))), 0)
    number = f"{value:.{digits}f}"
    return number.rstrip("0").rstrip(".") if "." in number else number


def number(value: float | None) -> str:
    """Return a number with four figures."""
    return figures(value, 4)


def event(k: str) -> str:
    """Return the name of an event."""
    return f"Top-{k}"


def enumerated(names: list[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
