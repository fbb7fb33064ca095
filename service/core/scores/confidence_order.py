"""Samples by falling probability, for scores that cut them into bins of their own."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Counts, Hits, Rates


@dataclass(frozen=True, eq=False)
class ConfidenceOrder:
    """Samples by falling probability.

    Attributes
    ----------
    probability : ndarray of float64, shape (n_samples,)
        Not rising.
    hits_before : ndarray of int64, shape (n_samples + 1,)
        Hits among the first ``i`` samples.
    sum_before : ndarray of float64, shape (n_samples + 1,)
        Sum of ``1 - probability`` over the first ``i`` samples: exact for probabilities next to 1.
    ends : ndarray of int64, shape (n_blocks,)
        Positions after the last of each block of equal probability, the places where a cut keeps
        the tied together.
    """

    probability: Rates
    hits_before: Counts
    sum_before: Rates
    ends: Counts

    def gaps(self, cuts: Counts) -> tuple[Rates, Rates]:
        """Return weight and ``|hit rate - mean probability|`` of the bins between cuts.

        Parameters
        ----------
        cuts : ndarray of int64, shape (n_bins + 1,)
            Ascending strictly, from 0 to ``n_samples``.
        """
        counts = np.diff(cuts)
        misses = counts - np.diff(self.hits_before[cuts])
        gaps = np.abs(misses - np.diff(self.sum_before[cuts])) / counts
        return counts / len(self.probability), gaps

    def next_end(self, places: Counts) -> Counts:
        """Return each place moved on to the end of the tied block that it cuts, each once."""
        return np.unique(self.ends[np.searchsorted(self.ends, places, side="left")])


def confidence_order(probability: Rates, hits: Hits) -> ConfidenceOrder:
    """Sort samples by falling probability."""
    order = np.argsort(-probability, kind="stable")
    ranked = probability[order]
    changes = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
    return ConfidenceOrder(
        probability=ranked,
        hits_before=np.concatenate([[0], np.cumsum(hits[order])]),
        sum_before=np.concatenate([[0.0], np.cumsum(1.0 - ranked)]),
        ends=np.append(changes, len(ranked)),
    )
