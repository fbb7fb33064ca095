"""Figures in pages: what is drawn, and a table whose every number tells where it is from."""

import json
from html.parser import HTMLParser

import pytest
from chart_reports import HOSTILE

from service.reports.charts.figure import figure_html
from service.reports.charts.registry import figures_of, render_figures


class Numbers(HTMLParser):
    """Collects what pages say of their numbers, the texts, and the elements."""

    def __init__(self, text):
        super().__init__()
        self.numbers, self.tags, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        if "data-path" in given:
            self.numbers.append((given["data-path"], json.loads(given["data-value"])))

    def handle_data(self, data):
        self.texts.append(data)


def at(report, path):
    found = report
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found


@pytest.fixture(scope="module")
def drawn(reports, renderer):
    return render_figures(renderer, reports["one"])


def test_numbers_are_those_of_the_report(reports, drawn):
    for figure in figures_of(reports["one"]):
        page = Numbers(str(drawn(figure.chart, figure.key)))
        assert page.numbers
        for path, value in page.numbers:
            assert at(reports["one"], path) == value


def test_names_are_text(drawn):
    page = Numbers(str(drawn("classes", "1")) + str(drawn.all_of("histogram")))
    assert "script" not in page.tags
    assert HOSTILE[1] in page.texts
    assert HOSTILE[2] in page.texts
    assert any(HOSTILE[0] in text for text in page.texts)


def test_what_is_not_there_is_nothing(drawn):
    assert str(drawn("reliability", "3")) == ""
    assert str(drawn.all_of("comparison")) == ""


def test_without_a_picture_there_are_words_and_numbers(reports):
    figure = figures_of(reports["one"])[0]
    page = Numbers(str(figure_html(figure, None)))
    assert "svg" not in page.tags
    assert figure.title in page.texts
    assert page.numbers
