"""The colours of all charts for light and dark backgrounds, and the font.

Marks use the palette of Okabe and Ito, which people with any colour vision can distinguish. Their
lightness is adjusted to a contrast of at least 3 to 1 (WCAG 2.2, 1.4.11); text has 4.5 to 1. No
chart relies on colour alone: shapes, positions or words repeat the information.
"""

import re
from typing import Literal, TypeAlias

Theme: TypeAlias = Literal["light", "dark"]

PALETTE: dict[str, tuple[str, str]] = {
    "ground": ("#ffffff", "#15181d"),
    "ink": ("#1b1f24", "#eceff3"),
    "muted": ("#59636e", "#a3adb8"),
    "grid": ("#dfe3e8", "#2f363f"),
    "after": ("#0069a8", "#56b4e9"),
    "before": ("#c2500a", "#f0913f"),
    "third": ("#007a5a", "#2fc79c"),
    "band": ("#0069a8", "#56b4e9"),
    "known": ("#8b95a1", "#77828f"),
}
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_VARIABLE = re.compile(r"var\(--chart-([a-z]+)\)")


def colour(name: str) -> str:
    """Return the CSS variable of a colour.

    Raises
    ------
    KeyError
        If there is no colour of this name.
    """
    PALETTE[name]
    return f"var(--chart-{name})"


def painted(svg: str, theme: Theme) -> str:
    """Return the picture with colours in place of variables, for programs without CSS."""
    place = 0 if theme == "light" else 1
    return _VARIABLE.sub(lambda found: PALETTE[found[1]][place], svg)
