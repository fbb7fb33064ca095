"""An event and a report, from the parts that are stored or were just fitted."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from howsure.report.event import Event, FittedEvent
from howsure.report.figures import Cost, compare_measures, event_figures
from howsure.report.report import Report
from howsure.report.words.learned import assurance
from howsure.report.words.summary import summarise
from howsure.statistics.model_scores import ModelScores


def assembled_event(
    k: str,
    fitted: FittedEvent,
    model_scores: Mapping[str, ModelScores],
    config: Mapping[str, Any],
    costs: Mapping[str, Cost],
) -> Event:
    """Return an event with its figures and the comparison of its measures.

    ``config`` is that of the calibration: ``folds``, ``measures`` and ``serve``. ``costs`` are
    those of the measures.
    """
    served, folds = fitted.served, config.get("folds", 0)
    return Event(
        **asdict(fitted),
        assurance=assurance(served, k, config),
        comparison=compare_measures(fitted.measures, served, costs, folds),
        figures=event_figures(k, fitted.measures[served], fitted.baselines, model_scores),
    )


def with_summary(report: Report) -> Report:
    """Return a report with its summary."""
    return replace(report, summary=summarise(report))
