"""What holds for each figure, and for charts of reports that lack something."""

import copy
import html
import json
import math
import re
import xml.etree.ElementTree as ET
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from page_visitor import elements, numbers_of, pointed_to, text_of
from report_scenarios import CLASSES

import service.reports.charts as charts_package
from service.reports.charts import vega_process
from service.reports.charts.figure import figure_html
from service.reports.charts.palette import PALETTE, painted
from service.reports.charts.registry import CHARTS, figures_of, render_figures
from service.web.static_files import FOLDER

SPECS = Path(charts_package.__file__).parent / "specs"
OF_THE_PICTURE = {"_bin", "_place", "margin", "place"}  # where a row or its bar is drawn
MOST_BYTES = 60_000
WIDEST = 390 - 2 * 16  # on a telephone
SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "desc", "g", "path", "text", "use", "defs", "line", "rect", "clipPath"}
TAGS |= {"tspan"}


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


def texts_of(picture):
    return list(ET.fromstring(picture).itertext())  # noqa: S314 - our own


@pytest.mark.parametrize("name", CHARTS)
def test_data_of_a_figure_are_finite_and_the_reports_own(figures, name):
    own = [(figure, report) for figure, report in figures if figure.chart == name]
    assert own
    keys = [figure.key for figure, report in own if report is own[0][1]]
    assert len({*keys}) == len(keys)
    for figure, report in own:
        values = dict(walk(report))
        known = {value for value in values.values() if is_number(value)} | {0.0}
        for path, value in walk(figure.data):
            assert value is None or isinstance(value, str | int | float), path
            if is_number(value) and path.rsplit("/", 1)[1] not in OF_THE_PICTURE:
                assert math.isfinite(value)
                assert value in known, (figure.key, path, value)
        cells = [cell for row in figure.table.cells() for cell in row if cell.path is not None]
        assert cells
        assert [cell for cell in cells if values[cell.path] != cell.value] == []
        # Without a picture there are words and numbers.
        markup = str(figure_html(figure, None))
        assert "svg" not in {tag for tag, _ in elements(markup)}
        assert figure.title in html.unescape(text_of(markup))
        for _, path, value in numbers_of(markup):
            assert pointed_to(report, path) == json.loads(value)


@pytest.mark.parametrize("name", CHARTS)
def test_a_picture_is_small_xml_with_words_and_nothing_that_runs_or_loads(pictures, name):
    for figure, picture in pictures:
        if figure.chart != name:
            continue
        root = ET.fromstring(picture)  # noqa: S314 -- it is what is to be shown
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert (title.text, description.text) == (figure.title, figure.note)
        assert root.get("aria-labelledby").split() == [title.get("id"), description.get("id")]
        assert float(root.get("width")) <= WIDEST
        assert len(picture.encode()) < MOST_BYTES
        for element in root.iter():
            assert element.tag.removeprefix(SVG) in TAGS, element.tag
            for attribute, value in element.attrib.items():
                assert attribute != "style"  # pages forbid it
                assert not attribute.startswith("on")
                assert not attribute.endswith("href") or value.startswith("#")
                assert not any(odd in value for odd in ("NaN", "Infinity", "undefined", "url(h"))
        assert [text for text in texts_of(picture) if re.search(r"\S%", text)] == []
        for theme in ("light", "dark"):
            assert "var(" not in painted(picture, theme)
            assert PALETTE["ink"][theme == "dark"] in painted(picture, theme)


def test_pictures_of_a_page_share_no_ids_and_show_names_as_text(pictures):
    drawn = {picture for _, picture in pictures}
    names = [name for picture in drawn for name in re.findall(r' id="([^"]+)"', picture)]
    ids = [name for name in names if not name.startswith("clip")]
    assert len(set(ids)) == len(ids)
    texts = " ".join(text for picture in drawn for text in texts_of(picture))
    for name in (*CLASSES[:2], *CLASSES[3:5], f"{CLASSES[5][:39]}…"):
        assert name in texts
    assert not any("<script" in picture for picture in drawn)
    whole = "".join(drawn)
    for name in ("ink", "muted", "grid", "after", "before", "third", "band", "known"):
        assert f"--chart-{name})" in whole


def test_rendered_figures_are_found_by_chart_and_key(reports, renderer):
    drawn = render_figures(renderer, reports["one"])
    markup = str(drawn("classes", "1")) + str(drawn.all_of("histogram"))
    assert "script" not in {tag for tag, _ in elements(markup)}
    assert CLASSES[0] in html.unescape(text_of(markup))
    assert str(drawn("reliability", "3")) == str(drawn.all_of("comparison")) == ""


