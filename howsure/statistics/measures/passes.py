"""Measures of several passes: their mean, their covariance, and their columns in records."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.statistics.arrays import BinIndex, Floats, Labels, Uncertainty, as_uncertainty
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.measures.measure import prefix_column
from howsure.statistics.softmax import decision_scores, label_ranks, values_of_labels

THREE_DIMENSIONS = 3
LEAST_CLASSES = 2
LARGEST_LOG_PROBABILITY = 1e-3
BLOCK_ELEMENTS = 2**20


def as_log_probabilities(values: ArrayLike) -> NDArray[np.floating]:
    """Return log-probabilities of shape (n_samples, n_passes, n_classes), in their own precision.

    Raises
    ------
    ValueError
        If there are fewer axes, no pass or fewer than two classes; or if a prediction holds NaN or
        a number above 0 by more than rounding, or excludes every class. ``-inf`` excludes a class.
    """
    array = np.asarray(values)
    if array.ndim != THREE_DIMENSIONS or array.shape[1] < 1 or array.shape[2] < LEAST_CLASSES:
        raise ValueError(
            "log_probabilities must have shape (n_samples, n_passes >= 1, n_classes >= 2), "
            f"not {array.shape}"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"log_probabilities must be floating, not {array.dtype}")
    largest = array.max(axis=2)  # NaN where one is
    bad = ~(np.isfinite(largest) & (largest <= LARGEST_LOG_PROBABILITY))
    if bad.any():
        row, number = (int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            "log_probabilities must be at most 0, and finite for one class at least: "
            f"pass {number} of row {row} is not"
        )
    return array


def row_blocks(array: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    """Yield rows in float64, a few megabytes at a time, to bound memory."""
    n_samples, n_passes, n_classes = array.shape
    step = max(1, BLOCK_ELEMENTS // (n_passes * n_classes))
    for start in range(0, max(n_samples, 1), step):
        # C order, so that sums do not depend on the layout of the array.
        yield array[start : start + step].astype(np.float64, order="C")


def mean_log_probability(log_probabilities: ArrayLike) -> Floats:
    """Return ``log((1 / M) sum_m p_m)``: Lakshminarayanan et al. 2017, section 2.4.

    It is computed in log space, relative to the largest pass, so that no probability underflows.

    Parameters
    ----------
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        ``log p``; ``-inf`` where ``p`` is 0.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_classes)
        ``-inf`` for a class that every pass excludes.

    Raises
    ------
    ValueError
        If shapes or values are invalid.
    """
    answers = as_log_probabilities(log_probabilities)
    return np.concatenate([_mean(block) for block in row_blocks(answers)])


def _mean(log_p: Floats) -> Floats:
    largest = log_p.max(axis=1)
    is_possible = np.isfinite(largest)
    relative = log_p - np.where(is_possible, largest, 0.0)[:, np.newaxis]
    mean = np.exp(relative).mean(axis=1)
    log_mean: Floats = largest + np.log(np.where(is_possible, mean, 1.0))
    return log_mean


LEAST_PASSES = 2


def covariance_norm(log_probabilities: ArrayLike) -> Floats:
    """Return the 2-norm of the sample covariance of the passes: Oberman et al., section 2.2.

    ``||C||_2`` with ``C = sum_m d_m d_m' / (M - 1)``, where ``d_m`` are the deviations of the
    ``M`` passes' probabilities from their mean. The largest eigenvalue is computed from the smaller
    of the two Gram matrices, ``M x M`` or ``K x K``, which share it.

    The result is precise even if the passes agree or are nearly certain: a deviation is computed
    from the difference of logarithms, and that of the leading class as minus the sum of all others,
    because probabilities sum to 1.

    Parameters
    ----------
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        ``log p``, at least two passes; ``-inf`` where ``p`` is 0.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        Never negative; exactly 0 if all passes are equal.

    Raises
    ------
    ValueError
        If shapes or values break their rules.
    """
    answers = as_log_probabilities(log_probabilities)
    if answers.shape[1] < LEAST_PASSES:
        raise ValueError(
            f"log_probabilities must hold at least {LEAST_PASSES} passes, not {answers.shape[1]}"
        )
    return np.concatenate([_norm(_deviations(block)) for block in row_blocks(answers)])


def _deviations(log_p: Floats) -> Floats:
    """Return the deviations from the mean over passes, in the shape of the argument."""
    largest = log_p.max(axis=1, keepdims=True)
    ruled_out = np.isneginf(largest)  # excluded by every pass: no deviation
    change = np.expm1(log_p - np.where(ruled_out, 0.0, largest))  # p / max p - 1
    mean = change.mean(axis=1, keepdims=True)
    leader = (np.exp(largest) * (1.0 + mean)).argmax(axis=2, keepdims=True)
    deviations: Floats = (change - mean) * np.exp(largest)
    np.put_along_axis(deviations, leader, 0.0, axis=2)
    np.put_along_axis(deviations, leader, -deviations.sum(axis=2, keepdims=True), axis=2)
    return deviations


def _norm(deviations: Floats) -> Floats:
    """Return the largest eigenvalue; squares underflow only if the eigenvalue does."""
    _, n_passes, n_classes = deviations.shape
    transposed = deviations.swapaxes(1, 2)
    gram = deviations @ transposed if n_passes <= n_classes else transposed @ deviations
    largest = np.linalg.eigvalsh(gram)[:, -1]
    # Rounding may make the eigenvalue of a vanishing matrix negative.
    return np.where(largest > 0.0, largest / (n_passes - 1), 0.0)


USUAL_PASSES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500)


def prefixes(passes: int) -> tuple[int, ...]:
    """Return the numbers of passes at which scores are also reported: ``passes`` is the last."""
    return (*(n for n in USUAL_PASSES if n < passes), passes)


@dataclass(frozen=True, eq=False)
class PassColumns:
    """Columns from passes, by name: from all passes, or from the first ``n`` as ``name@n``.

    Attributes
    ----------
    uncertainty : dict of str to ndarray of float32, shape (n_samples,)
    mean_log_probability : dict of str to ndarray of float64, shape (n_samples,)
        ``log p_y`` of the mean probability of these passes; may be ``-inf``.
    mean_label_rank : dict of str to ndarray of int32, shape (n_samples,)
        Number of classes that the same mean ranks above the label.
    mean_log_odds : dict of str to ndarray of float32, shape (n_samples,)
        Log-odds of the class that the same mean predicts.
    """

    uncertainty: dict[str, Uncertainty] = field(default_factory=dict)
    mean_log_probability: dict[str, Floats] = field(default_factory=dict)
    mean_label_rank: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    mean_log_odds: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def averaged_columns(
    measure: str, log_probabilities: ArrayLike, labels: Labels, *, threshold: float | None = None
) -> PassColumns:
    """Return the columns of passes that predict the samples themselves.

    Parameters
    ----------
    measure : str
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        At least two passes, in the order of the prefixes.
    labels : ndarray of int64, shape (n_samples,)
    threshold : float, optional
        Decision threshold of two classes.

    Raises
    ------
    ValueError
        If shapes or values are invalid.
    """
    answers = as_log_probabilities(log_probabilities)
    passes = answers.shape[1]
    found = PassColumns(uncertainty={measure: as_uncertainty(covariance_norm(answers))})
    for n in prefixes(passes):
        name, first = prefix_column(measure, n), answers[:, :n]
        if LEAST_PASSES <= n < passes:
            found.uncertainty[name] = as_uncertainty(covariance_norm(first))
        mean = mean_log_probability(first)
        found.mean_log_probability[name] = values_of_labels(mean, labels)
        decided = decision_scores(mean, threshold)
        found.mean_label_rank[name] = label_ranks(decided, labels).astype(np.int32)
        found.mean_log_odds[name] = _log_odds(mean, decided.argmax(axis=1))
    return found


def _log_odds(log_probabilities: Floats, classes: BinIndex) -> NDArray[np.float32]:
    """Return the log-odds of a class of each row, from the mass of the others."""
    at = classes[:, np.newaxis]
    others = log_probabilities.copy()
    np.put_along_axis(others, at, -np.inf, axis=1)
    of_class = np.take_along_axis(log_probabilities, at, axis=1)[:, 0]
    with np.errstate(divide="ignore"):  # no other class: infinite odds
        odds: Floats = of_class - np.logaddexp.reduce(others, axis=1)
    return odds.astype(np.float32)


def slope_columns(measure: str, slopes: Floats, *, exact: bool) -> PassColumns:
    """Return the columns of slopes along directions, shape (n_samples, m, ...).

    Gaussian directions also give a column for the first ``n`` and for all ``m`` of them. A subset
    of the coordinates has no meaning.
    """
    norm = SLOPE_MEASURES[measure].norm
    found = {measure: as_uncertainty(norm(slopes, exact=exact))}
    names, _ = column_names(measure, slopes.shape[1], exact=exact)
    for name, n in zip(names, prefixes(slopes.shape[1]), strict=False):
        found[name] = as_uncertainty(norm(slopes[:, :n], exact=False))
    return PassColumns(uncertainty=found)


def column_names(
    measure: str, passes: int, *, exact: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the uncertainties, except the full one, and of the means."""
    every = {n: prefix_column(measure, n) for n in prefixes(passes)}
    if not MULTI_PASS_MEASURES[measure].has_mean_prediction:
        return (() if exact else tuple(every.values())), ()
    fewer = tuple(name for n, name in every.items() if LEAST_PASSES <= n < passes)
    return fewer, tuple(every.values())
