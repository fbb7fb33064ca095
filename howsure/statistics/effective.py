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

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import ndtri, stdtrit

from howsure.statistics.arrays import BinIndex, Counts, Floats, Hits, Rates
from howsure.statistics.bins.design import SampleDesign

LEAST_EFFECTIVE = 5.0


class TooFewEffectiveSamples(ValueError):
    """A bin is worth fewer than five samples, because a few large weights or groups fill it."""


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
        return self.n_effective * float(tail_factor(np.array([float(self.n_groups)]), tail)[0])


def tail_factor(n_groups: Floats, tail: float) -> Floats:
    """Return how much fewer samples count for tests at level ``tail``, as groups are few."""
    quantiles = stdtrit(np.maximum(n_groups - 1.0, 1.0), 1.0 - tail)
    return np.asarray(np.square(ndtri(1.0 - tail) / quantiles))


@dataclass(frozen=True, eq=False)
class EffectiveSums:
    """Sums over sets of samples, each of shape (n_sets,).

    ``m_g`` are the samples of a group in a set, ``e_g`` its events and ``w_g`` its weight.

    Attributes
    ----------
    counts, events, weights, event_weights : ndarray of float64
        Samples, and events among them; their weights.
    squares, event_squares : ndarray of float64
        The same sums of squared weights.
    groups, with_event, with_other : ndarray of float64
        Number of groups, of those with an event, and of those with another sample.
    group_sizes, group_events, group_weights : ndarray of float64
        Sums of ``m_g^2``, of ``e_g^2 / m_g`` and of ``w_g^2``.
    """

    counts: Floats
    events: Floats
    weights: Floats
    event_weights: Floats
    squares: Floats
    event_squares: Floats
    groups: Floats
    with_event: Floats
    with_other: Floats
    group_sizes: Floats
    group_events: Floats
    group_weights: Floats

    def at(self, sets: Counts) -> "EffectiveSums":
        """Return the sums of some of the sets."""
        return EffectiveSums(*(getattr(self, field.name)[sets] for field in fields(self)))

    @property
    def shares(self) -> Rates:
        """Weighted share of events, shape (n_sets,)."""
        return np.clip(self.event_weights / self.weights, 0.0, 1.0)

    @property
    def sizes(self) -> Floats:
        """Independent samples that tell the share as precisely, shape (n_sets,)."""
        share = self.shares
        varies = share * (1.0 - share)
        own = (1.0 - 2.0 * share) * self.event_squares + share * share * self.squares
        known = np.where(varies > 0.0, varies, 1.0) * self.squares
        growth = np.maximum(np.where(varies > 0.0, own / known, 1.0), 1.0)
        rho = self._correlation()
        variance = (1.0 - rho) * self.squares + rho * self.group_weights
        return np.minimum(np.square(self.weights) / (variance * growth), self.counts)

    def _correlation(self) -> Rates:
        """Return the corrected intra-class correlation of events."""
        rho = _correlation(
            self.counts, self.groups, self.events, self.events, self.group_events, self.group_sizes
        )
        seen = np.minimum(self.with_event, self.with_other)
        return np.asarray((seen * rho + 1.0) / (seen + 1.0))


def _correlation(
    n: Floats, groups: Floats, total: Floats, squares: Floats, between: Floats, sizes: Floats
) -> Rates:
    """Return the intra-class correlation of values by analysis of variance, from 0 to 1.

    Donner 1986, section 2. If values do not vary, nothing is known of it, and it is 1: each group
    then counts as one sample.

    Parameters
    ----------
    n, groups, total, squares, between, sizes : ndarray of float64
        Samples and their groups, at least one, and sums of the values, of their squares, of the
        squared sum of each group by its size, and of the squared sizes of groups.
    """
    mean_square = (between - np.square(total) / n) / np.maximum(groups - 1, 1)
    within = (squares - between) / np.maximum(n - groups, 1)
    typical = (n - sizes / n) / np.maximum(groups - 1, 1)
    spread = mean_square + (typical - 1.0) * within
    is_known = (groups > 1) & (spread > 0.0)
    rho = np.where(is_known, (mean_square - within) / np.where(is_known, spread, 1.0), 1.0)
    return np.clip(rho, 0.0, 1.0)


def sums_by_set(sets: BinIndex, events: Hits, n_sets: int, design: SampleDesign) -> EffectiveSums:
    """Return the sums of several sets of samples.

    Parameters
    ----------
    sets : ndarray of int64, shape (n_samples,)
        The set of each sample.
    events : ndarray of bool, shape (n_samples,)
    n_sets : int
    design : SampleDesign
    """
    parts = _parts(events, design, sets)
    return EffectiveSums(*(np.bincount(sets, part, n_sets).astype(np.float64) for part in parts))


def sums_of_first(events: Hits, design: SampleDesign) -> EffectiveSums:
    """Return the sums over the first 1, 2, ... samples in their order.

    Parameters
    ----------
    events : ndarray of bool, shape (n_samples,)
        At least one.
    design : SampleDesign
    """
    return EffectiveSums(*(np.cumsum(part, dtype=np.float64) for part in _parts(events, design)))


