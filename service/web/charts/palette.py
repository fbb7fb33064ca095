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


def stylesheet() -> str:
    """Return the variables for a page: dark where the reader's is, light on paper."""
    light, dark = (
        "".join(f"\n  --chart-{name}: {pair[place]};" for name, pair in PALETTE.items())
        for place in (0, 1)
    )
    return (
        f":root {{{light}\n}}\n"
        f"@media screen and (prefers-color-scheme: dark) {{\n:root {{{dark}\n}}\n}}\n" + LAYOUT
    )


LAYOUT = """\
.charts {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr));
  gap: 1.5rem;
  align-items: start;
}
figure.chart { margin: 0; break-inside: avoid; min-width: 0; }
svg.chart { display: block; width: 100%; max-width: 30rem; height: auto; overflow: visible; }
#vg-tooltip-element { visibility: hidden; position: fixed; z-index: 1; }
#vg-tooltip-element.visible {
  visibility: visible;
  padding: .25rem .5rem;
  background: var(--chart-ground);
  color: var(--chart-ink);
  border: 1px solid var(--chart-muted);
  font-size: .8125rem;
}
#vg-tooltip-element td { border: 0; padding: 0 .5rem 0 0; }
@media print {
  figure.chart > button { display: none; }
  .charts { grid-template-columns: 1fr 1fr; }
  figure.chart > details { display: none; }
}
"""
