"""The charts of the pages and of the exports, by name: a file and a line here for each."""

from service.web.charts import (
    above_confidence,
    before_after,
    classes,
    comparison,
    histogram,
    loss_scatter,
    measures,
    odds_ratio,
    reliability,
    risk_coverage,
)
from service.web.charts.chart import Chart
from service.web.charts.figure import Figure, Report

__all__ = ["CHARTS", "Chart", "Figure", "figures_of"]

CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in (
        Chart(before_after.NAME, before_after.spec, before_after.figures),
        Chart(reliability.NAME, reliability.spec, reliability.figures),
        Chart(classes.NAME, classes.spec, classes.figures),
        Chart(odds_ratio.NAME, odds_ratio.spec, odds_ratio.figures),
        Chart(loss_scatter.NAME, loss_scatter.spec, loss_scatter.figures),
        Chart(risk_coverage.NAME, risk_coverage.spec, risk_coverage.figures),
        Chart(measures.NAME, measures.spec, measures.figures),
        Chart(histogram.NAME, histogram.spec, histogram.figures),
        Chart(above_confidence.NAME, above_confidence.spec, above_confidence.figures),
        Chart(comparison.NAME, comparison.spec, comparison.figures, of_several=True),
    )
}


def figures_of(report: Report) -> list[Figure]:
    """Return all figures of a report, that of one calibration or of several."""
    several = "comparisons" in report
    return [
        figure
        for chart in CHARTS.values()
        if chart.of_several == several
        for figure in chart.figures(report)
    ]
