"""The colours of all pictures, for light and dark backgrounds.

Marks use the palette of Okabe and Ito, which people with any colour vision can distinguish. Their
lightness is adjusted to a contrast of at least 3 to 1 (WCAG 2.2, 1.4.11); text has 4.5 to 1. No
picture relies on colour alone: shapes, positions or words repeat the information.
"""

import re
from typing import Literal, TypeAlias

Theme: TypeAlias = Literal["light", "dark"]
Ink: TypeAlias = Literal["ground", "ink", "muted", "grid", "blue", "orange", "green", "grey", "red"]

PALETTE: dict[Ink, tuple[str, str]] = {
    "ground": ("#ffffff", "#15181d"),
    "ink": ("#1b1f24", "#eceff3"),
    "muted": ("#59636e", "#a3adb8"),
    "grid": ("#dfe3e8", "#2f363f"),
    "blue": ("#0069a8", "#56b4e9"),
    "orange": ("#b84a08", "#f0913f"),
    "green": ("#007a5a", "#2fc79c"),
    "grey": ("#8b95a1", "#77828f"),
    "red": ("#b3261e", "#ff8a80"),
}
# In attributes only: texts, which may be names of strangers, have no quotes.
_VARIABLE = re.compile(r'"var\(--chart-(\w+)\)"')


def variable(ink: Ink) -> str:
    """Return the CSS variable of a colour."""
    return f"var(--chart-{ink})"


def paint(svg: str, theme: Theme) -> str:
    """Return a picture with colours in place of variables, for programs without CSS."""
    column = 0 if theme == "light" else 1
    colours = {str(ink): pair[column] for ink, pair in PALETTE.items()}
    return _VARIABLE.sub(lambda match: f'"{colours[match[1]]}"', svg)
