from typing import Any

import pytest
from report_documents import typed

from howsure.figures.figure import Figure
from service.reports.charts.registry import figures_of


@pytest.fixture(scope="session")
def reports(client, shelf) -> dict[str, Any]:
    """The report of a calibration with everything, of one without evaluation, and of two twice."""
    for name in ("pictures", "quick-digits", "small-digits", "versions"):
        shelf(name)
    references = {"one": "pictures@1", "half": "quick-digits", "two": ["versions@1", "versions@2"]}
    references["sizes"] = ["quick-digits", "small-digits"]
    return {
        kind: client.get("/report", params={"calibration": reference}).raise_for_status().json()
        for kind, reference in references.items()
    }


@pytest.fixture(scope="session")
def figures(reports: dict[str, Any]) -> list[tuple[Figure, dict[str, Any]]]:
    """Every figure of every report, with its report."""
    return [(figure, report) for report in reports.values() for figure in figures_of(typed(report))]


@pytest.fixture(scope="session")
def pictures(figures) -> list[tuple[Figure, str]]:
    """Every figure as a picture on a page."""
    return [(figure, figure.svg()) for figure, _ in figures]
