from collections.abc import Iterator
from typing import Any

import pytest
from chart_reports import chart_reports

from service.reports.charts.drawing import Renderer
from service.reports.charts.figure import Figure
from service.reports.charts.registry import figures_of


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return chart_reports(tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="session")
def figures(reports: dict[str, Any]) -> list[tuple[Figure, dict[str, Any]]]:
    """Every figure of every report, with its report."""
    return [(figure, report) for report in reports.values() for figure in figures_of(report)]


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    found = Renderer()
    yield found
    found.close()


@pytest.fixture(scope="session")
def pictures(figures, renderer: Renderer) -> list[tuple[Figure, str]]:
    """Every figure, drawn once."""
    found = renderer.draw([figure for figure, _ in figures])
    assert all(picture is not None for picture in found)
    return [(figure, picture) for (figure, _), picture in zip(figures, found, strict=True)]