def test_specs_are_those_of_charts_and_load_nothing():
    assert {path.stem for path in SPECS.iterdir()} == {*CHARTS, "config"}
    for name in CHARTS:
        for path, value in walk(json.loads((SPECS / f"{name}.json").read_text())):
            assert not path.endswith("/url"), path
            assert "://" not in str(value) or path == "/$schema", path
    source = {"data": {"url": "http://127.0.0.1:9/rows.json"}, "mark": "point"}
    vega = vega_process.vl_convert.vegalite_to_vega(source)
    with pytest.raises(ValueError, match=r"127\.0\.0\.1"):
        vega_process.vl_convert.vega_to_svg(vega, allowed_base_urls=[])


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
    for event in report["events"].values():
        for row in event["measures"][event["served"]]["reliability"]["classes"]:
            row["count"] = 0
    assert [figure.data["rows"] for figure in CHARTS["classes"].figures(report)] == [[], []]


def test_a_report_without_what_is_drawn_has_fewer_figures(reports):
    """Calibrations of earlier versions, and imported ones, keep no reliability and no curves."""
    report = copy.deepcopy(reports["one"]) | {"evaluations": [], "model_scores": {}}
    for event in report["events"].values():
        event |= {"comparison": [], "confusion": None, "baselines": {}}
        event["figures"]["calibration_error"] = {"raw": None, "served": None}
        event["figures"]["error_detection"]["served"] = None
        for table in event["measures"].values():
            table.pop("reliability")
            table["curves"], table["scores"], table["evaluation"] = {}, {}, None
    assert {figure.chart for figure in figures_of(report)} == {"odds_ratio"}


def event_of(report):
    event = report["events"]["1"]
    return event, event["measures"][event["served"]]


def test_the_axis_of_error_rates_holds_the_interval_of_a_set_without_errors(reports) -> None:
    report = copy.deepcopy(reports["one"])
    _, table = event_of(report)
    band = {"lower": [0, 0], "upper": [0.22, 0.116], "accepted": [15, 30], "level": 0.95}
    curve = {"coverage": [0.5, 1.0], "risk": [0, 0], "threshold": [1, 2]}
    table |= {"curves": table["curves"] | {"risk_coverage": curve, "risk_band": band}}
    table["selective"] = []
    (figure,) = [f for f in CHARTS["risk_coverage"].figures(report) if f.key == "1"]
    assert figure.parameters["most"] > 0.116


def test_titles_follow_from_the_numbers(reports, golden) -> None:
    """Of charts of few samples, few errors or few hits, and of frequent errors."""
    report, titles = copy.deepcopy(reports["half"]), []
    event, _ = event_of(report)
    report["provenance"]["config"]["classes"] = list("abcdefghij")
    for design, threshold, counts in (
        *(([], 0.1, counts) for counts in ([3, 2], [3, 3, 1], [1], [1, 1], [])),
        ([], None, []),
        (["weight"], 0.1, [3, 2]),
    ):
        classes = list(range(len(counts) + 1))
        errors = [{"label": 0, "predicted": at + 1, "count": n} for at, n in enumerate(counts)]
        numbers = {"threshold": threshold, "n_accepted": 9, "n_errors": sum(counts)}
        matrix = {"classes": classes, "counts": [[0] * len(classes) for _ in classes]}
        event["confusion"] = numbers | matrix | {"pairs": errors}
        report["provenance"]["data"]["design"] = design
        (figure,) = CHARTS["confusion"].figures(report)
        titles.append(f"errors {counts}, threshold {threshold}, {design}")
        titles.append(f"{figure.title}: {figure.note}")
    event["figures"]["accuracy"]["value"] = 0.001
    (figure,) = CHARTS["before_after"].figures(report)
    titles.append(f"a useless model\n{re.sub(r'[.0-9]+ %', '# %', figure.title)}")
    golden("chart-titles.txt", "\n".join(titles))


def test_a_large_report_stays_small(reports, renderer):
    """As of 50,000 samples: bins, classes and points as many as are ever drawn."""
    report = copy.deepcopy(reports["half"])
    event, served = event_of(report)
    served["bins"] = [served["bins"][0]] * 100
    for side, rows in (("before", 15), ("after", 100), ("classes", 1000)):
        served["reliability"][side] = [served["reliability"][side][0]] * rows
    for outcome in ("hit", "top5_hit", "miss"):
        drawn = [0.00012345 * at for at in range(200)]
        served["curves"]["scatter"][outcome] |= {"uncertainty": drawn, "loss": drawn}
    event["comparison"] = event["comparison"] * 2
    pictures = renderer.draw(figures_of(report))
    assert None not in pictures
    assert sum(len(picture.encode()) for picture in pictures) < 300_000


SERIES = ("after", "before", "third", "known")


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_stand_out_and_are_those_of_the_style_sheet(theme):
    ground = PALETTE["ground"][theme]
    least_contrast = {"ink": 4.5, "muted": 4.5} | dict.fromkeys(SERIES, 3)
    for name, least in least_contrast.items():
        assert contrast(PALETTE[name][theme], ground) >= least, name
    text = (FOLDER / "charts.css").read_text(encoding="utf-8").split("@media screen", 1)[theme]
    colours = dict(re.findall(r"--chart-(\w+): (#\w+);", text))
    assert colours == {name: pair[theme] for name, pair in PALETTE.items()}


def contrast(one, other):
    """WCAG 2.2: the ratio of relative luminances."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
