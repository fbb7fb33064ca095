"""Build records from scores, block by block."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.statistics.arrays import (
    NONE_OF_THESE,
    Classes,
    Floats,
    Labels,
    Logits,
    TieKeys,
    Uncertainty,
    as_labels,
    as_scores,
    as_uncertainty,
)
from howsure.statistics.learned.inputs import ranked_inputs
from howsure.statistics.measures import columns
from howsure.statistics.records.records import Records, concatenate, log_sum_exp_grid
from howsure.statistics.softmax import (
    RankedScores,
    decision_scores,
    label_ranks,
    n_recorded_classes,
    rank_scores,
    values_of_labels,
)

BLOCK_ELEMENTS = 2**21


def score_uncertainty(
    scores: ArrayLike, *, top_k: Sequence[int], logits: bool = False, threshold: float | None = None
) -> dict[str, Uncertainty]:
    """Compute every measure of every event.

    Parameters
    ----------
    scores : array_like of float, shape (n_samples, n_classes)
        Logits, or ``log p``.
    top_k : sequence of int
        Distinct, ``1 <= k < n_classes``.
    logits : bool
        Whether the scores are known to be logits, so that ``energy`` can be computed.
    threshold : float, optional
        Decision threshold of two classes.

    Returns
    -------
    dict of str to ndarray of float32, shape (n_samples,)
        By column: ``entropy``, ``neg_log_topk_mass_5``, and so on.

    Raises
    ------
    ValueError
        If scores or ``top_k`` are invalid.
    """
    checked = as_scores(scores)
    n_top = n_recorded_classes(checked.shape[1], top_k)
    parts = [
        _measure(rank_scores(checked[rows], n_top=n_top, threshold=threshold), top_k, logits=logits)
        for rows in row_blocks(checked)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def ranked_outputs(
    scores: Logits,
    *,
    top_k: Sequence[int],
    inputs: Iterable[str] = (),
    logits: bool = False,
    threshold: float | None = None,
) -> tuple[Classes, Floats, dict[str, Uncertainty]]:
    """Return top classes, their probabilities and uncertainties, as a head in a graph would.

    ``inputs`` are columns; those of the learned measure are among the uncertainties, too. Other
    parameters are those of `score_uncertainty`.
    """
    n_top = n_recorded_classes(scores.shape[1], top_k)
    ranked = rank_scores(scores, n_top=n_top, threshold=threshold)
    top_weights = np.take_along_axis(ranked.weights, ranked.top_classes, axis=1)
    measured = score_uncertainty(scores, top_k=top_k, logits=logits, threshold=threshold)
    measured |= ranked_inputs(ranked, inputs, measured)
    return ranked.top_classes, top_weights / ranked.total[:, np.newaxis], measured


def build_records(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    tie_keys: TieKeys,
    uncertainty: Mapping[str, Uncertainty] | None = None,
    top_k: Sequence[int],
    logits: bool = False,
    threshold: float | None = None,
) -> Records:
    """Make one record per sample.

    Rows are processed a few megabytes at a time to bound memory. The record of a row does not
    depend on other rows.

    Parameters
    ----------
    scores : array_like of float, shape (n_samples, n_classes)
        Logits, or ``log p``.
    labels : array_like of int, shape (n_samples,)
        Classes, or `NONE_OF_THESE`.
    tie_keys : ndarray of uint32, shape (n_samples,)
    uncertainty : mapping of str to ndarray of float32, shape (n_samples,), optional
        Measures computed elsewhere, by column. If given, they are the only ones; otherwise those of
        `howsure.statistics.measures` are computed.
    top_k : sequence of int
        Distinct, ``1 <= k < n_classes``.
    logits : bool
        Whether the scores are known to be logits, so that ``energy`` can be computed.
    threshold : float, optional
        Decision threshold of two classes.

    Raises
    ------
    ValueError
        If the shape, dtype or range of an array, or ``top_k``, is invalid.
    """
    rankable = as_scores(scores)
    n_samples, n_classes = rankable.shape
    n_top = n_recorded_classes(n_classes, top_k)
    checked = as_labels(labels, n_samples=n_samples, n_classes=n_classes, least=NONE_OF_THESE)
    if tie_keys.shape != (n_samples,):
        raise ValueError(f"tie_keys must have shape ({n_samples},), not {tie_keys.shape}")
    given = {name: as_uncertainty(values) for name, values in (uncertainty or {}).items()}
    for name, values in given.items():
        if values.shape != (n_samples,):
            raise ValueError(f"{name} must have shape ({n_samples},), not {values.shape}")
    parts = []
    for rows in row_blocks(rankable):
        ranked = rank_scores(rankable[rows], n_top=n_top, threshold=threshold)
        measured = {name: values[rows] for name, values in given.items()}
        if uncertainty is None:
            measured = _measure(ranked, top_k, logits=logits)
        ranks = label_ranks(decision_scores(rankable[rows], threshold), checked[rows])
        parts.append(_record(ranked, checked[rows], ranks, tie_keys[rows], measured))
    return concatenate(parts)


def row_blocks(values: NDArray[np.floating]) -> Iterator[slice]:
    """Yield slices of rows, at least one, of bounded size."""
    n_samples, n_classes = values.shape
    step = max(1, BLOCK_ELEMENTS // n_classes)
    for start in range(0, max(n_samples, 1), step):
        yield slice(start, start + step)


def _measure(ranked: RankedScores, top_k: Sequence[int], *, logits: bool) -> dict[str, Uncertainty]:
    return {
        name: measure.compute(ranked, k).astype(np.float32)
        for name, measure, k in columns(top_k, logits=logits)
    }


def _record(
    ranked: RankedScores,
    labels: Labels,
    ranks: Labels,
    keys: TieKeys,
    uncertainty: dict[str, Uncertainty],
) -> Records:
    label_logit = values_of_labels(ranked.relative, labels)
    return Records(
        tie_key=keys,
        label=labels.astype(np.int32),
        top_classes=ranked.top_classes.astype(np.int32),
        top_log_odds=_as_float32(_top_log_odds(ranked))[:, np.newaxis],
        label_rank=ranks.astype(np.int32),
        label_log_probability=label_logit - np.log1p(ranked.tails[:, 0]),
        sum_squares=np.square(ranked.weights).sum(axis=1) / np.square(ranked.total),
        log_sum_exp=log_sum_exp_grid(ranked),
        label_logit=_as_float32(label_logit),
        top_logits=_as_float32(ranked.top_relative),
        uncertainty=uncertainty,
    )


def _top_log_odds(ranked: RankedScores) -> Floats:
    """Return the log-odds of the predicted class, from its tail."""
    with np.errstate(divide="ignore"):  # no other class: infinite odds
        return np.asarray(-np.log(ranked.tails[:, 0]))


def _as_float32(values: Floats) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # differences beyond float32: infinite
        return values.astype(np.float32)
