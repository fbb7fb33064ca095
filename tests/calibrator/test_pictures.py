"""Pictures of a report in a program: in notebooks, and by matplotlib with the report's numbers."""

import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from msgspec.structs import replace
from report_scenarios import outputs

from howsure import Calibrator
from howsure.plot import ReliabilityDisplay, RiskCoverageDisplay, ShiftDisplay
from howsure.report.plain_parts import typed_part
from howsure.report.report import Report

EXAMPLE = Path(__file__).parents[2] / "service/http/openapi/bodies/report.json"
DISPLAYS = (ReliabilityDisplay, RiskCoverageDisplay, ShiftDisplay)


CHEAP = {"measures": ("margin", "entropy"), "folds": 2, "bins": 5}


@pytest.fixture(scope="module")
def fitted() -> Report:
    values, labels = outputs(400, seed=1, n_classes=8).values()
    return Calibrator(**CHEAP).fit(values, labels).report()


@pytest.fixture(scope="module")
def report(fitted) -> Report:
    """Of two events, with the further sets of the documented example."""
    example = typed_part(json.loads(EXAMPLE.read_text(encoding="utf-8")), Report)
    return replace(fitted, evaluations=example.evaluations)


@pytest.fixture(autouse=True)
def _closed():
    mpl.use("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_draws_on_axes_of_its_own_or_given_ones(report, display) -> None:
    own = display.from_report(report)
    own.figure_.canvas.draw()
    figure, (left, _) = plt.subplots(1, 2)
    drawn = display.from_report(report, ax=left)
    assert (drawn.ax_, drawn.figure_) == (left, figure)
    assert left.get_xlabel()
    assert left.get_ylabel()
    assert left.get_legend() is not None
    with pytest.raises(ValueError, match="event must be one of 1, 5, not '2'"):
        display.from_report(report, event="2")


def test_displays_draw_the_numbers_of_the_report(report) -> None:
    table = report.events["1"].measures[report.events["1"].served]
    ax = RiskCoverageDisplay.from_report(report).ax_
    (curve,) = (line for line in ax.lines if line.get_label() == "error rate")
    of_report = table.curves.risk_coverage
    np.testing.assert_array_equal(curve.get_xydata().T, [of_report.coverage, of_report.risk])
    promises = {line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"}
    assert promises == {result.target.max_risk for result in table.selective}
    rows = table.reliability.after
    points = ReliabilityDisplay.from_report(report).ax_.containers[1].lines[0].get_xydata()
    np.testing.assert_array_equal(points, [[row.said, row.hit_rate] for row in rows])
    sets = [one.events["1"] for one in report.evaluations if one.labelled]
    lines = ShiftDisplay.from_report(report).ax_.lines
    by_label = {line.get_label(): list(line.get_ydata()) for line in lines}
    assert by_label["correct"] == [one.accuracy for one in sets]
    assert by_label["stated"] == [one.stated for one in sets]


def test_what_a_report_lacks_is_said(fitted) -> None:
    with pytest.raises(ValueError, match="this report has no labelled further set of Top-1"):
        ShiftDisplay.from_report(fitted)


def test_a_notebook_shows_summary_and_pictures(report) -> None:
    html = report._repr_html_()
    assert report.summary.headline in html
    assert "var(--" not in html  # a notebook has no style sheet of ours
    page = ET.fromstring(f"<body>{html.replace('<br>', '<br/>')}</body>")
    pictures = page.findall(".//{http://www.w3.org/2000/svg}svg")
    assert len(pictures) > 10
    names = [picture.get("aria-labelledby") for picture in pictures]
    assert all(one != other for one, other in pairwise(sorted(names)))


def test_names_of_users_are_text_in_a_notebook(report) -> None:
    """Whatever a report was read from: names of classes and sets, sentences, and keys of events."""
    script, control = "<script>alert(1)</script>", "\x1b"
    names = [f"{script}{at}" for at in range(8)]
    report = typed_part(json.loads(report.json()), Report)
    (further, *_) = report.evaluations
    summary = replace(report.summary, headline=script + control, sentences=[f'"{script}&'])
    report = replace(
        report,
        summary=summary,
        events={**report.events, f'9"><{script}': report.events["1"]},
        evaluations=[replace(further, name=script)],
        provenance=replace(report.provenance, config={"classes": names}),
    )
    html = report._repr_html_()
    page = ET.fromstring(f"<body>{html.replace('<br>', '<br/>')}</body>")
    assert "script" not in {element.tag.rpartition("}")[2] for element in page.iter()}
    texts = list(page.itertext())
    assert f'"{script}&' in texts
    assert script + "\ufffd" in texts
    assert sum(text.startswith("<script>aler") for text in texts) >= len(names)  # axes cut names
    assert any(f"“{script}”" in text for text in texts)
