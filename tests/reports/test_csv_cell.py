"""Texts that spreadsheets would run, as cells."""

import pytest

from howsure.statistics.measures import MULTI_PASS_MEASURES, OUTPUT, SINGLE_PASS_MEASURES, SUPPLIED
from service.reports.csv_table import csv_cell


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_what_begins_like_a_formula_is_a_text(text: str) -> None:
    assert csv_cell(text) == "'" + text


@pytest.mark.parametrize("value", ["a=1", "'=1", "", " =1", "7", -1.5, -1, None, True])
def test_all_else_is_as_it_was(value: object) -> None:
    assert csv_cell(value) is value


def test_names_of_measures_begin_with_words_of_ours() -> None:
    """So the tables of the report and of bins, which have no other texts, are as they are."""
    for name in (*SINGLE_PASS_MEASURES, *MULTI_PASS_MEASURES, f"{SUPPLIED}=1", f"{OUTPUT}=1"):
        assert csv_cell(name) is name
