"""All charts by name, and the rendered figures of a report."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from howsure.report.report import Report
from service.reports.charts.bins import (
    LOSS_SCATTER,
    ODDS_RATIO,
    odds_ratio_figures,
    scatter_figures,
)
from service.reports.charts.confusion import CONFUSION, confusion_figures
from service.reports.charts.differences import (
    COMPARISON,
    MEASURES,
    comparison_figures,
    measure_figures,
)
from service.reports.charts.figure import Figure, figure_html
from service.reports.charts.further_sets import (
    ABOVE_CONFIDENCE,
    HISTOGRAM,
    above_confidence_figures,
    histogram_figures,
)
from service.reports.charts.reliability import (
    BEFORE_AFTER,
    CLASSES,
    CONFIDENCE,
    RELIABILITY,
    before_after_figures,
    class_figures,
    confidence_figures,
    reliability_figures,
)
from service.reports.charts.thresholds import RISK_COVERAGE, risk_coverage_figures
from service.reports.comparison.comparisons import Comparisons


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    name : str
    figures : callable
        From a report to its figures; none if the report lacks the data.
    """

    name: str
    figures: Callable[[Report], Sequence[Figure]]


CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in (
        Chart(BEFORE_AFTER, before_after_figures),
        Chart(RELIABILITY, reliability_figures),
        Chart(CONFIDENCE, confidence_figures),
        Chart(CLASSES, class_figures),
        Chart(CONFUSION, confusion_figures),
        Chart(ODDS_RATIO, odds_ratio_figures),
        Chart(LOSS_SCATTER, scatter_figures),
        Chart(RISK_COVERAGE, risk_coverage_figures),
        Chart(MEASURES, measure_figures),
        Chart(HISTOGRAM, histogram_figures),
        Chart(ABOVE_CONFIDENCE, above_confidence_figures),
    )
}


def figures_of(report: Report | Comparisons) -> list[Figure]:
    """Return all figures of a report of one calibration or of several."""
    if isinstance(report, Comparisons):
        return comparison_figures(report)
    return [figure for chart in CHARTS.values() for figure in chart.figures(report)]


class RenderedFigures:
    """Figures as HTML, by chart and key; empty if the report has no such figure.

    Templates place a figure with ``{{ chart("reliability", "1") }}``.
    """

    def __init__(self, figures: Mapping[tuple[str, str], Markup]) -> None:
        self._figures = figures

    def __call__(self, chart: str, key: str) -> Markup:
        """Return one figure."""
        return self._figures.get((chart, key), Markup())

    def all_of(self, chart: str) -> Markup:
        """Return all figures of a chart, in the order of the report."""
        return Markup().join(html for (name, _), html in self._figures.items() if name == chart)


def render_figures(
    report: Report | Comparisons,
    charts: Collection[str] = (*CHARTS, COMPARISON),
    *,
    address: str | None = None,
) -> RenderedFigures:
    """Draw the figures of a report that belong to ``charts``.

    ``address`` is the base URL of the figures as files; None in a saved report.
    """
    return RenderedFigures(
        {
            (figure.chart, figure.key): figure_html(figure, address)
            for figure in figures_of(report)
            if figure.chart in charts
        }
    )
