"""What is served beside other methods on the samples of a further set: Ovadia et al. 2019."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.bins.table import BinTable
from howsure.statistics.comparison import PairedDifference, paired_difference, paired_differences
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.fit.event_samples import ALL, EventSamples
from howsure.statistics.fit.scored_baselines import judge_baseline
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.model_scores import CONFIDENCES, column_of_all_passes, mean_predictions
from howsure.statistics.records.records import Int32s
from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.proper import sample_losses
from howsure.statistics.scores.ranking import judged_auroc
from howsure.statistics.softmax import BINARY

SERVED = "served"
RAW = "raw_softmax"
MEAN_OF = "mean of "  # the passes of a measure
CLASS_1_AUROC = "auroc_class_1"
SCORED = ("nll", "brier", "ece_15", "auroc", "aurc")
# It is proper and finite, also for a softmax of exactly 1 on an error.
DECIDES = "brier"
# Whether another method is clearly better than the served one, or the served one than the model's
# own softmax; or neither.
Better: TypeAlias = Literal["other", "served", "unclear"]


@dataclass(frozen=True, eq=False)
class MethodOnSet:
    """One method on a further set.

    Attributes
    ----------
    scores : dict of str to float or None
        ``accuracy``, ``nll``, ``brier``, ``ece_15``, ``auroc`` and ``aurc``, with two classes
        ``auroc_class_1`` of the labels; None where undefined.
    intervals : dict of str to tuple of float
        Of the scores that are means over samples, at 95 %, by Student's t.
    difference : dict of str to PairedDifference
        Its ``nll`` and ``brier`` minus those of what is served; empty for that.
    above, hits_above : tuple of int
        Samples, and hits among them, where the method states at least each of `CONFIDENCES`.
    """

    scores: dict[str, float | None]
    intervals: dict[str, tuple[float, float]]
    difference: dict[str, PairedDifference]
    above: tuple[int, ...]
    hits_above: tuple[int, ...]


@dataclass(frozen=True)
class BestOnSet:
    """Which method states the best probabilities on a further set, by the Brier score.

    Attributes
    ----------
    better : Better
        `other`, `served`, or `unclear` where no lead is clear.
    method : str
        Another method that is clearly better than the served one: the best of these. Otherwise
        the model's own softmax.
    """

    better: Better
    method: str


def compare_methods(
    table: BinTable, column: str, calibration: EventSamples, further: EventSamples
) -> dict[str, MethodOnSet]:
    """Return what is served and each baseline, fitted on the calibration set, on another one.

    Of Top-1 also the mean of the passes that were recorded, of dropout or an ensemble.

    Parameters
    ----------
    table : BinTable
        The served one.
    column : str
        Its uncertainty.
    calibration, further : EventSamples
        Of one event, with labels.
    """
    served = predict_with_table(
        table, further.records.uncertainty[column], further.hits, further.design
    )
    losses = sample_losses(served)
    methods = {SERVED: _on_set(served, {})}
    by_method = {SERVED: served, **dict(_rivals(calibration, further))}
    for name, predictions in by_method.items():
        if name != SERVED:
            difference = paired_differences(sample_losses(predictions), losses, further.design)
            methods[name] = _on_set(predictions, difference)
        if further.records.top_classes.shape[1] == BINARY:
            of_class_1 = _of_class_1(predictions, further.records.label)
            methods[name].scores[CLASS_1_AUROC] = judged_auroc(of_class_1)
    return methods


def _rivals(calibration: EventSamples, further: EventSamples) -> Iterator[tuple[str, Predictions]]:
    log_floor = 0.5 / calibration.n_samples
    for name, method in BASELINES.items():
        fitted = method.fit(calibration, ALL)
        yield name, judge_baseline(fitted, further, ALL, log_floor)
    if further.k != 1:
        return
    for measure in MULTI_PASS_MEASURES:
        passes = column_of_all_passes(further.records, measure)
        predictions = (
            None if passes is None else mean_predictions(further.records, passes, log_floor)
        )
        if predictions is not None:
            yield f"{MEAN_OF}{measure}", predictions


def _of_class_1(predictions: Predictions, labels: Int32s) -> Predictions:
    """Return the probabilities of class 1 of two, as of a click (Ovadia et al., Figure 5).

    Samples of neither class are left out.
    """
    is_either = labels >= 0
    is_class_1, hits = labels[is_either] == 1, predictions.hits[is_either]
    of_event = predictions.probability[is_either]
    probability = np.where(hits == is_class_1, of_event, 1.0 - of_event)
    design = predictions.design.take(is_either)
    return Predictions(
        uncertainty=-probability, hits=is_class_1, probability=probability, design=design
    )


def _on_set(predictions: Predictions, difference: dict[str, PairedDifference]) -> MethodOnSet:
    scores: dict[str, float | None] = {"accuracy": predictions.mean(predictions.hits)}
    scores |= {name: SCORES[name].compute(predictions) for name in SCORED}
    intervals = {}
    for name, loss in sample_losses(predictions).items():
        mean = paired_difference(loss, np.zeros_like(loss), predictions.design)
        if mean is not None and mean.margin is not None and np.isfinite(mean.mean):
            intervals[name] = (mean.mean - mean.margin, mean.mean + mean.margin)
    is_above = predictions.probability >= np.array(CONFIDENCES)[:, np.newaxis]
    return MethodOnSet(
        scores,
        intervals,
        difference,
        above=tuple(is_above.sum(axis=1).tolist()),
        hits_above=tuple((is_above & predictions.hits).sum(axis=1).tolist()),
    )


def best_on_set(methods: Mapping[str, MethodOnSet]) -> BestOnSet | None:
    """Return which method is best; None where no two are compared.

    The best of several leads by chance more easily than one, so a lead over the served method must
    be clear among all of them.
    """
    leads = {
        name: one.difference[DECIDES] for name, one in methods.items() if DECIDES in one.difference
    }
    clear = {
        name: lead.mean
        for name, lead in leads.items()
        if lead.mean < 0.0 and lead.among(len(leads)).clear
    }
    if clear:
        return BestOnSet("other", min(clear, key=clear.__getitem__))
    raw = leads.get(RAW)
    if raw is None:
        return None
    return BestOnSet("served" if raw.mean > 0.0 and raw.clear else "unclear", RAW)
