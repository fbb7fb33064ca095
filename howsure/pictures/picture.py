"""A picture: marks and labels between two axes, as SVG."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from howsure.pictures import elements
from howsure.pictures.axes import EDGE, LINE, Axes
from howsure.pictures.elements import Anchor, Point, Shape, line_path, pixels, shape_path
from howsure.pictures.label_places import Box, LabelPlaces
from howsure.pictures.lettering import FONT, SIZE, text_width, wrap_text, xml_text
from howsure.pictures.palette import Ink, variable
from howsure.pictures.scales import Axis, Scale

WIDTH = 356.0  # of a telephone
WIDE = 700.0
RADIUS = 4.0
_LEAST_SIZE = 7.0
_MARK_EVERY = 6.0  # pixels along lines that labels avoid
_HEADING: tuple[tuple[float, Ink, str], ...] = (
    (13.0, "ink", ' font-weight="bold"'),
    (12.0, "muted", ""),
)
_TINT = {"fill-opacity": 0.18}
_BOLD = 1.08  # times as wide
# Of the marker, from the outside: width and colour.
_RINGS: tuple[tuple[int, Ink], ...] = ((21, "ground"), (17, "ink"), (11, "ground"), (7, "orange"))


class Picture:
    """A picture of two axes; marks are drawn in the order in which they are added.

    Coordinates are values of the axes. Marks whose coordinates are not finite are left out, and a
    line has a gap there. Texts may be names of strangers.

    Parameters
    ----------
    x, y, height, width
        As of `Axes`.
    """

    def __init__(self, x: Axis, y: Axis, *, height: float, width: float = WIDTH) -> None:
        self.axes = Axes(x, y, height, width)
        self._marks: list[str] = []
        self._labels: list[tuple[str, Sequence[Point], Ink]] = []
        self._legend: list[tuple[str, Shape, Ink]] = []
        self._obstacles: list[Point] = []

    def line(
        self, points: Iterable[Point], ink: Ink, *, width: float = 2.0, dash: str = "none"
    ) -> None:
        """Draw a line through points."""
        for is_finite, part in groupby(points, key=_is_finite):
            if is_finite:
                places = [self.axes.place(*point) for point in part]
                self._obstacles += _along(places)
                look = {"stroke-width": pixels(width), "stroke-dasharray": dash}
                self._marks.append(elements.path(line_path(places), stroke=ink, look=look))

    def area(self, lower: Sequence[Point], upper: Sequence[Point], ink: Ink) -> None:
        """Fill what lies between two lines."""
        places = [
            self.axes.place(*point) for point in (*upper, *reversed(lower)) if _is_finite(point)
        ]
        if places:
            self._marks.append(elements.path(line_path(places) + "Z", fill=ink, look=_TINT))

    def bar(
        self,
        start: Point,
        end: Point,
        ink: Ink,
        *,
        opacity: float = 1.0,
        is_background: bool = False,
    ) -> None:
        """Fill the rectangle between two corners; labels may lie on a background."""
        if _is_finite(start) and _is_finite(end):
            (x0, y0), (x1, y1) = self.axes.place(*start), self.axes.place(*end)
            size = (abs(x1 - x0), abs(y1 - y0))
            self._marks.append(elements.rectangle(min(x0, x1), min(y0, y1), *size, ink, opacity))
            if not is_background:
                for down, _ in _along([(y0, 0.0), (y1, 0.0)]):
                    self._obstacles += _along([(x0, down), (x1, down)])

    def bars(self, corners: Iterable[tuple[Point, Point]], ink: Ink) -> None:
        """Fill rectangles between two corners each, as one mark: there may be hundreds."""
        data = ""
        for start, end in corners:
            if _is_finite(start) and _is_finite(end):
                (x0, y0), (x1, y1) = self.axes.place(*start), self.axes.place(*end)
                self._obstacles += [(x0, y0), (x1, y1)]
                left, right, floor, top = map(pixels, (x0, x1, y0, y1))
                data += f"M{left} {floor}H{right}V{top}H{left}Z"
        if data:
            self._marks.append(elements.path(data, fill=ink))

    def cell(self, x: Point, y: Point, ink: Ink, *, opacity: float) -> None:
        """Fill the rectangle between values of each axis, less half a pixel on each side."""
        (x0, y0), (x1, y1) = self.axes.place(x[0], y[0]), self.axes.place(x[1], y[1])
        self._marks.append(
            elements.rectangle(x0 + 0.5, y0 + 0.5, x1 - x0 - 1.0, y1 - y0 - 1.0, ink, opacity)
        )

    def points(
        self,
        points: Iterable[Point],
        ink: Ink,
        *,
        shape: Shape = "circle",
        size: float = RADIUS,
        opacity: float = 1.0,
        is_hollow: bool = False,
    ) -> None:
        """Draw a mark at each point."""
        places = [self.axes.place(*point) for point in points if _is_finite(point)]
        self._obstacles += places
        data = "".join(shape_path(shape, x, y, size) for x, y in places)
        look = {"opacity": f"{opacity:g}"} if opacity < 1.0 else {}
        if data and is_hollow:
            self._marks.append(elements.path(data, stroke=ink, look=look))
        elif data:
            self._marks.append(elements.path(data, fill=ink, look=look))

    def label(self, text: str, anchors: Sequence[Point], ink: Ink = "ink") -> None:
        """Name something beside one of its points, where a place is free; else leave it out."""
        self._labels.append((text, [point for point in anchors if _is_finite(point)], ink))

    def text(
        self,
        text: str,
        at: Point,
        ink: Ink = "ink",
        anchor: Anchor = "middle",
        *,
        down: float = 4.0,
        width: float = math.inf,
    ) -> None:
        """Write at a point, the baseline so many pixels below it, smaller if it is too wide."""
        x, y = self.axes.place(*at)
        size = max(min(SIZE, SIZE * width / max(text_width(text), 1.0)), _LEAST_SIZE)
        self._marks.append(elements.text(text, x, y + down, ink, anchor, size))

    def legend(self, text: str, shape: Shape, ink: Ink) -> None:
        """Name a shape and its colour below the axes."""
        self._legend.append((text, shape, ink))

    def marker(self, at: Point | None) -> None:
        """Mark a point that a script may move; without a point the mark is hidden.

        Its ``transform`` takes values of the axes, which must be linear and begin at 0.
        """
        x, y = self.axes.x, self.axes.y
        if not (isinstance(x, Scale) and isinstance(y, Scale) and x.least == y.least == 0.0):
            raise TypeError("a marker needs two axes of numbers that begin at 0")
        most = float(y.most)
        (left, floor), (right, top) = self.axes.place(0.0, 0.0), self.axes.place(x.most, most)
        scale = f"scale({(right - left) / x.most:.8g} {(top - floor) / most:.8g})"
        hidden = ' visibility="hidden"' if at is None else ""
        place = (0.0, 0.0) if at is None else (at[0], min(at[1], most))
        # The round ends of an empty line keep their size when the frame is stretched.
        look = 'stroke-linecap="round" vector-effect="non-scaling-stroke"'
        rings = "".join(
            f'<path d="M0 0h0" stroke="{variable(ink)}" stroke-width="{width}" {look}/>'
            for width, ink in _RINGS
        )
        self._marks.append(
            f'<g class="frame-of-point" data-most="{most!r}" '
            f'transform="translate({left:.2f} {floor:.2f}) {scale}">'
            f'<g class="point" transform="translate({place[0]!r} {place[1]!r})"{hidden}>'
            f"{rings}</g></g>"
        )

    def svg(self, title: str, note: str, name: str, *, has_heading: bool = False) -> str:
        """Return the picture as SVG.

        Parameters
        ----------
        title, note : str
            Its text alternative.
        name : str
            Unique on a page; letters, digits and hyphens. Anything else is escaped.
        has_heading : bool
            Whether title and note are drawn above, as in a file of its own.
        """
        heading, top = self._heading(title, note) if has_heading else ([], 0.0)
        legend, bottom = self._drawn_legend()
        body = "".join([*self.axes.drawn(), *self._marks, *self._drawn_labels(), *legend])
        size = f"{pixels(self.axes.width)} {pixels(top + bottom)}"
        width, height = size.split()
        look = "chart" if self.axes.width <= WIDTH else "chart wide"
        name = xml_text(name)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{look}" role="img" '
            f'viewBox="0 0 {size}" width="{width}" height="{height}" '
            f'font-family="{FONT}" font-size="{pixels(SIZE)}" '
            f'aria-labelledby="t-{name} d-{name}"><title id="t-{name}">{xml_text(title)}</title>'
            f'<desc id="d-{name}">{xml_text(note)}</desc>{"".join(heading)}'
            f'<g transform="translate(0 {pixels(top)})">{body}</g></svg>'
        )

    def _drawn_labels(self) -> Iterator[str]:
        axes = self.axes
        frame = Box(axes.left + 2.0, axes.top - 4.0, axes.width - 1.0, axes.floor - 1.0)
        places = LabelPlaces(frame, self._obstacles)
        for text, anchors, ink in self._labels:
            box = places.find(text, [axes.place(*anchor) for anchor in anchors])
            if box is not None:
                yield elements.label(text, box.left, box.bottom - 3.0, ink)

    def _drawn_legend(self) -> tuple[list[str], float]:
        """Return the legend, and where the picture ends."""
        drawn: list[str] = []
        x, y = self.axes.left, self.axes.bottom
        for number, (text, shape, ink) in enumerate(self._legend):
            width = text_width(text) + 16.0
            if number and x + width > self.axes.width:
                x, y = self.axes.left, y + LINE + 1.0
            drawn.append(
                elements.path(shape_path(shape, x + 5.0, y + 8.0, 4.0), fill=ink, stroke=ink)
            )
            drawn.append(elements.text(text, x + 14.0, y + 12.0, "muted", "start"))
            x += width + 14.0
        return drawn, y + (LINE + 3.0 if drawn else 0.0)

    def _heading(self, title: str, note: str) -> tuple[list[str], float]:
        """Return the lines of title and note, and where they end."""
        drawn: list[str] = []
        y = 0.0
        for text, (size, ink, look) in zip((title, note), _HEADING, strict=True):
            width = (self.axes.width - 2 * EDGE) / (_BOLD if look else 1.0)
            for line in wrap_text(text, width, size):
                y += size + 4.0
                drawn.append(
                    f'<text x="{pixels(EDGE)}" y="{pixels(y)}" font-size="{pixels(size)}"{look} '
                    f'fill="{variable(ink)}">{xml_text(line)}</text>'
                )
        return drawn, y + 12.0


def _is_finite(point: Point) -> bool:
    return all(math.isfinite(value) for value in point)


def _along(places: Sequence[Point]) -> Iterator[Point]:
    """Yield points on a line, close enough for labels to avoid it."""
    yield from places[:1]
    for (x0, y0), (x1, y1) in pairwise(places):
        steps = max(int(math.dist((x0, y0), (x1, y1)) / _MARK_EVERY), 1)
        for step in range(1, steps + 1):
            yield x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps
