"""Whether a calibration error exceeds chance: consistency bands."""

from dataclasses import dataclass, field

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.prior import prior_mean, regularised_rate
from howsure.statistics.bins.table import BinTable
from howsure.statistics.scores import Predictions
from howsure.statistics.scores.binned_error import N_BINS, equal_range_bins, equal_range_ece

CONSISTENCY_RESAMPLES = 1000
UPPER = 0.99
ROUNDING = 1e-9


@dataclass(frozen=True)
class ConsistencyBand:
    """A calibration error, and its distribution if the served probabilities are true.

    Attributes
    ----------
    score : str
        Name of the score.
    observed : float
        Its value on the data.
    median, upper : float
        Median and 99 % quantile over resampled labels. A calibrated table rarely has a value above
        ``upper``.
    resamples : int
        Number of resamples.
    refitted : bool
        Whether the table was refitted to each resample. Otherwise the band ignores the noise of
        the fit and is slightly too low.
    consistent : bool
        Whether the value is consistent with a calibrated table.
    """

    score: str
    observed: float
    median: float
    upper: float
    resamples: int
    refitted: bool = True
    consistent: bool = field(init=False)

    def __post_init__(self) -> None:
        consistent = self.observed <= self.upper * (1.0 + ROUNDING)
        object.__setattr__(self, "consistent", consistent)


def evaluation_band(
    table: BinTable,
    fitted: Uncertainty,
    judged: Uncertainty,
    hits: Hits,
    *,
    seed: int,
    resamples: int = CONSISTENCY_RESAMPLES,
) -> ConsistencyBand | None:
    """Return the band of ``ece_15`` for a table evaluated on samples that it was not fitted on.

    Labels of both sets are drawn from the table's own probabilities, using the mean in each bin.
    The probabilities are then refitted with the same edges and pooled bins, and evaluated on the
    drawn labels.

    Parameters
    ----------
    table : BinTable
    fitted, judged : ndarray of float32, shape (n_fitted,), (n_judged,)
        Uncertainties of the samples that the table was fitted on, and of the evaluated ones.
    hits : ndarray of bool, shape (n_judged,)
    seed : int
    resamples : int

    Returns
    -------
    ConsistencyBand or None
        None without an evaluated sample.
    """
    if len(judged) == 0:
        return None
    rng = np.random.default_rng(seed)
    learnt, tested = _Cells.of(table, fitted), _Cells.of(table, judged)
    refitted = _refit(table, learnt.counts, learnt.hits_of_bins(learnt.draw(rng, resamples)))
    expected = _refit(table, learnt.counts, learnt.expected)
    errors = tested.errors(tested.draw(rng, resamples), tested.served(refitted, expected))
    probability = table.look_up(judged).probability
    observed = Predictions(uncertainty=judged, hits=hits, probability=probability)
    return _band(equal_range_ece(observed, N_BINS), errors)


def cross_validated_band(
    table: BinTable,
    uncertainty: Uncertainty,
    folds: BinIndex,
    *,
    observed: float | None,
    seed: int,
    resamples: int = CONSISTENCY_RESAMPLES,
) -> ConsistencyBand | None:
    """Return the band of the mean ``ece_15`` of the folds, or None if no mean was observed.

    Labels are drawn as in `evaluation_band`. Each fold is evaluated by a refit to the drawn labels
    of the other folds, in the bins of ``table``. Tables of single folds have nearly the same bins.
    """
    if observed is None:
        return None
    rng = np.random.default_rng(seed)
    cells = [_Cells.of(table, uncertainty[folds == fold]) for fold in range(int(folds.max()) + 1)]
    drawn = [cell.draw(rng, resamples) for cell in cells]
    of_bins = [cell.hits_of_bins(hits) for cell, hits in zip(cells, drawn, strict=True)]
    counts = np.sum([cell.counts for cell in cells], axis=0)
    total = np.sum(of_bins, axis=0)
    expected = np.sum([cell.expected for cell in cells], axis=0)
    errors = []
    for cell, hits, own in zip(cells, drawn, of_bins, strict=True):
        others = counts - cell.counts
        refitted = _refit(table, others, total - own)
        served = cell.served(refitted, _refit(table, others, expected - cell.expected))
        errors.append(cell.errors(hits, served))
    return _band(observed, np.mean(errors, axis=0))


