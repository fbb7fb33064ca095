"""What holds for each figure, and for charts of reports that lack something."""

import copy
import html
import json
import re
import xml.etree.ElementTree as ET

import pytest
from page_visitor import elements, numbers_of, pointed_to, text_of
from report_documents import typed
from report_scenarios import CLASSES

from howsure.figures.charts import CHARTS
from howsure.pictures.palette import PALETTE, paint
from service.reports.charts.comparison import COMPARISON
from service.reports.charts.figure_html import figure_html
from service.reports.charts.model_size import MODEL_SIZE, SCORES, model_size_figures
from service.reports.charts.registry import (
    CHARTS_OF_MEASURES,
    CHARTS_OF_REPORT,
    figures_of,
    render_figures,
)
from service.web.static_files import FOLDER

MOST_BYTES = 30_000
WIDEST = 390 - 2 * 16  # on a telephone
SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "desc", "g", "path", "text", "rect"}


def texts_of(picture):
    return list(ET.fromstring(picture).itertext())


@pytest.mark.parametrize("name", [*CHARTS, COMPARISON, MODEL_SIZE])
def test_numbers_of_a_figure_are_the_reports_own(figures, name):
    own = [(figure, report) for figure, report in figures if figure.chart == name]
    assert own
    keys = [figure.key for figure, report in own if report is own[0][1]]
    assert len({*keys}) == len(keys)
    for figure, report in own:
        cells = [cell for row in figure.table.cells() for cell in row if cell.path is not None]
        assert cells
        assert all(pointed_to(report, cell.path) == cell.value for cell in cells)
        # Beside the picture there are words and numbers.
        markup = re.sub(r"<svg.*</svg>", "", str(figure_html(figure)))
        assert figure.title in html.unescape(text_of(markup))
        for _, path, value in numbers_of(markup):
            assert pointed_to(report, path) == json.loads(value)


@pytest.mark.parametrize("name", [*CHARTS, COMPARISON, MODEL_SIZE])
def test_a_picture_is_small_xml_with_words_and_nothing_that_runs_or_loads(pictures, name):
    for figure, picture in pictures:
        if figure.chart != name:
            continue
        root = ET.fromstring(picture)
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
                assert not attribute.endswith("href")
                assert not re.search(r"nan|inf|None|url\(", value), (attribute, value)
        assert [text for text in texts_of(picture) if re.search(r"\S%", text)] == []
        for theme in ("light", "dark"):
            assert "var(" not in paint(picture, theme)
            assert PALETTE["muted"][theme == "dark"] in paint(picture, theme)


def test_a_file_has_title_and_note_above_its_axes(figures):
    for figure, _ in figures:
        root = ET.fromstring(figure.svg(has_heading=True))
        words = " ".join(line.text for line in root.findall(f"{SVG}text"))
        assert words.split() == f"{figure.title} {figure.note}".split()


def test_pictures_of_a_page_share_no_ids_and_show_names_as_text(pictures, reports):
    drawn = figures_of(typed(reports["one"]))
    page = [picture for one in drawn for picture in (one.svg(), one.wide_svg()) if picture]
    ids = [name for picture in page for name in re.findall(r' id="([^"]+)"', picture)]
    assert len(set(ids)) == len(ids) == 2 * len(page)
    texts = " ".join(text for _, picture in pictures for text in texts_of(picture))
    for name in (*CLASSES[:2], *CLASSES[3:5], f"{CLASSES[5][:9]}"):
        assert name in texts
    assert not any("<script" in picture for _, picture in pictures)


def test_rendered_figures_are_found_by_chart_and_key(reports):
    drawn = render_figures(typed(reports["one"]))
    markup = str(drawn("classes", "1")) + str(drawn.all_of("histogram"))
    assert "script" not in {tag for tag, _ in elements(markup)}
    assert CLASSES[0] in html.unescape(text_of(markup))
    assert str(drawn("reliability", "3")) == str(drawn.all_of("comparison")) == ""


def test_groups_without_a_sample_have_no_mark(reports):
    """Empty groups leave the picture as a report without them does."""
    report = copy.deepcopy(reports["one"])
    without = copy.deepcopy(report)
    for one in (report, without):
        for event in one["events"].values():
            served = event["measures"][event["served"]]
            groups = served["reliability"] | {"bins": served["bins"]}
            for name in ("bins", "before", "after", "classes"):
                groups[name][-1] |= {"count": 0, "hits": 0}
                if one is without:
                    groups[name].pop()
    for chart in ("odds_ratio", "reliability", "classes"):
        figures = [CHARTS[chart].figures(typed(one)) for one in (report, without)]
        for figure, other in zip(*figures, strict=True):
            assert len(figure.table.rows) == len(other.table.rows)
            marks = [re.sub(r"<(title|desc).*?</\1>", "", f.svg()) for f in (figure, other)]
            assert marks[0] == marks[1]


