"""Numbers, verdicts and cells of tables, as people and spreadsheets read them."""

import pytest

from howsure.numbers import short, signed
from howsure.report.words.verdict import verdict
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.measures import MULTI_PASS_MEASURES, OUTPUT, SINGLE_PASS_MEASURES, SUPPLIED
from service.reports.csv_table import csv_cell

NUMBERS = [
    *((None, "–"), (0.0, "0"), (0.009, "0.00900"), (53.04, "53.0"), (100.0, "100")),  # noqa: RUF001 - as it is printed
    *((57659.08, "57,659"), (2.318e-05, "2.32e-05")),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_three_figures_tell_small_numbers_apart(value: float | None, text: str) -> None:
    assert short(value) == text


DIFFERENCES = [(None, "–"), (0.0, "0"), (0.0038, "+0.00380"), (-0.5, "\u22120.500")]  # noqa: RUF001 - as it is printed


@pytest.mark.parametrize(("value", "text"), DIFFERENCES)
def test_differences_have_a_sign(value: float | None, text: str) -> None:
    assert signed(value) == text


MEANS = [
    *((0.0, 0.0, "nll", "same"), (0.23, 0.1, "nll", "tie"), (-0.23, 0.1, "nll", "tie")),
    *((0.24, 0.1, "nll", "worse"), (-0.24, 0.1, "brier", "better")),
    *((0.24, 0.1, "accuracy", "better"), (-0.24, 0.1, "accuracy", "worse")),
]


@pytest.mark.parametrize(("mean", "error", "score", "expected"), MEANS)
def test_beyond_chance_a_difference_is_no_tie(mean, error, score, expected) -> None:
    assert verdict(PairedDifference(mean, error, 9), score) == expected


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_what_begins_like_a_formula_is_a_text(text: str) -> None:
    assert csv_cell(text) == "'" + text.replace("\r", r"\r")


# Measures begin with words of ours: the tables of the report and of bins have no other texts.
MEASURES = [*SINGLE_PASS_MEASURES, *MULTI_PASS_MEASURES, f"{SUPPLIED}=1", f"{OUTPUT}=1"]


@pytest.mark.parametrize("value", ["a=1", "'=1", "", " =1", "7", -1.5, -1, None, True, *MEASURES])
def test_all_else_is_as_it_was(value: object) -> None:
    assert csv_cell(value) is value
