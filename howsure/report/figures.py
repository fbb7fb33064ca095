"""The figures of an event, and its measures side by side."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from howsure.report.event import (
    CalibrationErrors,
    ComparedMeasure,
    ComparedScore,
    ErrorDetection,
    Figures,
    FigureScore,
    TestedRisk,
)
from howsure.report.further_sets import LEVEL, error_rate, share_of
from howsure.report.measure import Baseline, FoldScore, Measure, Method
from howsure.report.parts import Share
from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.model_scores import ModelScores
from howsure.statistics.selective import SelectiveResult

DETECTION, RAW = "auroc", "raw_softmax"
COMPARED = ("nll", "brier", "ece", "eor", "auroc", "aurc", "conditional_entropy")
OF_THE_TABLE = "eor"  # of the served table itself: no fold has it


class Cost(NamedTuple):
    """What an answer costs: runs of the model, and milliseconds per row (None: not measured)."""

    passes: int | None = None
    ms_per_row: float | None = None


def event_figures(
    k: str,
    served: Measure,
    baselines: Mapping[str, Baseline],
    model_scores: Mapping[str, ModelScores],
) -> Figures:
    """Return accuracy, calibration error, detection of errors and risk of an event.

    All but the risk are of the evaluation set if there is one. Otherwise the accuracy is that of
    the calibration set, and the calibration error and the detection of errors are cross-validated,
    with the standard deviation between folds. The risk is always of the calibration set, on
    which it was tested. Accuracy and risk have exact intervals.
    """
    is_judged = served.evaluation is not None
    scores = model_scores.get("evaluation" if is_judged else "calibration")
    raw = baselines.get(RAW)
    return Figures(
        set="evaluation" if is_judged else "calibration",
        level=LEVEL,
        accuracy=_accuracy(k, served, scores),
        calibration_error=CalibrationErrors(
            score=ERROR,
            raw=None if raw is None else _score(raw, ERROR),
            served=_score(served, ERROR),
        ),
        error_detection=ErrorDetection(score=DETECTION, served=_score(served, DETECTION)),
        risk=first_risk(served.selective),
    )


def _accuracy(k: str, served: Measure, scores: ModelScores | None) -> Share | None:
    if scores is None:  # of imported tables
        return share_of(sum(b.hits for b in served.bins), sum(b.count for b in served.bins))
    n, accuracy = scores.n_samples, scores.accuracy[int(k)]
    return share_of(round(accuracy * n), n, scores.effective.get(int(k)))


def _score(method: Method, name: str) -> FigureScore | None:
    """Return a score on the evaluation set, or else its mean over the folds."""
    if method.evaluation is not None:
        value = method.evaluation.get(name)
        return None if value is None else FigureScore(mean=value, std=None, folds=None)
    over = method.scores.get(name)
    if over is None or over.mean is None:
        return None
    return FigureScore(mean=over.mean, std=over.std, folds=over.folds)


def first_risk(selective: Iterable[SelectiveResult]) -> TestedRisk | None:
    """Return the first requested error rate that has a threshold, and its acceptance."""
    for one in selective:
        # Imported tables have no effective samples.
        rate = share_of(one.n_errors, one.n_accepted, one.effective)
        if one.threshold is None or one.coverage is None or rate is None:
            continue
        return TestedRisk(
            max_risk=one.target.max_risk,
            delta=one.target.delta,
            threshold=one.threshold,
            coverage=one.coverage,
            n_accepted=one.n_accepted,
            n_errors=one.n_errors,
            value=rate.value,
            weighted=rate.weighted,
            interval=rate.interval,
            n_samples=rate.n_samples,
            evaluation=error_rate(one.evaluation),
        )
    return None


def compare_measures(
    measures: Mapping[str, Measure], served: str, costs: Mapping[str, Cost], folds: int
) -> list[ComparedMeasure]:
    """Return a row for each measure of an event, by ascending cross-validated NLL.

    Parameters
    ----------
    measures
    served
        The one that is served.
    costs
        What each measure costs; empty where the model's outputs were uploaded.
    folds
        How many the cross-validation has. A score that some folds do not define is computed once,
        from the samples of all folds together.
    """

    def row(name: str, measure: Measure) -> ComparedMeasure:
        passes, ms_per_row = costs.get(name, Cost())
        cells: Mapping[str, Any] = {score: _cell(measure, score, folds) for score in COMPARED}
        return ComparedMeasure(
            measure=name,
            served=name == served,
            passes=passes,
            ms_per_row=ms_per_row,
            difference=measure.difference.get("nll"),
            **cells,
        )

    return sorted((row(*named) for named in measures.items()), key=_rank)


def _rank(row: ComparedMeasure) -> tuple[bool, float]:
    return (row.nll.value is None, row.nll.value or 0.0)


NO_FOLD = FoldScore(mean=None, std=None, folds=0, pooled=None)


def _cell(measure: Measure, score: str, folds: int) -> ComparedScore:
    """Return the mean over the folds, or the score of all together if single folds lack it."""
    over = measure.scores.get(score, NO_FOLD)
    pooled = is_pooled(score, over, folds)
    return ComparedScore(
        value=over.pooled if pooled else over.mean,
        std=None if pooled else over.std,
        pooled=pooled,
        # A score of the table says nothing about the evaluation set.
        evaluation=None if score == OF_THE_TABLE else (measure.evaluation or {}).get(score),
    )


def is_pooled(score: str, over: FoldScore, folds: int) -> bool:
    """Tell whether to use the score of all folds together instead of their mean."""
    is_whole = score == OF_THE_TABLE or over.folds < folds
    return is_whole and over.pooled is not None
