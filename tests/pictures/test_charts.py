"""What charts show of given numbers: heights of bars, thresholds and promises, names and counts."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from howsure.pictures import elements
from howsure.pictures.charts import (
    bins,
    calibration,
    class_errors,
    confusion,
    differences,
    further_sets,
)
from howsure.pictures.charts.detection import detection
from howsure.pictures.charts.thresholds import RiskCurve, Threshold, risk_coverage
from howsure.pictures.picture import WIDE, Picture
from howsure.statistics.diagnostics.reliability import ReliabilityRow

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Picture) -> ET.Element:
    return ET.fromstring(picture.svg("title", "note", "one"))


def texts(picture: Picture) -> list[str]:
    return [text.text or "" for text in parsed(picture).iter(f"{SVG}text")]


def bars(picture: Picture, ink: str) -> list[float]:
    """Return the heights of bars of a colour, in pixels."""
    rectangles = parsed(picture).iter(f"{SVG}rect")
    return [float(r.get("height")) for r in rectangles if r.get("fill") == f"var(--chart-{ink})"]


EMPTY = [
    calibration.reliability([], [], outcome="correct"),
    class_errors.class_errors([], 0.05, WIDE),
    calibration.confidence_histogram([], 15),
    calibration.classes([], []),
    confusion.confusion([], []),
    calibration.reliability_diagram([], []),
    bins.odds_ratios({}, None),
    bins.odds_by_share([]),
    bins.odds_by_share([("entropy", [])]),
    bins.outcomes([]),
    bins.outcomes([("wrong", "orange", [])]),
    bins.loss_scatter([("correct", [])]),
    risk_coverage(RiskCurve([1.0], [0.0], [0.0], [1.0]), []),
    further_sets.histogram([0.0, 1.0], [0.0], [0.0], "confidence"),
    further_sets.above_confidence([], [], "accuracy"),
    differences.differences([], {}, "difference"),
    detection([], [(0.0, 0.0), (1.0, 1.0)], "recall", "precision"),
    detection([(math.nan, 0.5)], [(0.0, 0.0), (1.0, 1.0)], "recall", "precision"),
]


UNDRAWN = (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("picture", EMPTY)
def test_a_chart_of_nothing_has_axes(picture) -> None:
    assert not re.search("nan|inf", picture.svg("", "", "one"))


def test_a_bar_far_above_the_others_is_cut_and_has_its_number() -> None:
    rows = [ReliabilityRow(14, 3007, 3000, *UNDRAWN), ReliabilityRow(13, 30, 20, *UNDRAWN)]
    picture = calibration.confidence_histogram(rows, 15)
    assert "3,000" in texts(picture)
    *cut, other = bars(picture, "blue")
    assert sum(cut) > other > 0
    wrong = bars(picture, "orange")
    assert wrong[0] / wrong[1] == pytest.approx(7 / 10, abs=0.01)
    assert other / wrong[1] == pytest.approx(20 / 10, abs=0.01)


def test_odds_go_up_and_down_by_the_same_factor() -> None:
    picture = bins.odds_ratios({1: 8.0, 2: 1 / 8}, 8.0)
    assert bars(picture, "blue") == pytest.approx(bars(picture, "orange"), abs=0.2)
    assert "mean factor 8" in texts(picture)


def test_outcomes_stand_one_above_the_other() -> None:
    layers = [("wrong", "orange", [1, 0]), ("near", "green", [2, 3]), ("correct", "blue", [7, 7])]
    picture = bins.outcomes(layers)
    assert texts(picture)[-3:] == ["wrong", "near", "correct"]
    for ink, stacks in {
        "orange": [(1, 0, 1)],
        "green": [(1, 1, 3), (2, 0, 3)],
        "blue": [(1, 3, 10), (2, 3, 10)],
    }.items():
        paths = [p.get("d") for p in parsed(picture).iter(f"{SVG}path")
                 if p.get("fill") == f"var(--chart-{ink})" and not p.get("stroke")]  # fmt: skip
        boxes = [[float(n) for n in re.findall(r"[\d.]+", box)] for box in paths[0].split("Z")[:-1]]
        for (x0, y0, x1, y1, _), (place, floor, top) in zip(boxes, stacks, strict=True):
            assert (x0, y0) == pytest.approx(picture.axes.place(place - 0.42, floor), abs=0.06)
            assert (x1, y1) == pytest.approx(picture.axes.place(place + 0.42, top), abs=0.06)


def test_measures_share_an_axis_of_samples_and_each_has_its_name() -> None:
    curves = [(name, [(0.2, 9.0 / i), (0.9, 0.5)]) for i, name in enumerate("abcd", 1)]
    picture = bins.odds_by_share(curves)
    assert {*"abcd"} <= {*texts(picture)}
    lines = [p for p in parsed(picture).iter(f"{SVG}path") if p.get("stroke-width") == "1.6"]
    assert len({(p.get("stroke"), p.get("stroke-dasharray")) for p in lines}) == 4
    for line, (_, points) in zip(lines, curves, strict=True):
        drawn = [float(n) for n in re.findall(r"[\d.]+", line.get("d"))]
        places = [n for point in points for n in picture.axes.place(*point)]
        assert drawn == pytest.approx(places, abs=0.06)


def test_bins_of_few_samples_are_faint_and_all_are_in_the_frame() -> None:
    spot = calibration.Spot
    picture = calibration.reliability_diagram([spot(0.95, 0.5, 9)], [spot(0.9, 1.0, 900)] * 3)
    marks = [p for p in parsed(picture).iter(f"{SVG}path") if "a" in p.get("d") or p.get("opacity")]
    assert [(p.get("opacity"), p.get("d").count("M")) for p in marks] == [("0.4", 1), (None, 3)]
    assert picture.axes.place(0.5, 0.5) == (picture.axes.left, picture.axes.floor)


def test_thresholds_promises_and_what_is_not_proven() -> None:
    coverage = np.linspace(0.01, 1.0, 100)
    curve = RiskCurve(coverage, 0.2 * coverage, 0.1 * coverage, 0.3 * coverage, 0.32 * coverage)
    thresholds = [
        Threshold("≤ 10 %", 0.32, 0.064, 0.1, (0.3, 0.081)),
        Threshold("≤ 1 %", None, None, 0.01),
        Threshold("W" * 99, 0.8, 0.16, None),
    ]
    picture = risk_coverage(curve, thresholds)
    shown = texts(picture)
    assert {"≤ 10 %: accept 32\u00a0%", "≤ 1 %: not proven", "measured", "tested bound"} <= {*shown}
    assert "evaluation set: 8.1\u00a0%" in shown
    assert any(re.fullmatch(r"W+…: accept 80\u00a0%", text) for text in shown)
    paths = [p for p in parsed(picture).iter(f"{SVG}path") if p.get("stroke") == "var(--chart-red)"]
    ends = [[float(n) for n in re.findall(r"[\d.]+", path.get("d"))] for path in paths]
    for (x0, y0, x1, y1), (promise, end) in zip(ends, ((0.1, 0.32), (0.01, 1.0)), strict=True):
        assert (x0, y0) == pytest.approx(picture.axes.place(0.0, promise), abs=0.06)
        assert (x1, y1) == pytest.approx(picture.axes.place(end, promise), abs=0.06)


def test_the_axis_of_error_rates_holds_the_interval_of_a_set_without_errors() -> None:
    picture = risk_coverage(RiskCurve([0.5, 1.0], [0, 0], [0, 0], [0.22, 0.116]), [])
    assert picture.axes.place(1.0, 0.116)[1] > picture.axes.top


def test_a_confusion_matrix_has_a_count_in_each_cell_that_is_not_empty() -> None:
    picture = confusion.confusion(["cat", "dog", "others"], [[9, 0, 0], [1234567, 8, 0], [0, 2, 0]])
    assert sorted(texts(picture)[8:]) == ["0", "1,234,567", "2", "8", "9"]
    assert texts(confusion.confusion(["x"] * 13, [[1_234_567] * 13] * 13)).count("1M") == 169


def test_undefined_points_of_a_curve_are_not_drawn() -> None:
    curve = [(0.0, math.nan), (0.2, 0.8), (math.nan, 0.5), (0.6, 0.5), (1.0, 0.25)]
    picture = detection(curve, [(0.0, 0.0), (1.0, 1.0)], "recall", "precision")
    first, second, third = (picture.axes.place(*curve[at]) for at in (1, 3, 4))
    blue = "var(--chart-blue)"
    marks = [path.attrib for path in parsed(picture).iter(f"{SVG}path")]
    assert [mark["d"] for mark in marks if mark.get("stroke") == blue] == [
        elements.line_path([first]),
        elements.line_path([second, third]),
    ]
    assert [mark["d"] for mark in marks if mark["fill"] == blue] == [
        elements.shape_path("circle", *first, 2.5)
    ]
