"""Telling logits from probabilities by their values."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidOnnxModel
from service.model_rules import ModelRule

SUM_TOLERANCE = 1e-3

ValueKind = Literal["logits", "probabilities", "log-probabilities"]


def kind_of_values(scores: NDArray[np.floating]) -> ValueKind:
    """Return what a block of class scores holds.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
        With two columns or more: values in [0, 1] whose rows sum to 1 within 1e-3 are
        probabilities, values of at most 0 whose exponentials do so are log-probabilities, anything
        else outside [0, 1] is logits. With one column, the score of class 1 of two: values in
        [0, 1] are probabilities, others logits. Rows with NaN or +inf are left out.

    Raises
    ------
    InvalidOnnxModel
        If no row is finite, or all values lie in [0, 1] without summing to 1: independent
        sigmoids, say, which are no distribution over classes.
    """
    values = finite_rows(scores)
    in_unit_interval = bool((values >= 0).all() and (values <= 1 + SUM_TOLERANCE).all())
    if values.shape[1] == 1:
        return "probabilities" if in_unit_interval else "logits"
    if in_unit_interval:
        sums = values.sum(axis=1)
        if np.abs(sums - 1).max() <= SUM_TOLERANCE:
            return "probabilities"
        raise InvalidOnnxModel.because(
            ModelRule.NOT_A_DISTRIBUTION,
            "the scores lie in [0, 1] but the rows do not sum to 1 (they sum to "
            f"{sums.min():.4g} up to {sums.max():.4g}), as independent sigmoids do; export the "
            "scores before the sigmoid or a softmax, or set output.kind if they are logits (or "
            "probabilities to be normalised) all the same",
        )
    if (values <= SUM_TOLERANCE).all():
        sums = np.exp(values).sum(axis=1)
        if np.abs(sums - 1).max() <= SUM_TOLERANCE:
            return "log-probabilities"
    return "logits"


def finite_rows(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rows without NaN and +inf, and with a finite value, in float64.

    Raises
    ------
    InvalidOnnxModel
        If there is none.
    """
    values = np.asarray(scores, dtype=np.float64)
    keep = ~(np.isnan(values) | np.isposinf(values)).any(axis=1)
    keep &= np.isfinite(values).any(axis=1)
    if not keep.any():
        raise InvalidOnnxModel.because(
            ModelRule.NOT_FINITE, "the output is not finite on any of the rows it was tried on"
        )
    return values[keep]
