"""All charts of a report by name."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from howsure.figures.bins import (
    LOSS_SCATTER,
    MEASURE_ODDS,
    ODDS_RATIO,
    OUTCOMES,
    measure_odds_figures,
    odds_ratio_figures,
    outcome_figures,
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
from howsure.figures.reliability_diagrams import (
    RELIABILITY_DIAGRAMS,
    reliability_diagram_figures,
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
        Chart(MEASURE_ODDS, measure_odds_figures),
        Chart(OUTCOMES, outcome_figures),
        Chart(RELIABILITY_DIAGRAMS, reliability_diagram_figures),
        Chart(HISTOGRAM, histogram_figures),
        Chart(ABOVE_CONFIDENCE, above_confidence_figures),
        Chart(STRESS_SCORES, stress_score_figures),
        Chart(STRESS_PROMISE, stress_promise_figures),
    )
}


def report_figures(report: Report, charts: Collection[str] = tuple(CHARTS)) -> list[Figure]:
    """Return the figures of a report that belong to ``charts``; by default all."""
    wanted = [chart for name, chart in CHARTS.items() if name in charts]
    return [figure for chart in wanted for figure in chart.figures(report)]
