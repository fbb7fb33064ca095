"""Elements of SVG: paths of marks, rectangles and texts."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from howsure.pictures.lettering import SIZE, xml_text
from howsure.pictures.palette import Ink, variable

Shape: TypeAlias = Literal["circle", "square", "diamond", "triangle", "down", "cross", "tick"]
Anchor: TypeAlias = Literal["start", "middle", "end"]
Point: TypeAlias = tuple[float, float]
# In units of the mark's size, around its middle.
_CORNERS: dict[str, tuple[Point, ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "triangle": ((0, -1.1), (1.05, 0.8), (-1.05, 0.8)),
    "down": ((0, 1.1), (1.05, -0.8), (-1.05, -0.8)),
    "tick": ((-0.3, -1.8), (0.3, -1.8), (0.3, 1.8), (-0.3, 1.8)),
}


def pixels(value: float) -> str:
    """Return a length to a tenth of a pixel."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def line_path(places: Iterable[Point]) -> str:
    """Return the path through places."""
    return "M" + "L".join(f"{pixels(x)} {pixels(y)}" for x, y in places)


def shape_path(shape: Shape, x: float, y: float, size: float) -> str:
    """Return the path of a mark of radius ``size`` around a place."""
    if shape == "circle":
        radius, across = pixels(size), pixels(2 * size)
        arc = f"a{radius} {radius} 0 1 0"
        return f"M{pixels(x - size)} {pixels(y)}{arc} {across} 0{arc}-{across} 0"
    if shape == "cross":
        diagonals = (
            ((x - size, y - size), (x + size, y + size)),
            (
                (x + size, y - size),
                (x - size, y + size),
            ),
        )
        return "".join(map(line_path, diagonals))
    return line_path((x + size * dx, y + size * dy) for dx, dy in _CORNERS[shape]) + "Z"


def path(
    data: str,
    *,
    fill: Ink | None = None,
    stroke: Ink | None = None,
    look: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return a path; ``look`` has further attributes."""
    colours = {"fill": "none" if fill is None else variable(fill)}
    if stroke is not None:
        colours["stroke"] = variable(stroke)
    attributes = "".join(f' {name}="{value}"' for name, value in {**colours, **look}.items())
    return f'<path d="{data}"{attributes}/>'


def rectangle(x: float, y: float, width: float, height: float, ink: Ink, opacity: float) -> str:
    """Return a filled rectangle."""
    return (
        f'<rect x="{pixels(x)}" y="{pixels(y)}" width="{pixels(width)}" height="{pixels(height)}" '
        f'fill="{variable(ink)}" fill-opacity="{opacity:.2g}"/>'
    )


def text(
    written: str, x: float, y: float, ink: Ink, anchor: Anchor = "middle", size: float = SIZE
) -> str:
    """Return a line of text, its baseline at ``y``."""
    small = f' font-size="{pixels(size)}"' if size < SIZE else ""
    return (
        f'<text x="{pixels(x)}" y="{pixels(y)}" text-anchor="{anchor}"{small} '
        f'fill="{variable(ink)}">{xml_text(written)}</text>'
    )


def label(written: str, x: float, y: float, ink: Ink) -> str:
    """Return a text that is readable over lines, which it covers."""
    halo = f'stroke="{variable("ground")}" stroke-width="3" paint-order="stroke"'
    return text(written, x, y, ink, "start").replace("<text ", f"<text {halo} ", 1)


def slanted(written: str, x: float, y: float, ink: Ink) -> str:
    """Return a text that rises to its end at a place."""
    place = f"translate({pixels(x)} {pixels(y)}) rotate(-45)"
    return (
        f'<text transform="{place}" text-anchor="end" '
        f'fill="{variable(ink)}">{xml_text(written)}</text>'
    )
