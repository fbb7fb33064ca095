"""All charts of a report by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howsure.figures.bins import (
    LOSS_SCATTER,
    ODDS_RATIO,
    odds_ratio_figures,
    scatter_figures,
)
from howsure.figures.class_errors import CLASS_ERRORS, class_error_figures
from howsure.figures.confusion import CONFUSION, confusion_figures
from howsure.figures.detection import (
    PRECISION_RECALL,
    ROC,
    precision_recall_figures,
    roc_figures,
)
from howsure.figures.figure import Figure
from howsure.figures.further_sets import (
    ABOVE_CONFIDENCE,
    HISTOGRAM,
    above_confidence_figures,
    histogram_figures,
)
from howsure.figures.measures import MEASURES, measure_figures
from howsure.figures.reliability import (
    CLASSES,
    CONFIDENCE,
    RELIABILITY,
    class_figures,
    confidence_figures,
    reliability_figures,
)
from howsure.figures.stress import (
    STRESS_PROMISE,
    STRESS_SCORES,
    stress_promise_figures,
    stress_score_figures,
)
from howsure.figures.thresholds import RISK_COVERAGE, risk_coverage_figures
from howsure.report.report import Report


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
        Chart(RISK_COVERAGE, risk_coverage_figures),
        Chart(CLASS_ERRORS, class_error_figures),
        Chart(RELIABILITY, reliability_figures),
        Chart(CONFIDENCE, confidence_figures),
        Chart(CLASSES, class_figures),
        Chart(CONFUSION, confusion_figures),
        Chart(ODDS_RATIO, odds_ratio_figures),
        Chart(LOSS_SCATTER, scatter_figures),
        Chart(ROC, roc_figures),
        Chart(PRECISION_RECALL, precision_recall_figures),
        Chart(MEASURES, measure_figures),
        Chart(HISTOGRAM, histogram_figures),
        Chart(ABOVE_CONFIDENCE, above_confidence_figures),
        Chart(STRESS_SCORES, stress_score_figures),
        Chart(STRESS_PROMISE, stress_promise_figures),
    )
}


def report_figures(report: Report) -> list[Figure]:
    """Return all figures of a report."""
    return [figure for chart in CHARTS.values() for figure in chart.figures(report)]
