"""Array types of the statistics, and their validators.

An alias states the dtype; docstrings state the shape. Validators are called where data enters;
inner functions trust their arrays.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Logits: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int64]
Classes: TypeAlias = NDArray[np.int64]
Uncertainty: TypeAlias = NDArray[np.float32]
Edges: TypeAlias = NDArray[np.float32]
BinIndex: TypeAlias = NDArray[np.int64]
Hits: TypeAlias = NDArray[np.bool_]
Counts: TypeAlias = NDArray[np.int64]
Rates: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float64]
TieKeys: TypeAlias = NDArray[np.uint32]

TWO_DIMENSIONS = 2
# The label of a sample whose true class is none of the model's.
NONE_OF_THESE = -1


def mean_over(values: NDArray[np.floating] | Hits, weights: Floats) -> Floats:
    """Return the weighted mean over the first axis; where all weights are equal, the plain one."""
    if (weights == weights[0]).all():
        return np.asarray(np.mean(values, axis=0, dtype=np.float64))
    return np.asarray((weights / weights.sum()) @ values.astype(np.float64, copy=False))


# The smallest standard deviation, as a share of the range. It is smaller only where one sample has
# nearly all of the weight.
LEAST_WIDTH = 1e-4


def centre_and_width(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return what standardises values over the first axis: weighted mean and standard deviation.

    The deviation is at least 1e-4 of the range, so that no value lies more than 10,000 away.
    """
    centre = mean_over(values, weights)
    width = np.sqrt(mean_over(np.square(values - centre), weights))
    return centre, np.maximum(width, LEAST_WIDTH * np.ptp(values, axis=0))


def mean_of(values: ArrayLike, weights: Floats) -> float:
    """Return the weighted mean.

    Rounding must not put the share of samples that are all hits above 1: its entropy is infinite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    return float(np.clip(mean_over(numbers, weights), numbers.min(), numbers.max()))


def as_scores(values: ArrayLike, *, name: str = "logits") -> Logits:
    """Return a float64 copy or view of shape (n_samples, n_classes), at least two classes.

    Raises
    ------
    ValueError
        If the array is not two-dimensional, has fewer than two columns, holds NaN or +inf, or has
        a row without a finite value. ``-inf`` stands for a class that is ruled out.
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != TWO_DIMENSIONS or scores.shape[1] < TWO_DIMENSIONS:
        raise ValueError(f"{name} must have shape (n_samples, n_classes >= 2), not {scores.shape}")
    bad = np.isnan(scores).any(axis=1) | (scores == np.inf).any(axis=1)
    bad |= np.isneginf(scores).all(axis=1)
    if bad.any():
        raise ValueError(f"{name} must be finite: row {int(np.argmax(bad))} is not")
    return scores


def as_labels(values: ArrayLike, *, n_samples: int, n_classes: int, least: int = 0) -> Labels:
    """Return int64 labels of shape (n_samples,), each in [least, n_classes).

    Raises
    ------
    ValueError
        If the shape differs, the dtype is not integral, or a label is out of range; the message
        names the first such row.
    """
    labels = np.asarray(values)
    if labels.shape != (n_samples,):
        raise ValueError(f"labels must have shape ({n_samples},), not {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, not {labels.dtype}")
    bad = (labels < least) | (labels >= n_classes)
    if bad.any():
        row = int(np.argmax(bad))
        holds = f"row {row} holds {int(labels[row])}"
        raise ValueError(f"labels must lie in [{least}, {n_classes}): {holds}")
    return labels.astype(np.int64, copy=False)


def as_uncertainty(values: ArrayLike) -> Uncertainty:
    """Return float32 uncertainties of shape (n_samples,), all finite.

    Raises
    ------
    ValueError
        If the array is not one-dimensional or holds a value that is not finite in float32; the
        message names the first such row.
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float32:
        uncertainty = values  # the usual case in predictions: no copy
    else:
        with np.errstate(over="ignore"):  # values beyond float32 are refused below
            uncertainty = np.asarray(values, dtype=np.float32)
    if uncertainty.ndim != 1:
        raise ValueError(f"uncertainty must have shape (n_samples,), not {uncertainty.shape}")
    finite = np.isfinite(uncertainty)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"uncertainty must be finite: row {row} holds {uncertainty[row]}")
    return uncertainty


def as_hits(values: ArrayLike, *, n_samples: int) -> Hits:
    """Return boolean hits of shape (n_samples,).

    Raises
    ------
    ValueError
        If the shape differs or a value is neither 0 nor 1.
    """
    hits = np.asarray(values)
    if hits.shape != (n_samples,):
        raise ValueError(f"hits must have shape ({n_samples},), not {hits.shape}")
    if hits.dtype != np.bool_ and not np.isin(hits, (0, 1)).all():
        raise ValueError("hits must be booleans, or zeros and ones")
    return hits.astype(np.bool_, copy=False)
