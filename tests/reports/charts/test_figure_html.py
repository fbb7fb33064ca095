"""Figures in pages: what is drawn, and a table whose every number tells where it is from."""

import html
import json

import pytest
from chart_reports import HOSTILE
from page_visitor import elements, numbers_of, pointed_to, text_of

from service.reports.charts.figure import figure_html
from service.reports.charts.registry import figures_of, render_figures


@pytest.fixture(scope="module")
def drawn(reports, renderer):
    return render_figures(renderer, reports["one"])


def tags_of(markup):
    return {tag for tag, _ in elements(markup)}


def test_numbers_are_those_of_the_report(reports, drawn):
    for figure in figures_of(reports["one"]):
        numbers = numbers_of(str(drawn(figure.chart, figure.key)))
        assert numbers
        for _, path, value in numbers:
            assert pointed_to(reports["one"], path) == json.loads(value)


def test_names_are_text(drawn):
    markup = str(drawn("classes", "1")) + str(drawn.all_of("histogram"))
    assert "script" not in tags_of(markup)
    shown = html.unescape(text_of(markup))
    assert all(name in shown for name in HOSTILE[:3])


def test_what_is_not_there_is_nothing(drawn):
    assert str(drawn("reliability", "3")) == ""
    assert str(drawn.all_of("comparison")) == ""


def test_without_a_picture_there_are_words_and_numbers(reports):
    figure = figures_of(reports["one"])[0]
    markup = str(figure_html(figure, None))
    assert "svg" not in tags_of(markup)
    assert figure.title in html.unescape(text_of(markup))
    assert numbers_of(markup)
