"""A mark that is put on a drawn picture, and moved without drawing it anew."""

import re

# What Vega draws first: the frame in which axes and marks are, below the words of `svg`.
_FRAME = re.compile(
    r'<g transform="translate\(0,(?P<words>[\d.]+)\)"><g fill="none"[^>]*'
    r'transform="translate\((?P<left>[\d.]+),(?P<top>[\d.]+)\)">'
    r'<g class="mark-group role-frame root"><g transform="translate\(0,0\)">'
    r'<path class="background" d="M0,0h(?P<width>[\d.]+)v(?P<height>[\d.]+)h-'
)
# A line without length has round ends of the same size however its frame is stretched.
_DOTS = "".join(
    f'<path d="M0 0h0" stroke="var(--chart-{ink})" stroke-width="{size}" stroke-linecap="round" '
    'vector-effect="non-scaling-stroke"/>'
    for ink, size in (("ground", 21), ("ink", 17), ("ground", 11), ("before", 7))
)


def with_marker(picture: str, *, most: float, at: tuple[float, float] | None) -> str:
    """Return a picture of axes from 0 to 1 and from 0 to ``most`` with a mark.

    The mark is ``g.point``, in a frame whose units are those of the axes: ``transform`` moves it to
    a place by its numbers. Without a place it is hidden.

    Raises
    ------
    ValueError
        If it is not known where in the picture its axes are.
    """
    found = _FRAME.search(picture)
    if found is None:
        raise ValueError("the picture has no frame where Vega draws one")
    left, top, width, height = (
        float(found["left"]),
        float(found["words"]) + float(found["top"]),
        float(found["width"]),
        float(found["height"]),
    )
    hidden = ' visibility="hidden"' if at is None else ""
    x, y = (0.0, 0.0) if at is None else (at[0], min(at[1], most))
    mark = (
        f'<g class="frame-of-point" data-most="{most!r}" '
        f'transform="translate({left + 0.5:g} {top + height + 0.5:g}) '
        f'scale({width:g} {-height / most!r})">'
        f'<g class="point" transform="translate({x!r} {y!r})"{hidden}>{_DOTS}</g></g>'
    )
    return f"{picture.removesuffix('</svg>')}{mark}</svg>"
