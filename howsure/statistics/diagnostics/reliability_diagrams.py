"""Reliability diagrams by choice of bins: Ding et al., section 4.2, Figures 2 and 3."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.arrays import Counts, Rates
from howsure.statistics.ranking import RankedSamples, rank_samples
from howsure.statistics.scores.binned_error import (
    adaptive_cuts,
    equal_mass_cuts,
    equal_range_bins,
    gaps_between,
)
from howsure.statistics.scores.predictions import Predictions

DiagramKind: TypeAlias = Literal[
    "equal_range_10", "equal_range_50", "equal_mass_50", "equal_mass_100", "adaptive"
]
DECIMALS = 6  # of a mean probability: more than a picture can show


@dataclass(frozen=True)
class DiagramBins:
    """The bins that hold a sample, from the largest probability to the smallest.

    Attributes
    ----------
    count, hits : tuple of int
        Samples, and hits among them.
    said : tuple of float
        Mean predicted probability, to six decimals.
    ece, mce : float
        Mean distance between hit rate and mean probability, over the samples, and the largest one.
    """

    count: tuple[int, ...]
    hits: tuple[int, ...]
    said: tuple[float, ...]
    ece: float
    mce: float


@dataclass(frozen=True)
class ReliabilityDiagram:
    """The bins of the model's own probability, and those of the served one."""

    before: DiagramBins
    after: DiagramBins


def _equal_range_cuts(ranked: RankedSamples, n_bins: int) -> Counts:
    bins = equal_range_bins(np.negative(ranked.values, dtype=np.float64), n_bins)
    return np.concatenate([[0], np.flatnonzero(np.diff(bins)) + 1, [ranked.n_samples]])


_CUTS: Mapping[DiagramKind, Callable[[RankedSamples], Counts]] = {
    "equal_range_10": partial(_equal_range_cuts, n_bins=10),
    "equal_range_50": partial(_equal_range_cuts, n_bins=50),
    "equal_mass_50": partial(equal_mass_cuts, n_bins=50),
    "equal_mass_100": partial(equal_mass_cuts, n_bins=100),
    "adaptive": adaptive_cuts,
}
DIAGRAM_KINDS = tuple(_CUTS)


def reliability_diagrams(
    judged: Predictions, raw: Rates
) -> dict[DiagramKind, ReliabilityDiagram] | None:
    """Return the diagrams of samples that were not used in the fit.

    Ranges without a sample have no bin, equal probabilities share one, and bins of equal mass are
    at most as many as samples. The errors are those of the scores `ece_10`, `mce_10`, `aece` and
    `amce`. Bins of equal mass and adaptive ones count samples, so the result is None for samples
    with weights, and without a sample.

    Parameters
    ----------
    judged : Predictions
        By a table.
    raw : ndarray of float64, shape (n_samples,)
        The model's own probability.
    """
    if judged.design.weight is not None or judged.n_samples == 0:
        return None
    before, after = rank_samples(-raw, judged.hits), judged.by_confidence
    return {
        kind: ReliabilityDiagram(_bins(before, cut(before)), _bins(after, cut(after)))
        for kind, cut in _CUTS.items()
    }


def _bins(ranked: RankedSamples, cuts: Counts) -> DiagramBins:
    counts, errors = np.diff(cuts), np.diff(ranked.errors_before[cuts])
    weights, gaps = gaps_between(ranked, cuts)
    rest = np.add.reduceat(1.0 + ranked.values, cuts[:-1])
    return DiagramBins(
        count=tuple(counts.tolist()),
        hits=tuple((counts - errors).tolist()),
        said=tuple(np.round(1.0 - rest / counts, DECIMALS).tolist()),
        ece=float(weights @ gaps),
        mce=float(gaps.max()),
    )
