"""Count the samples that a threshold on the uncertainty accepts, and the errors among them."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Hits, Uncertainty


@dataclass(frozen=True)
class AcceptedSamples:
    """Numbers of all samples, of samples with ``U <= threshold``, and of those without a hit."""

    n_samples: int
    n_accepted: int
    n_errors: int


def count_accepted(uncertainty: Uncertainty, hits: Hits, threshold: float) -> AcceptedSamples:
    """Count the samples with ``U <= threshold``, compared as float32, as in predictions.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    hits : ndarray of bool, shape (n_samples,)
    threshold : float
    """
    accepted = uncertainty <= np.float32(threshold)
    return AcceptedSamples(
        n_samples=uncertainty.size,
        n_accepted=int(np.count_nonzero(accepted)),
        n_errors=int(np.count_nonzero(accepted & ~hits)),
    )
