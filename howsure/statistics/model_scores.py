"""Scores of the model itself, independent of any fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from howsure.statistics.arrays import Floats, Hits, Uncertainty, mean_of
from howsure.statistics.effective import EffectiveShare, effective_share
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.measures.measure import MultiPassMeasure, prefix_column
from howsure.statistics.ranking import rank_samples
from howsure.statistics.records.records import Records
from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.ranking import auroc

__all__ = ["ConfidenceRow", "ModelScores", "PassesRow", "model_scores"]


@dataclass(frozen=True)
class PassesRow:
    """Scores of the first ``passes`` runs of a model.

    Attributes
    ----------
    passes : int
        Number of runs.
    accuracy : dict of int to float, optional
        Share of labels among the ``k`` top classes of their mean probability, by ``k``; None for
        measures without a mean prediction.
    nll : float or None
        Mean of ``-log p_y`` of their mean probability, nats; None where a label has probability 0,
        and where there is no mean.
    brier, ece_15 : float or None
        Of the probability that the class of their mean is the label; None where there is no mean.
    auroc : dict of int to float or None
        By ``k``, how well the measure made of them finds the samples for which the prediction
        misses the Top-k event; None without a miss or without a hit, and for a single pass that
        has no spread.
    """

    passes: int
    accuracy: dict[int, float] | None
    nll: float | None
    auroc: dict[int, float | None]
    brier: float | None = None
    ece_15: float | None = None


def pass_scores(records: Records, *, top_k: Sequence[int]) -> dict[str, tuple[PassesRow, ...]]:
    """Return the scores by number of passes, ascending, for each measure with recorded passes.

    There is at least one sample, and no ``k`` exceeds the number of recorded classes.
    """
    rows = {name: _rows(records, measure, top_k) for name, measure in MULTI_PASS_MEASURES.items()}
    return {name: found for name, found in rows.items() if found}


def _rows(
    records: Records, measure: MultiPassMeasure, top_k: Sequence[int]
) -> tuple[PassesRow, ...]:
    held = records.mean_log_probability if measure.has_mean_prediction else records.uncertainty
    every = _numbers_of_passes(held, measure.name)
    # The column of all passes has the measure's own name.
    columns = {n: measure.name if n == every[-1] else prefix_column(measure.name, n) for n in every}
    return tuple(
        _row(records, measure, n, uncertainty=records.uncertainty.get(column), top_k=top_k)
        for n, column in columns.items()
    )


def _numbers_of_passes(columns: Iterable[str], measure: str) -> list[int]:
    start = prefix_column(measure, 0).removesuffix("0")
    return sorted(int(name.removeprefix(start)) for name in columns if name.startswith(start))


def column_of_all_passes(records: Records, measure: str) -> str | None:
    """Return the name of the mean of all passes of a measure; None if none was recorded."""
    numbers = _numbers_of_passes(records.mean_label_rank, measure)
    return prefix_column(measure, numbers[-1]) if numbers else None


def _row(
    records: Records,
    measure: MultiPassMeasure,
    n: int,
    *,
    uncertainty: Uncertainty | None,
    top_k: Sequence[int],
) -> PassesRow:
    name = prefix_column(measure.name, n)
    accuracy, nll = None, None
    if measure.has_mean_prediction:
        ranks, log_p = records.mean_label_rank[name], records.mean_log_probability[name]
        accuracy = {k: float(np.mean(ranks < k)) for k in top_k}
        nll = float(-np.mean(log_p)) if np.isfinite(log_p).all() else None
    judged = mean_predictions(records, name, 0.0)
    return PassesRow(
        passes=n,
        accuracy=accuracy,
        nll=nll,
        auroc={k: _auroc(uncertainty, records.hits(k)) for k in top_k},
        brier=None if judged is None else SCORES["brier"].compute(judged),
        ece_15=None if judged is None else SCORES["ece_15"].compute(judged),
    )


def mean_predictions(records: Records, name: str, log_floor: float) -> Predictions | None:
    """Return the Top-1 predictions of the mean of passes, ``name@n``; None of old records.

    Their hits are those of the mean, which may predict other classes than one run.
    """
    log_odds = records.mean_log_odds.get(name)
    if log_odds is None:
        return None
    return Predictions(
        uncertainty=-log_odds,
        hits=records.mean_label_rank[name] == 0,
        probability=expit(log_odds.astype(np.float64)),
        log_floor=log_floor,
        design=records.design,
    )


def _auroc(uncertainty: Uncertainty | None, hits: Hits) -> float | None:
    if uncertainty is None:
        return None
    ranked = rank_samples(uncertainty, hits)
    return auroc(ranked.block_hits, ranked.block_errors)


CONFIDENCES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
SURE = (0.9, 0.99, 0.999)
USUAL_EVENTS = (1, 5)


@dataclass(frozen=True)
class ConfidenceRow:
    """Samples whose largest softmax probability is at least ``confidence``.

    Attributes
    ----------
    confidence : float
        Inclusive.
    count : int
        Number of these samples.
    accuracy : float or None
        Share of correct predictions among them; None if there are none.
    """

    confidence: float
    count: int
    accuracy: float | None


@dataclass(frozen=True)
class ConfidentErrors:
    """Errors of which the model is as good as certain, and the most that there can be.

    Where the largest probability is at least ``c`` and the label is another class, that class has
    at most ``1 - c``, so the loss ``-log p_y`` is at least ``-log(1 - c)``. By Markov's inequality
    their share is at most the mean loss over that: Empirical Confidence Estimates, Theorem 3.4.

    Attributes
    ----------
    confidence : float
        ``c``.
    count : int
        Samples.
    share : float
        Their share, weighted if samples have weights.
    bound : float or None
        None without a mean loss.
    """

    confidence: float
    count: int
    share: float
    bound: float | None


@dataclass(frozen=True)
class ModelScores:
    """Scores of the model's own softmax: Ovadia et al., section 3.

    Attributes
    ----------
    n_samples : int
        Of the set.
    accuracy : dict of int to float
        Share of labels among the ``k`` top classes, by ``k``.
    nll : float or None
        Mean of ``-log p_y``, nats; None where a label has probability 0.
    brier_multiclass : float
        Mean over samples of ``sum_i (p_i - [i = y])^2``, from 0 to 2; ``1 + sum_i p_i^2`` of a
        sample whose class is none of the model's, as if it were one more class.
    mean_entropy : float or None
        Mean entropy of the softmax, nats; None where it was not recorded.
    by_confidence : tuple of ConfidenceRow
        Accuracy and count above a confidence, ascending.
    passes : dict of str to tuple of PassesRow
        Scores of fewer passes, by multi-pass measure; only measures with recorded passes.
    effective : dict of int to EffectiveShare or None
        Each accuracy with weights or groups, otherwise None.
    confident_errors : tuple of ConfidentErrors
        By ascending confidence; empty where results of earlier versions lack it.
    """

    n_samples: int
    accuracy: dict[int, float]
    nll: float | None
    brier_multiclass: float
    mean_entropy: float | None
    by_confidence: tuple[ConfidenceRow, ...]
    passes: dict[str, tuple[PassesRow, ...]] = field(default_factory=dict)
    effective: dict[int, EffectiveShare | None] = field(default_factory=dict)
    confident_errors: tuple[ConfidentErrors, ...] = ()


def model_scores(records: Records, *, top_k: tuple[int, ...]) -> ModelScores | None:
    """Return the scores of the model's own softmax; None without a sample.

    Means are weighted where samples have weights; accuracies above a confidence and of passes are
    not. Accuracies are those of ``top_k`` and of the Top-1 and Top-5 events, if the records hold
    enough classes.
    """
    if records.n_samples == 0:
        return None
    kept = records.top_classes.shape[1]
    events = [k for k in sorted({*USUAL_EVENTS, *top_k}) if k <= kept]
    log_likelihood = records.label_log_probability
    squares = 1.0 - 2.0 * np.exp(log_likelihood) + records.sum_squares
    entropy, weights = records.uncertainty.get("entropy"), records.weights

    def mean(values: Floats | Hits) -> float:
        return mean_of(values, weights)

    def confident_errors(confidence: float) -> ConfidentErrors:
        least = np.log(1.0 - confidence)
        is_sure = records.top_log_odds[:, 0] >= np.log(confidence) - least
        wrong = is_sure & ~records.hits(1)
        bound = None if nll is None else float(min(nll / -least, 1.0))
        return ConfidentErrors(confidence, int(np.count_nonzero(wrong)), mean(wrong), bound)

    nll = -mean(log_likelihood) if np.isfinite(log_likelihood).all() else None
    return ModelScores(
        n_samples=records.n_samples,
        accuracy={k: mean(records.hits(k)) for k in events},
        nll=nll,
        brier_multiclass=mean(squares),
        mean_entropy=None if entropy is None else mean(entropy.astype(np.float64)),
        by_confidence=_by_confidence(records),
        passes=pass_scores(records, top_k=events),
        effective={k: effective_share(records.hits(k), records.design) for k in events},
        confident_errors=tuple(map(confident_errors, SURE)),
    )


def _by_confidence(records: Records) -> tuple[ConfidenceRow, ...]:

    log_odds = records.top_log_odds[:, 0].astype(np.float64)
    hits = records.hits(1)
    rows = []
    for confidence in CONFIDENCES:
        threshold = np.log(confidence / (1.0 - confidence)) if confidence > 0.0 else -np.inf
        above = log_odds >= threshold
        count = int(np.count_nonzero(above))
        accuracy = float(np.mean(hits[above])) if count else None
        rows.append(ConfidenceRow(confidence, count, accuracy))
    return tuple(rows)