def _parts(events: Hits, design: SampleDesign, sets: BinIndex | int = 0) -> Iterator[Floats | Hits]:
    """Yield what each sample adds to each of the sums, after the earlier ones of its set."""
    weights, groups = design.weights(events.size), design.groups(events.size)
    cells = sets * (groups.max() + 1) + groups  # the part of each group in each set
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], cells[order])

    def earlier(values: Floats | Hits) -> Floats:
        """Return the sum over the samples of the same cell before each sample."""
        before = np.concatenate([[0.0], np.cumsum(values[order])])[:-1]
        sums = np.empty(len(order))
        sums[order] = before - before[first]
        return sums

    ones = np.ones(events.size)
    size, n_events, weight = earlier(ones), earlier(events), earlier(weights)
    yield from (ones, events, weights, weights * events)
    yield from (np.square(weights), np.square(weights) * events)
    yield from (size == 0.0, events & (n_events == 0.0), ~events & (n_events == size))
    yield 2.0 * size + 1.0
    yield np.square(n_events + events) / (size + 1.0) - np.square(n_events) / np.maximum(size, 1.0)
    yield weights * (2.0 * weight + weights)


def effective_share(events: Hits, design: SampleDesign) -> EffectiveShare | None:
    """Return the share of events.

    None if there are no samples, or they have neither weights nor groups.
    """
    if design.is_plain or events.size == 0:
        return None
    sums = sums_by_set(np.zeros(events.size, np.int64), events, 1, design)
    share, size, n_groups = sums.shares[0], sums.sizes[0], sums.groups[0]
    return EffectiveShare(float(share), float(size), int(n_groups), design.weight is not None)


def effective_weights(events: Hits, design: SampleDesign) -> Floats:
    """Return the weights of samples, scaled so that they sum to the effective samples."""
    whole, weights = effective_share(events, design), design.weights(events.size)
    size = events.size if whole is None else whole.n_effective
    return np.asarray(weights * (size / weights.sum()))


def effective_size(ranks: Floats, design: SampleDesign) -> float:
    """Return how many independent samples tell the distribution of a value as precisely.

    As `EffectiveSums`, with the intra-class correlation of the ranks of the values, where one group
    beside the ``G`` groups has one value only.

    Parameters
    ----------
    ranks : ndarray of float64, shape (n_samples,)
    design : SampleDesign
    """
    weights, groups = design.weights(ranks.size), design.groups(ranks.size)
    sizes, values = np.bincount(groups), ranks - ranks.mean()
    n, n_groups, total = np.array([values.size, sizes.size, values.sum()])
    between = np.square(np.bincount(groups, values)) @ (1.0 / sizes)
    squares = np.square(sizes.astype(np.float64)).sum()
    rho = _correlation(n, n_groups, total, values @ values, between, squares)
    rho = (n_groups * rho + 1.0) / (n_groups + 1.0)
    together = np.square(np.bincount(groups, weights)).sum()
    variance = (1.0 - rho) * np.square(weights).sum() + rho * together
    return float(weights.sum() ** 2 / variance)


@dataclass(frozen=True, eq=False)
class EffectiveBins:
    """What the samples of each bin are worth.

    Attributes
    ----------
    hit_rates : ndarray of float64, shape (n_bins,)
        Weighted.
    counts : ndarray of float64, shape (n_bins,)
        Effective samples: at most the count of the bin.
    shares : ndarray of float64, shape (n_bins,)
        Share of the total weight in each bin.
    size : float
        Effective samples of the whole set.
    """

    hit_rates: Rates
    counts: Floats
    shares: Rates
    size: float

    @property
    def hits(self) -> Floats:
        """Effective hits, shape (n_bins,)."""
        return self.hit_rates * self.counts


def effective_bins(
    bins: BinIndex, hits: Hits, n_bins: int, design: SampleDesign
) -> EffectiveBins | None:
    """Return what the samples of each bin are worth; None if they count alike.

    Parameters
    ----------
    bins : ndarray of int64, shape (n_samples,)
        The bin of each sample; every bin holds at least one.
    hits : ndarray of bool, shape (n_samples,)
    n_bins : int
    design : SampleDesign
    """
    whole = effective_share(hits, design)
    if whole is None:
        return None
    sums = sums_by_set(bins, hits, n_bins, design)
    return EffectiveBins(
        sums.shares, sums.sizes, sums.weights / sums.weights.sum(), whole.n_effective
    )


def check_effective(
    effective: EffectiveBins, counts: Counts, *, measure: str, design: SampleDesign
) -> None:
    """Refuse a table with a bin that is worth fewer than five samples.

    Raises
    ------
    TooFewEffectiveSamples
        Naming the first such bin.
    """
    few = effective.counts < LEAST_EFFECTIVE
    if not few.any():
        return
    place = int(np.argmax(few))
    of = f" of {measure}" if measure else ""
    cause = "weights" if design.group is None else "groups and weights"
    cause = "groups" if design.weight is None else cause
    raise TooFewEffectiveSamples(
        f"expected {cause} that leave each bin at least {LEAST_EFFECTIVE:g} effective samples, got "
        f"{effective.counts[place]:.2g} in bin {place}{of}, which holds {counts[place]}; set "
        'config.bins to fewer bins or "auto", send more samples, or cap the largest weights'
    )
