"""The rendered figures of a report of one calibration, or of several."""

from collections.abc import Collection, Mapping

from markupsafe import Markup

from howsure.figures.bins import MEASURE_ODDS, OUTCOMES
from howsure.figures.charts import CHARTS, report_figures
from howsure.figures.detection import PRECISION_RECALL, ROC
from howsure.figures.figure import Figure
from howsure.figures.measures import MEASURES
from howsure.figures.reliability_diagrams import RELIABILITY_DIAGRAMS
from howsure.figures.stress import STRESS_PROMISE, STRESS_SCORES
from howsure.report.report import Report
from service.reports.charts.comparison import COMPARISON, comparison_figures
from service.reports.charts.figure_html import figure_html
from service.reports.charts.model_size import MODEL_SIZE, model_size_figures
from service.reports.comparison.comparisons import Comparisons

# Of the page of measures and that of shift; all others are of the report's own page.
CHARTS_OF_DETAILS = (ROC, PRECISION_RECALL, MEASURE_ODDS, OUTCOMES, RELIABILITY_DIAGRAMS)
CHARTS_OF_MEASURES = (MEASURES, *CHARTS_OF_DETAILS)
CHARTS_OF_SHIFT = (STRESS_SCORES, STRESS_PROMISE)
CHARTS_OF_REPORT = tuple(
    name for name in CHARTS if name not in (*CHARTS_OF_DETAILS, *CHARTS_OF_SHIFT)
)


def figures_of(
    report: Report | Comparisons, charts: Collection[str] = tuple(CHARTS)
) -> list[Figure]:
    """Return the figures of a report of one calibration, of these charts, or of several."""
    if isinstance(report, Comparisons):
        return [*comparison_figures(report), *model_size_figures(report)]
    return report_figures(report, charts)


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
    charts: Collection[str] = (*CHARTS_OF_REPORT, COMPARISON, MODEL_SIZE),
    *,
    address: str | None = None,
) -> RenderedFigures:
    """Draw the figures of a report that belong to ``charts``.

    ``address`` is as of `figure_html`.
    """
    return RenderedFigures(
        {
            (figure.chart, figure.key): figure_html(figure, address)
            for figure in figures_of(report, charts)
            if figure.chart in charts
        }
    )