def confidence_band(
    probability: Rates, observed: float | None, *, seed: int, resamples: int = CONSISTENCY_RESAMPLES
) -> ConsistencyBand | None:
    """Return the band of ``ece_15`` for given probabilities; None without an observed value.

    Only the labels of the evaluated samples are drawn.
    """
    if observed is None:
        return None
    _, bins = np.unique(equal_range_bins(probability, N_BINS), return_inverse=True)
    counts = np.bincount(bins)
    means = np.bincount(bins, weights=probability) / counts
    rng = np.random.default_rng(seed)
    drawn = _draw(rng, counts, means, resamples)
    gaps = np.abs(drawn / counts[:, np.newaxis] - means[:, np.newaxis])
    return _band(observed, counts / counts.sum() @ gaps, refitted=False)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Samples of one set, in cells of equal bin of a table and equal range of the probability.

    ``shares[c, b]`` is the weight of the probability of bin ``b`` in the mean of cell ``c``, where
    bins are interpolated.
    """

    bins: BinIndex
    sizes: Counts
    mean: Rates
    counts: Counts
    shares: Floats | None = None
    is_curve: bool = False

    @classmethod
    def of(cls, table: BinTable, uncertainty: Uncertainty) -> "_Cells":
        found = table.look_up(uncertainty)
        code = found.bin * N_BINS + equal_range_bins(found.probability, N_BINS)
        all_sizes = np.bincount(code)
        codes = np.flatnonzero(all_sizes)
        sizes = all_sizes[codes]
        mean = np.bincount(code, found.probability)[codes] / sizes
        counts = np.bincount(found.bin, minlength=table.n_bins)
        shares = None
        if table.lookup == "interpolated":
            cells = np.searchsorted(codes, code)
            shares = _hat_shares(table, uncertainty, cells, sizes)
        is_curve = table.lookup == "smooth"
        return cls(codes // N_BINS, sizes, mean, counts, shares, is_curve)

    @property
    def expected(self) -> Floats:
        """The expected hits by bin, shape (n_bins, 1)."""
        return self.hits_of_bins((self.sizes * self.mean)[:, np.newaxis])

    def hits_of_bins(self, hits: Counts | Floats) -> Floats:
        """Return hits by bin, of hits by cell."""
        found = np.zeros((len(self.counts), hits.shape[1]))
        firsts = np.flatnonzero(np.diff(self.bins, prepend=-1))  # cells are in the order of bins
        found[self.bins[firsts]] = np.add.reduceat(hits, firsts, axis=0)
        return found

    def draw(self, rng: np.random.Generator, resamples: int) -> Counts:
        """Return hits by cell and resample."""
        return _draw(rng, self.sizes, self.mean, resamples)

    def served(self, refitted: Rates, expected: Rates) -> Rates:
        """Return the mean probability served by cell and resample, for refitted bins.

        The mean of a curve moves as the refitted bins move from what was ``expected`` of them.
        """
        if self.is_curve:
            return np.asarray(self.mean[:, np.newaxis] + (refitted - expected)[self.bins])
        return refitted[self.bins] if self.shares is None else np.asarray(self.shares @ refitted)

    def errors(self, hits: Counts, served: Rates) -> Floats:
        """Return the calibration error of each resample, over ranges of what it serves."""
        resamples = hits.shape[1]
        gaps = hits - self.sizes[:, np.newaxis] * served
        ranges = np.clip(np.ceil(served * N_BINS) - 1.0, 0.0, N_BINS - 1.0).astype(np.int64)
        ranges += N_BINS * np.arange(resamples)
        total = np.bincount(ranges.ravel(), gaps.ravel(), N_BINS * resamples)
        off = np.abs(total).reshape(resamples, N_BINS).sum(axis=1)
        return np.asarray(off / max(int(self.sizes.sum()), 1), dtype=np.float64)


def _hat_shares(
    table: BinTable, uncertainty: Uncertainty, cells: BinIndex, sizes: Counts
) -> Floats:
    values = uncertainty.astype(np.float64)
    shares = np.empty((len(sizes), table.n_bins))
    for column, hat in enumerate(np.eye(table.n_bins)):
        weights = np.interp(values, table.mean_uncertainty, hat)
        shares[:, column] = np.bincount(cells, weights=weights, minlength=len(sizes))
    return np.asarray(shares / sizes[:, np.newaxis], dtype=np.float64)


def _draw(rng: np.random.Generator, counts: Counts, mean: Rates, resamples: int) -> Counts:
    # Resamples are the last axis: the generator reuses its tables while count and mean are equal.
    chance = np.clip(mean, 0.0, 1.0)
    shape = (len(counts), resamples)
    return rng.binomial(counts[:, np.newaxis], chance[:, np.newaxis], size=shape)


def _refit(table: BinTable, counts: Counts, hits: Counts | Floats) -> Rates:
    """Return the regularised probability by bin and resample."""
    accuracy = prior_mean(hits.sum(axis=0), counts.sum())
    return regularised_rate(hits, counts[:, np.newaxis], accuracy, table.prior.strength)


def _band(observed: float, errors: Floats, *, refitted: bool = True) -> ConsistencyBand:
    median, upper = np.quantile(errors, [0.5, UPPER])
    return ConsistencyBand(
        "ece_15", observed, float(median), float(upper), len(errors), refitted=refitted
    )
