"""Shares among weighted and grouped samples, and how many independent samples tell as much.

With weights ``w`` and groups ``g`` a share of events is known as well as from
``n_eff = W^2 / V`` independent samples, where ``W = sum w``,
``V = (1 - rho) Q + rho sum_g (sum_{i in g} w_i)^2`` and ``Q = sum w^2``: Kish's effective sample
size without groups (Kish 1965, section 11.7), and with equal weights ``n`` divided by the design
effect of clusters (section 5.4). Two corrections keep it from promising too much:

- ``V`` grows in proportion if events have the larger weights: the variance
  ``sum w^2 (e - p)^2 / (p (1 - p))`` takes the place of ``Q`` where it is larger.
- The intra-class correlation ``rho`` of events is the estimate by analysis of variance (Donner
  1986, section 2) as ``(K rho + 1) / (K + 1)``: as if, beside ``K`` groups with an event (or
  without one, if those are fewer), one group had nothing but events. Sets that happen to miss the
  groups with many events would look precise.

Tests and intervals take ``(z / t_{G-1})^2`` times ``n_eff``, because few groups tell the variance
(Korn & Graubard 1998).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from howsure.statistics.arrays import Counts, Floats, Hits, Rates
from howsure.statistics.bins.design import SampleDesign, intraclass_correlation


@dataclass(frozen=True)
class EffectiveShare:
    """A share of events among weighted or grouped samples.

    Attributes
    ----------
    share : float
        Weighted.
    n_effective : float
        Independent samples that tell it as precisely, at most the number of samples.
    n_groups : int
        Without groups, the number of samples.
    weighted : bool
        Whether samples have weights.
    """

    share: float
    n_effective: float
    n_groups: int
    weighted: bool

    def in_tail(self, tail: float) -> float:
        """Return the samples for a test at level ``tail``, or an interval with such tails."""
        groups, effective = np.array([self.n_groups]), np.array([self.n_effective])
        return float(_in_tail(groups, effective, tail)[0])


def _in_tail(n_groups: Counts, n_effective: Floats, tail: float) -> Floats:
    quantiles = stdtrit(np.maximum(n_groups - 1.0, 1.0), 1.0 - tail)
    return np.asarray(n_effective * np.square(ndtri(1.0 - tail) / quantiles))


@dataclass(frozen=True, eq=False)
class EffectiveSums:
    """Sums over the first 1, 2, ... samples in some order, each of shape (n_samples,).

    Attributes
    ----------
    weights, event_weights : ndarray of float64
        Total weight of the samples, and of the events among them.
    squares, event_squares : ndarray of float64
        The same sums of squared weights.
    clusters : GroupSums or None
        None if samples have no groups.
    """

    weights: Floats
    event_weights: Floats
    squares: Floats
    event_squares: Floats
    clusters: "GroupSums | None"

    def shares(self, counts: Counts) -> tuple[Rates, Floats, Counts]:
        """Return share, effective number and groups of the first ``counts`` samples, at least 1.

        Parameters
        ----------
        counts : ndarray of int64, shape (n_counts,)
        """
        last = counts - 1
        total, variance = self.weights[last], self.squares[last]
        share = np.clip(self.event_weights[last] / total, 0.0, 1.0)
        varies = share * (1.0 - share)
        own = (1.0 - 2.0 * share) * self.event_squares[last] + share * share * variance
        known = np.where(varies > 0.0, varies, 1.0) * variance
        growth = np.maximum(np.where(varies > 0.0, own / known, 1.0), 1.0)
        groups = counts
        if self.clusters is not None:
            groups, rho = self.clusters.groups[last], self.clusters.correlation(counts)
            variance = (1.0 - rho) * variance + rho * self.clusters.weight_squares[last]
        return share, np.minimum(total * total / (variance * growth), counts), groups

    def in_tail(self, counts: Counts, tail: float) -> tuple[Rates, Floats]:
        """Return shares, and the samples for tests at level ``tail`` or intervals' tails."""
        share, effective, groups = self.shares(counts)
        return share, _in_tail(groups, effective, tail)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the parts of groups among the first 1, 2, ... samples, each of shape (n_samples,).

    ``m_g`` are the samples of a group, ``e_g`` its events and ``w_g`` its weight.

    Attributes
    ----------
    groups, with_event, with_other : ndarray of int64
        Number of groups, of those with an event, and of those with another sample.
    events : ndarray of int64
        Number of events.
    squares, shares, weight_squares : ndarray of float64
        Sums of ``m_g^2``, of ``e_g^2 / m_g`` and of ``w_g^2``.
    """

    groups: Counts
    with_event: Counts
    with_other: Counts
    events: Counts
    squares: Floats
    shares: Floats
    weight_squares: Floats

    def correlation(self, counts: Counts) -> Rates:
        """Return the corrected intra-class correlation of the first ``counts`` samples."""
        last = counts - 1
        groups, events, shares = self.groups[last], self.events[last], self.shares[last]
        between = (shares - np.square(events) / counts) / np.maximum(groups - 1, 1)
        within = (events - shares) / np.maximum(counts - groups, 1)
        typical = (counts - self.squares[last] / counts) / np.maximum(groups - 1, 1)
        spread = between + (typical - 1.0) * within
        is_known = (groups > 1) & (spread > 0.0)
        rho = np.where(is_known, (between - within) / np.where(is_known, spread, 1.0), 1.0)
        seen = np.minimum(self.with_event[last], self.with_other[last])
        return np.asarray((seen * np.clip(rho, 0.0, 1.0) + 1.0) / (seen + 1.0))


def effective_sums(events: Hits, design: SampleDesign) -> EffectiveSums:
    """Return the sums of samples in their order.

    Parameters
    ----------
    events : ndarray of bool, shape (n_samples,)
        At least one.
    design : SampleDesign
    """
    # Only ratios matter; of equal weights every sum is then a count, without rounding.
    weights = np.ones(events.size)
    if design.weights is not None:
        weights = design.weights / design.weights[0]
    return EffectiveSums(
        weights=np.cumsum(weights),
        event_weights=np.cumsum(weights * events),
        squares=np.cumsum(np.square(weights)),
        event_squares=np.cumsum(np.square(weights) * events),
        clusters=None if design.groups is None else _group_sums(events, design.groups, weights),
    )


def _group_sums(events: Hits, codes: Counts, weights: Floats) -> GroupSums:
    order = np.argsort(codes, kind="stable")
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = codes[order[1:]] != codes[order[:-1]]
    first = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]

    def earlier(values: Floats | Hits) -> Floats:
        """Return the sum over the samples of the same group before each sample."""
        before = np.concatenate([[0.0], np.cumsum(values[order])])[:-1]
        found = np.empty(len(order))
        found[order] = before - before[first]
        return found

    size, hits, weight = earlier(np.ones(len(order))), earlier(events), earlier(weights)
    shares = np.square(hits + events) / (size + 1.0) - np.square(hits) / np.maximum(size, 1.0)
    return GroupSums(
        groups=np.cumsum(size == 0.0),
        with_event=np.cumsum(events & (hits == 0.0)),
        with_other=np.cumsum(~events & (hits == size)),
        events=np.cumsum(events),
        squares=np.cumsum(2.0 * size + 1.0),
        shares=np.cumsum(shares),
        weight_squares=np.cumsum(weights * (2.0 * weight + weights)),
    )


def effective_share(events: Hits, design: SampleDesign | None) -> EffectiveShare | None:
    """Return the share of events.

    None if there are no samples, or they have neither weights nor groups.
    """
    if design is None or events.size == 0:
        return None
    share, effective, groups = effective_sums(events, design).shares(np.array([events.size]))
    weighted = design.weights is not None
    return EffectiveShare(float(share[0]), float(effective[0]), int(groups[0]), weighted)


def effective_size(ranks: Floats, design: SampleDesign) -> float:
    """Return how many independent samples tell the distribution of a value as precisely.

    As `EffectiveSums`, with the intra-class correlation of the ranks of the values, where one group
    beside the ``G`` groups has one value only.

    Parameters
    ----------
    ranks : ndarray of float64, shape (n_samples,)
    design : SampleDesign
    """
    weights = np.ones(ranks.size) if design.weights is None else design.weights / design.weights[0]
    variance = float(np.square(weights).sum())
    if design.groups is not None:
        codes, places = np.unique(design.groups, return_inverse=True)
        found = intraclass_correlation(places, np.zeros(codes.size, np.int64), ranks)
        rho = (codes.size * found + 1.0) / (codes.size + 1.0)
        together = float(np.square(np.bincount(places, weights)).sum())
        variance = (1.0 - rho) * variance + rho * together
    return float(weights.sum() ** 2 / variance)
