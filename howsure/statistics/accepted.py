"""Count the samples that a threshold on the uncertainty accepts, and the errors among them."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Hits, Uncertainty, mean_of
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.effective import EffectiveShare, effective_share


@dataclass(frozen=True)
class AcceptedSamples:
    """The samples that a threshold accepts.

    Attributes
    ----------
    n_samples, n_accepted, n_errors : int
        All samples, samples with ``U <= threshold``, and accepted samples without a hit.
    coverage : float
        Weighted share of accepted samples.
    effective : EffectiveShare or None
        Their share of errors; None if no sample is accepted, or samples have neither weights nor
        groups.
    """

    n_samples: int
    n_accepted: int
    n_errors: int
    coverage: float
    effective: EffectiveShare | None = None


def count_accepted(
    uncertainty: Uncertainty, hits: Hits, threshold: float, design: SampleDesign
) -> AcceptedSamples:
    """Count the samples with ``U <= threshold``, compared as float32, as in predictions.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    hits : ndarray of bool, shape (n_samples,)
    threshold : float
    design : SampleDesign
    """
    accepted = uncertainty <= np.float32(threshold)
    return AcceptedSamples(
        n_samples=uncertainty.size,
        n_accepted=int(np.count_nonzero(accepted)),
        n_errors=int(np.count_nonzero(accepted & ~hits)),
        coverage=mean_of(accepted, design.weights(hits.size)),
        effective=effective_share(~hits[accepted], design.take(accepted)),
    )
