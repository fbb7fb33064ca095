"""The colours of all charts, in light and in dark, and their font.

Those of marks are Okabe's and Ito's, which people of any colour vision tell apart, darkened or
lightened until they stand out from the ground at least 3 to 1 (WCAG 2.2, 1.4.11), text 4.5 to 1.
No chart tells anything by colour alone: shapes, places or words tell it as well.
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
    """Return the CSS variable of a colour, as specs name it.

    Raises
    ------
    KeyError
        If there is none of the name.
    """
    PALETTE[name]
    return f"var(--chart-{name})"


def painted(svg: str, theme: Theme) -> str:
    """Return the picture with colours in place of variables, for programs that know no CSS."""
    place = 0 if theme == "light" else 1
    return _VARIABLE.sub(lambda found: PALETTE[found[1]][place], svg)
