"""Titles and axes of charts of calibrations with few samples, few errors or few hits."""

import copy
import json
from typing import Any

import pytest

from service.http.openapi.examples import FOLDER
from service.reports.charts import text
from service.reports.charts.confusion import confusion_figures
from service.reports.charts.reliability import before_after_figures
from service.reports.charts.thresholds import risk_coverage_figures


@pytest.fixture
def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "report.json").read_text())
    return copy.deepcopy(found)


def test_the_axis_of_error_rates_holds_the_interval_of_a_set_without_errors(report) -> None:
    event = report["events"]["1"]
    table = event["measures"][event["served"]]
    table["curves"]["risk_coverage"] = {"coverage": [0.5, 1.0], "risk": [0, 0], "threshold": [1, 2]}
    table["curves"]["risk_band"] = {
        "lower": [0, 0],
        "upper": [0.22, 0.116],
        "accepted": [15, 30],
        "level": 0.95,
    }
    table["selective"] = []
    (figure,) = [f for f in risk_coverage_figures(report) if f.key == "1"]
    assert figure.parameters["most"] > 0.116


def test_the_error_of_a_useless_model_stands_beside_its_accuracy(report) -> None:
    figures = report["events"]["1"]["figures"]
    figures["accuracy"]["value"] = 0.001
    (figure,) = [f for f in before_after_figures(report) if f.key == "1"]
    assert figure.title.endswith(f"; {text.percent(0.001)} of answers are correct")


@pytest.mark.parametrize(
    ("threshold", "said"), [(None, "no answer of the"), (0.1, "no accepted answer of the")]
)
def test_nothing_is_called_accepted_without_a_threshold(report, threshold, said) -> None:
    report["events"]["1"]["confusion"] = {
        "threshold": threshold,
        "n_accepted": 2,
        "n_errors": 0,
        "classes": [0, 1],
        "counts": [[1, 0], [0, 1]],
        "pairs": [],
    }
    (figure,) = confusion_figures(report)
    assert said in figure.title