def test_a_report_without_what_is_drawn_has_fewer_figures(reports):
    """Calibrations of earlier versions, and imported ones, keep no reliability and no curves."""
    report = copy.deepcopy(reports["one"]) | {"evaluations": [], "model_scores": {}}
    for event in report["events"].values():
        event |= {"comparison": [], "confusion": None, "baselines": {}}
        event["figures"]["calibration_error"] |= {"raw": None, "served": None}
        event["figures"]["error_detection"]["served"] = None
        for table in event["measures"].values():
            table.pop("reliability")
            table["curves"], table["scores"], table["evaluation"] = {}, {}, None
    assert {figure.chart for figure in figures_of(typed(report))} == {
        "odds_ratio",
        "measure_odds",
        "outcomes",
    }


def test_reports_of_earlier_versions_have_fewer_parts(reports):
    """They have neither diagrams by choice of bins nor errors with the label in the Top 5."""
    report = copy.deepcopy(reports["one"])
    _, served = event_of(report)
    n_errors = sum(one["count"] - one["hits"] for one in served["bins"])
    assert 0 < sum(served["top5_hits"]) <= n_errors
    for event in report["events"].values():
        for table in event["measures"].values():
            table.pop("top5_hits")
            if table["reliability"]:
                table["reliability"].pop("diagrams")
    figures = figures_of(typed(report))
    assert "reliability_diagrams" not in {figure.chart for figure in figures}
    (figure,) = [one for one in figures if one.name == "outcomes-1"]
    assert [column.heading for column in figure.table.columns][2:] == ["wrong", "correct"]
    assert sum(row[2] for row in figure.table.rows) == n_errors


def test_only_figures_of_the_charts_that_are_named_are_made(reports):
    figures = figures_of(typed(reports["one"]), ("measure_odds",))
    assert [figure.name for figure in figures] == ["measure_odds-1", "measure_odds-5"]


def event_of(report):
    event = report["events"]["1"]
    return event, event["measures"][event["served"]]


def drawn_bound(report) -> bool:
    (figure,) = [f for f in CHARTS["risk_coverage"].figures(typed(report)) if f.key == "1"]
    return "tested bound" in texts_of(figure.svg())


@pytest.mark.parametrize(
    ("chart", "height"), [("roc", "true_positive_rate"), ("precision_recall", "precision")]
)
def test_a_curve_begins_at_its_first_defined_point(reports, chart, height):
    """Where nothing is called an error, precision is undefined: it is not 0."""
    report = copy.deepcopy(reports["half"])
    without = copy.deepcopy(report)
    event_of(report)[1]["curves"][chart][height][0] = None
    for values in event_of(without)[1]["curves"][chart].values():
        del values[0]
    pictures = []
    for one in (report, without):
        (figure,) = (f for f in CHARTS[chart].figures(typed(one)) if f.key == "1")
        pictures.append(figure.svg())
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize(("chart", "score"), [("roc", "auroc"), ("precision_recall", "aupr")])
def test_a_figure_in_a_title_is_said_to_be_cross_validated(reports, chart, score):
    report = copy.deepcopy(reports["half"])
    event, table = event_of(report)
    table["scores"][score]["mean"] = 0.375
    figure = CHARTS[chart].figures(typed(report))[0]
    assert "37.5\u00a0% " in figure.title
    assert figure.note.endswith(f"({score.upper()}), cross-validated.")
    table["scores"].clear()
    figure = CHARTS[chart].figures(typed(report))[0]
    assert figure.title == f"Top-1: detection of errors by {event['served']}"
    assert "cross-validated" not in figure.note


def test_the_bound_is_drawn_where_the_test_is_exact(reports):
    report = copy.deepcopy(reports["half"])
    event_of(report)[0]["assurance"] = "certified"
    assert drawn_bound(report)
    report["provenance"]["data"]["design"] = ["weight"]
    assert not drawn_bound(report)


