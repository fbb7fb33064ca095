"""The fit of the model of the labels, and its cross-fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from howsure.statistics.arrays import BinIndex, Floats, Uncertainty
from howsure.statistics.effective import effective_weights
from howsure.statistics.label_model.bias import ClassBias, class_bias
from howsure.statistics.label_model.class_scores import (
    LEAST,
    ClassScores,
    recorded_log_rest,
    recorded_scores,
)
from howsure.statistics.label_model.likelihood import (
    Axes,
    Coefficients,
    LabelledScores,
    Likelihood,
    Scaling,
)
from howsure.statistics.label_model.model import LabelModel, as_measure
from howsure.statistics.label_model.recorded import recorded_log_odds
from howsure.statistics.label_model.search import Search, Setting
from howsure.statistics.records.records import TEMPERATURES, Records

MOST_TUNED, MOST_SCORES = 2_500, 500_000
# With fewer misses (or hits) coefficients are shrunk in proportion.
ENOUGH_EVENTS = 30.0
# With this many folds or more, pairs of them are held out together, if samples are not few.
LEAST_PAIRED, MOST_UNPAIRED = 5, 1_000


@dataclass(frozen=True, eq=False)
class LabelFit:
    """The model of the labels, and the measure ``learned`` of one event: the negative log-odds.

    Attributes
    ----------
    model : LabelModel
        Fitted to all samples: it serves.
    uncertainty : ndarray of float32, shape (n_samples,)
        Of the calibration set, cross-fitted: the coefficients of a sample do not depend on its own
        label. Temperature, floor and prior scales do, one for all samples.
    class_effects : ndarray of float64, shape (n_classes,)
        Mean change of the log-odds by the coefficients, by predicted class.
    class_counts : ndarray of int64, shape (n_classes,)
        Samples by predicted class.
    bias : ClassBias, optional
        None if correcting the classes would not make clearly more answers right.
    """

    model: LabelModel
    uncertainty: Uncertainty
    class_effects: Floats
    class_counts: BinIndex
    bias: ClassBias | None = None


def n_classes_of(*sets: Records | None) -> int:
    """Return one more than the largest class among the recorded ones."""
    return 1 + max(
        int(max(records.top_classes.max(), records.label.max()))
        for records in sets
        if records is not None and records.n_samples
    )


def fit_label_model(
    records: Records, folds: BinIndex, *, n_classes: int, top_k: Sequence[int]
) -> dict[int, LabelFit]:
    """Fit the model to the labels, cross-fit it, and return the measure of each event.

    At most 500,000 scores are learned from, those of the first samples.

    Parameters
    ----------
    records : Records
        In canonical order, which is random.
    folds : ndarray of int64, shape (n_samples,)
    n_classes : int
    top_k : sequence of int
    """
    n_learned = min(records.n_samples, MOST_SCORES // records.top_classes.shape[1])
    first = records if n_learned == records.n_samples else records.take(np.arange(n_learned))
    learned = labelled_scores(first, n_classes)
    groups = folds[:n_learned]
    if n_learned > MOST_UNPAIRED and groups.max() >= LEAST_PAIRED:
        groups = groups // 2
    search = Search(learned.take(slice(MOST_TUNED)), groups[:MOST_TUNED])
    best, weights = search.run() if groups.max(initial=0) > 0 else (search.plain, {})
    alone = {best: 1.0}
    weights = weights or alone
    hits = first.hits(1)
    events = min(float(learned.counts @ hits), float(learned.counts @ ~hits))
    shrinkage = min(events / ENOUGH_EVENTS, 1.0)
    scaling, axes = search.scaling(best), search.axes(best)

    def model_of(coefficients: Coefficients) -> LabelModel:
        return _model(learned.scores, scaling, axes, coefficients, shrinkage)

    def fitted_to(samples: LabelledScores, weights: Mapping[Setting, float]) -> LabelModel:
        likelihood = Likelihood(samples, scaling, axes)
        return model_of(search.averaged(weights, lambda s: likelihood.mode(search.scales(s), {})))

    whole = fitted_to(learned, weights)
    log_odds = recorded_log_odds(whole, records, top_k)
    scaled = recorded_log_odds(model_of({}), records, top_k)
    effects = {k: values - scaled[k] for k, values in log_odds.items()}
    predicted = records.top_classes[:, 0]
    corrected = predicted[:n_learned].copy()
    for place, group in enumerate(np.unique(groups) if groups.max(initial=0) > 0 else ()):
        rows = np.flatnonzero(groups == group)
        if n_learned > MOST_TUNED:
            model = fitted_to(learned.take(groups != group), alone)
        else:
            without = partial(search.mode, place)
            model = model_of(search.averaged(weights, without))
        held = learned.take(rows)
        held_odds = model.odds_of(held.scores, held.log_rest(scaling))
        for k, values in log_odds.items():
            values[rows] = held_odds.log_odds(k)
        corrected[rows] = held.scores.classes[np.arange(rows.size), held_odds.eta.argmax(axis=1)]
    bias = class_bias(first, corrected)
    counts = np.bincount(predicted, minlength=n_classes)
    return {
        k: LabelFit(
            whole,
            as_measure(values),
            np.bincount(predicted, effects[k], n_classes) / np.maximum(counts, 1),
            counts,
            bias,
        )
        for k, values in log_odds.items()
    }


def labelled_scores(records: Records, n_classes: int) -> LabelledScores:
    """Return scores and labels of records."""
    scores = recorded_scores(records, n_classes)
    log_rests, m = np.empty((records.n_samples, 0)), records.top_classes.shape[1]
    if not scores.is_complete:
        log_rests = np.concatenate(
            [
                recorded_log_rest(records, t, n_classes, m)
                for t in TEMPERATURES[: records.log_sum_exp.shape[1]]
            ],
            axis=1,
        )
    label_log_p = np.maximum(records.label_log_probability, np.log(LEAST))
    counts = effective_weights(records.hits(1), records.design)
    return LabelledScores(scores, log_rests, records.label, label_log_p, counts)


def _model(
    scores: ClassScores,
    scaling: Scaling,
    axes: Axes | None,
    coefficients: Coefficients,
    shrinkage: float,
) -> LabelModel:
    """Return the model on ``u`` itself instead of the axes."""
    n_classes = scores.n_classes
    terms = {name: shrinkage * values for name, values in coefficients.items()}
    offset = terms.get("offset", np.zeros(n_classes))
    mixing = np.empty((0, 0))
    if axes is not None and "mixing" in terms:
        mixing = axes.turn @ terms["mixing"]
        offset = offset - axes.centre @ mixing
    return LabelModel(
        n_recorded=scores.classes.shape[1],
        temperature=scaling.temperature,
        floor=scaling.floor,
        offset=offset,
        slope=terms.get("slope", np.zeros(n_classes)),
        mixing=mixing,
        confusion=terms.get("confusion", np.empty((0, 0))),
    )
