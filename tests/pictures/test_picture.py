"""Marks lie at their values, labels beside one another, and strangers' names are text."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import hypothesis.strategies as st
import pytest
from hypothesis import given

from howsure.pictures.label_places import Box
from howsure.pictures.lettering import fit_text, text_width, wrap_text
from howsure.pictures.palette import paint
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Names, Scale, percent, round_above

SVG = "{http://www.w3.org/2000/svg}"
SHARES = st.floats(0.0, 1.0)
ENDS = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)).map(lambda e: (e[0], e[0] + e[1]))


def parsed(picture: Picture) -> ET.Element:
    return ET.fromstring(picture.svg("title", "note", "one"))


def labels(picture: Picture) -> dict[str, Box]:
    """Return where the labels beside marks are."""
    texts = [text for text in parsed(picture).iter(f"{SVG}text") if text.get("paint-order")]
    boxes = {}
    for text in texts:
        left, bottom = float(text.get("x")), float(text.get("y"))
        boxes[text.text] = Box(left, bottom - 9, left + text_width(text.text), bottom + 2)
    return boxes


@pytest.mark.parametrize("kind", ["linear", "root", "log"])
def test_a_mark_lies_at_the_tick_of_its_value(kind) -> None:
    scale = Scale(0.001 if kind == "log" else 0.0, 1.0, write=str, kind=kind)
    picture = Picture(scale, scale, height=300)
    values = scale.tick_values()
    picture.points([(value, value) for value in values], "blue", size=0)
    root = parsed(picture)
    (mark,) = [path for path in root.iter(f"{SVG}path") if path.get("fill") != "none"]
    places = re.findall(r"M(\S+) (\S+?)a", mark.get("d"))
    below = {t.text: t.get("x") for t in root.iter(f"{SVG}text") if t.get("text-anchor") != "end"}
    beside = {t.text: t.get("y") for t in root.iter(f"{SVG}text") if t.get("text-anchor") == "end"}
    assert len(places) == len(values)
    for value, (x, y) in zip(values, places, strict=True):
        if str(value) in below:
            assert float(below[str(value)]) == pytest.approx(float(x), abs=0.11)
        assert float(beside[str(value)]) == pytest.approx(float(y) + 4, abs=0.11)


@given(ends=ENDS, most=st.integers(2, 8))
def test_ticks_ascend_between_the_ends(ends, most) -> None:
    scale = Scale(*ends)
    ticks = scale.tick_values(most)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= most + 1
    assert all(0.0 <= scale.place(tick) <= 1.0 for tick in ticks)
    assert round_above(ends[1] - ends[0]) >= ends[1] - ends[0]


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_an_axis_needs_finite_ends_that_ascend(ends) -> None:
    with pytest.raises(ValueError, match="finite and ascend"):
        Scale(*ends)


@given(points=st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=8))
def test_labels_are_inside_and_cover_no_other(points) -> None:
    picture = Picture(Scale(0.0, 1.0), Scale(0.0, 1.0, "share", percent), height=200)
    picture.line(sorted(points), "grey")
    for number, point in enumerate(points):
        picture.label(f"threshold {number}", [point])
    boxes = labels(picture)
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes.values(), 2))
    assert all(box.left >= 0 and box.right <= picture.axes.width for box in boxes.values())
    assert boxes


def test_what_is_not_finite_is_not_drawn() -> None:
    def marks(points) -> list[str]:
        picture = Picture(Scale(0.0, 1.0), Scale(0.0, 1.0), height=100)
        picture.points(points, "orange")
        picture.line(points, "red")
        inks = ("var(--chart-orange)", "var(--chart-red)")
        paths = parsed(picture).iter(f"{SVG}path")
        return [p.get("d") for p in paths if p.get("fill") in inks or p.get("stroke") in inks]

    gap = [(0.1, 0.1), (0.2, 0.2), (0.3, math.nan), (0.4, math.inf), (0.5, 0.5), (0.6, 0.6)]
    points, *lines = marks(gap)
    assert points.count("M") == 4
    assert [line.count("L") for line in lines] == [1, 1]


HOSTILE = [
    "<script>",
    "a&b",
    "\x00\x1b",
    "\u202eevil",
    "שלום עולם",
    "漢字" * 20,
    "W" * 99,
    "\ud800",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_that_fits(name) -> None:
    picture = Picture(Names([name], "label"), Names([name]), height=30)
    picture.text(name, (0, 0))
    picture.label(name, [(0, 0)])
    picture.legend(name, "cross", "red")
    root = ET.fromstring(picture.svg(name, name, "one", has_heading=True))
    assert {element.tag for element in root.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "desc", "g", "path", "text")
    }
    assert not re.search("[\x00-\x08\u202e\ud800]", "".join(root.itertext()))
    sides = [text for text in root.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert all(text_width(text.text) <= 0.36 * picture.axes.width for text in sides)


@given(text=st.text(min_size=1), width=st.floats(20.0, 300.0))
def test_text_is_cut_and_broken_to_a_width(text, width) -> None:
    assert text_width(fit_text(text, width)) <= width
    lines = wrap_text(text, width)
    assert all(text_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_painting_leaves_texts_alone() -> None:
    picture = Picture(Scale(0.0, 1.0), Names(["var(--chart-none)", '"var(--chart-x)"']), height=40)
    painted = paint(picture.svg("t", "n", "one"), "dark")
    assert re.findall(r"var\([^)]*\)", painted) == ["var(--chart-none)", "var(--chart-x)"]
