"""What holds for each chart of the registry."""

import copy
import json
import math
import re
import xml.etree.ElementTree as ET
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from chart_reports import HOSTILE

import service.reports.charts as charts_package
from service.reports.charts import vega_process
from service.reports.charts.palette import PALETTE, painted
from service.reports.charts.registry import CHARTS, figures_of
from service.reports.charts.text import percent
from service.web.static_files import FOLDER

SPECS = Path(charts_package.__file__).parent / "specs"
SHEET = FOLDER / "charts.css"
OF_THE_PICTURE = {"_bin", "_place", "place"}  # where a row is drawn, which is no number of a report
MOST_BYTES = 60_000
SVG = "{http://www.w3.org/2000/svg}"


def walk(value, path=""):
    """Yield every value with its path; of a JSON pointer's kind."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from walk(part, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from walk(part, f"{path}/{index}")
    else:
        yield path, value


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_there_is_no_spec_without_a_chart():
    assert {path.stem for path in SPECS.iterdir()} == {*CHARTS, "config"}


@pytest.mark.parametrize("name", CHARTS)
def test_no_spec_names_a_place_to_load_from(name):
    for path, value in walk(json.loads((SPECS / f"{name}.json").read_text())):
        assert not path.endswith("/url"), path
        assert "://" not in str(value) or path == "/$schema", path


def test_every_chart_is_drawn_of_some_report(figures):
    assert {figure.chart for figure, _ in figures} == set(CHARTS)


def test_figures_of_a_report_have_names_of_their_own(reports):
    for report in reports.values():
        names = [(figure.chart, figure.key) for figure in figures_of(report)]
        assert len(set(names)) == len(names)


def test_data_are_finite_and_the_reports_own(figures):
    for figure, report in figures:
        known = {value for _, value in walk(report) if is_number(value)} | {0.0}
        for path, value in walk(figure.data):
            assert value is None or isinstance(value, str | int | float), path
            if is_number(value) and path.rsplit("/", 1)[1] not in OF_THE_PICTURE:
                assert math.isfinite(value)
                assert value in known, (figure.chart, figure.key, path, value)


def test_cells_point_at_their_value_in_the_report(figures):
    for figure, report in figures:
        found = dict(walk(report))
        rows = list(figure.table.cells())
        assert rows
        pointed = [cell for row in rows for cell in row if cell.path is not None]
        assert pointed
        for cell in pointed:
            assert found[cell.path] == cell.value, (figure.chart, cell.path)


def test_groups_without_a_sample_are_not_drawn(reports):
    report = copy.deepcopy(reports["one"])
    drawn = {"odds_ratio": ["bins"], "reliability": ["before", "after"], "classes": ["classes"]}
    counts = {}
    for k, event in report["events"].items():
        served = event["measures"][event["served"]]
        groups = served["reliability"] | {"bins": served["bins"]}
        for name in chain(*drawn.values()):
            groups[name][0] |= {"count": 0, "hits": 0}
            counts[k, name] = [row["count"] for row in groups[name]]
    for chart, names in drawn.items():
        for figure in CHARTS[chart].figures(report):
            of_groups = [count for name in names for count in counts[figure.key, name]]
            assert len(figure.data["rows"]) == np.count_nonzero(of_groups) < len(of_groups)


def test_percentages_are_written_one_way(reports, pictures):
    """``95 %``, in all sentences and on all axes."""
    texts = [value for report in reports.values() for _, value in walk(report)]
    shown = [text for text in texts if isinstance(text, str) and "%" in text]
    shown += [
        text
        for _, picture in pictures
        for text in ET.fromstring(picture).itertext()  # noqa: S314 - our own
        if "%" in text
    ]
    assert len(shown) > 100
    assert [text for text in shown if re.search(r"\S%", text)] == []


def test_classes_without_any_sample_have_an_empty_chart(reports):
    report = json.loads(json.dumps(reports["one"]))
    for event in report["events"].values():
        for row in event["measures"][event["served"]]["reliability"]["classes"]:
            row["count"] = 0
    figures = CHARTS["classes"].figures(report)
    assert [figure.data["rows"] for figure in figures] == [[], []]
    assert all("no predicted class has samples" in figure.title for figure in figures)


def test_titles_and_cards_name_the_same_calibration_error(reports):
    report = reports["one"]
    for figure in CHARTS["before_after"].figures(report):
        for cells in figure.table.cells():
            at = f"/events/{figure.key}/figures/calibration_error"
            assert [cell.path for cell in cells[1:3]] == [f"{at}/raw/mean", f"{at}/served/mean"]
    for figure in CHARTS["loss_scatter"].figures(report):
        detection = report["events"][figure.key]["figures"]["error_detection"]["served"]["mean"]
        assert f"{percent(detection)} of pairs" in figure.title


def test_a_report_without_what_is_drawn_has_fewer_figures(reports):
    """Calibrations of earlier versions, and imported ones, keep no reliability and no curves."""
    report = json.loads(json.dumps(reports["one"])) | {"evaluations": [], "model_scores": {}}
    for event in report["events"].values():
        event["comparison"] = []
        event["confusion"] = None
        event["baselines"] = {}
        event["figures"]["calibration_error"] = {"raw": None, "served": None}
        event["figures"]["error_detection"]["served"] = None
        for found in event["measures"].values():
            found.pop("reliability")
            found["curves"], found["scores"], found["evaluation"] = {}, {}, None
    assert {figure.chart for figure in figures_of(report)} == {"odds_ratio"}


def test_pictures_are_xml_with_words_and_nothing_that_runs_or_loads(pictures):
    for figure, picture in pictures:
        root = ET.fromstring(picture)  # noqa: S314 -- it is what is to be shown
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title").text == figure.title
        assert root.find(f"{SVG}desc").text == figure.note
        assert root.get("aria-labelledby").split() == [
            root.find(f"{SVG}title").get("id"),
            root.find(f"{SVG}desc").get("id"),
        ]
        for element in root.iter():
            assert element.tag.removeprefix(SVG) in {
                *("svg", "title", "desc", "g", "path", "text", "use", "defs", "line", "rect"),
                *("clipPath", "tspan"),
            }, element.tag
            for name, value in element.attrib.items():
                assert name != "style"  # pages forbid it
                assert not name.startswith("on")
                assert not name.endswith("href") or value.startswith("#")
                assert not any(odd in value for odd in ("NaN", "Infinity", "undefined", "url(h"))


def test_pictures_are_small_and_as_wide_as_a_telephone(pictures):
    for figure, picture in pictures:
        assert len(picture.encode()) < MOST_BYTES, (figure.chart, figure.key)
        assert float(ET.fromstring(picture).get("width")) <= 390 - 2 * 16  # noqa: S314


def test_ids_are_told_apart_on_one_page(pictures):
    ids = [
        found
        for picture in {picture for _, picture in pictures}
        for element in ET.fromstring(picture).iter()  # noqa: S314
        if (found := element.get("id")) is not None and not found.startswith("clip")
    ]
    assert len(set(ids)) == len(ids)


def test_names_of_strangers_are_text(pictures):
    shown = {
        text
        for _, picture in pictures
        for element in ET.fromstring(picture).iter(f"{SVG}text")  # noqa: S314
        for text in element.itertext()
    }
    classes = " ".join(shown)
    for name in HOSTILE[1:4]:
        assert name in classes
    assert f"{HOSTILE[4][:39]}…" in classes
    assert any("<script>" in text for text in shown)
    assert not any("<script" in picture for _, picture in pictures)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_painted_pictures_name_no_variable(pictures, theme):
    for _, picture in pictures:
        assert "var(" not in painted(picture, theme)
        assert PALETTE["ink"][theme == "dark"] in painted(picture, theme)


def test_pictures_name_the_colours_of_the_palette(pictures):
    assert {name for _, svg in pictures for name in PALETTE if f"--chart-{name})" in svg} >= {
        *("ink", "muted", "grid", "after", "before", "third", "band", "known"),
    }


@pytest.mark.parametrize("place", [0, 1])
def test_colours_stand_out_from_the_ground(place):
    ground = PALETTE["ground"][place]
    for name in ("ink", "muted"):
        assert contrast(PALETTE[name][place], ground) >= 4.5, name
    for name in ("after", "before", "third", "known"):
        assert contrast(PALETTE[name][place], ground) >= 3.0, name


def contrast(one, other):
    """WCAG 2.2: the ratio of relative luminances."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_large_report_stays_small(reports, renderer):
    """As of 50,000 samples: bins, classes and points as many as are ever drawn."""
    report = json.loads(json.dumps(reports["half"]))
    for event in report["events"].values():
        served = event["measures"][event["served"]]
        served["bins"] = [served["bins"][0]] * 100
        known = served["reliability"]
        for side, rows in (("before", 15), ("after", 100), ("classes", 1000)):
            known[side] = [known[side][0]] * rows
        for outcome in ("hit", "top5_hit", "miss"):
            drawn = [0.00012345 * at for at in range(200)]
            served["curves"]["scatter"][outcome] |= {"uncertainty": drawn, "loss": drawn}
        event["comparison"] = event["comparison"] * 2
    drawn = renderer.draw(figures_of(report))
    assert None not in drawn
    assert sum(len(picture.encode()) for picture in drawn) < 500_000


def test_what_a_spec_would_load_is_not_loaded():
    source = {"data": {"url": "http://127.0.0.1:9/rows.json"}, "mark": "point"}
    vega = vega_process.vl_convert.vegalite_to_vega(source)
    with pytest.raises(ValueError, match=r"127\.0\.0\.1"):
        vega_process.vl_convert.vega_to_svg(vega, allowed_base_urls=[])


def test_the_style_sheet_of_pages_has_the_colours_of_the_palette():
    light, dark = SHEET.read_text(encoding="utf-8").split("@media screen", 1)
    for theme, text in ((0, light), (1, dark)):
        found = dict(re.findall(r"--chart-(\w+): (#\w+);", text))
        assert found == {name: pair[theme] for name, pair in PALETTE.items()}