def test_scores_are_drawn_against_the_sizes_of_models_that_differ(reports):
    assert model_size_figures(typed(reports["two"])) == []
    report = copy.deepcopy(reports["sizes"])
    models = [one["provenance"]["model"] for one in report["calibrations"]]
    judged = [one["events"]["1"] for one in report["comparisons"][0]["judged"]]
    for large, score in ((0, 0.2), (1, 0.2), (1, 0.1)):
        for at, model in enumerate(models):
            model["parameters"] = 3000 if at == large else 2000
            judged[at] |= dict.fromkeys(SCORES, score if at == large else 0.1)
        figures = model_size_figures(typed(report))
        assert [figure.key for figure in figures] == list(SCORES)
        trend = "rises with" if score == 0.2 else "does not follow"
        assert all(f"{trend} the size" in figure.title for figure in figures)
        rows = [[cell.value for cell in row] for row in figures[0].table.cells()]
        assert [size for _, size, _ in rows] == [model["parameters"] for model in models]
        assert "2\u00a0k" in texts_of(figures[0].svg())
    # The parameters of an ensemble are those of its first model, its bytes are of all.
    models[0]["members"] = [{"label": "a", "sha256": "0"}] * 2
    rows = [
        [cell.value for cell in row] for row in model_size_figures(typed(report))[0].table.cells()
    ]
    assert [size for _, size, _ in rows] == [model["bytes"] for model in models]
    judged[0]["aurc"] = None
    assert "aurc" not in [figure.key for figure in model_size_figures(typed(report))]
    models[0]["bytes"] = models[1]["bytes"]
    assert model_size_figures(typed(report)) == []


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
        numbers |= {"max_risk": None, "operating_point": None, "by_class": []}
        matrix = {"classes": classes, "counts": [[0] * len(classes) for _ in classes]}
        event["confusion"] = numbers | matrix | {"pairs": errors}
        report["provenance"]["data"]["design"] = design
        (figure,) = CHARTS["confusion"].figures(typed(report))
        titles.append(f"errors {counts}, threshold {threshold}, {design}")
        titles.append(f"{figure.title}: {figure.note}")
    shares = [{"n_samples": 99, "n_errors": n, "share": n / 99} for n in (9, 3)]
    for max_risk, lower in ((None, 0.04), (0.05, 0.04), (0.05, 0.06)):
        labelled, named = ({**one, "interval": [lower, 0.2]} for one in shares)
        worst = {"index": 2, "labelled": labelled, "named": named}
        event["confusion"] |= {"max_risk": max_risk, "by_class": [worst]}
        (figure,) = CHARTS["class_errors"].figures(typed(report))
        titles.append(f"errors by class, promised {max_risk}\n{figure.title}: {figure.note}")
    golden("chart-titles.txt", "\n".join(titles))


def test_a_large_report_stays_small(reports):
    """As of 50,000 samples: bins, classes and points as many as are ever drawn."""
    report = copy.deepcopy(reports["half"])
    event, served = event_of(report)
    served["bins"] = [served["bins"][0]] * 100
    for side, rows in (("before", 15), ("after", 100), ("classes", 1000)):
        served["reliability"][side] = [served["reliability"][side][0]] * rows
    most = {"equal_range_10": 10, "equal_range_50": 50, "equal_mass_50": 50, "equal_mass_100": 100}
    for kind, n_bins in {**most, "adaptive": 40}.items():
        for side in served["reliability"]["diagrams"][kind].values():
            numbers = [0.00123 * at for at in range(n_bins)]
            side |= {"count": [*range(1, n_bins + 1)], "hits": [*range(n_bins)], "said": numbers}
    for outcome in ("hit", "top5_hit", "miss"):
        drawn = [0.00012345 * at for at in range(200)]
        served["curves"]["scatter"][outcome] |= {"uncertainty": drawn, "loss": drawn}
    event["comparison"] = event["comparison"] * 2
    for charts in (CHARTS_OF_REPORT, CHARTS_OF_MEASURES):
        drawn = figures_of(typed(report), charts)
        assert sum(len(f"{one.svg()}{one.wide_svg()}".encode()) for one in drawn) < 200_000


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_stand_out_and_are_those_of_the_style_sheet(theme):
    ground = PALETTE["ground"][theme]
    texts = dict.fromkeys(("ink", "muted", "blue", "orange", "green", "red"), 4.5)
    for ink, least in {**texts, "grey": 3.0}.items():
        assert contrast(PALETTE[ink][theme], ground) >= least, ink
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
