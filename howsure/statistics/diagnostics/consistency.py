"""Whether a calibration error is more than chance: consistency bands and a permutation test."""

from dataclasses import dataclass, field

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.prior import prior_accuracy, regularised_rate
from howsure.statistics.bins.table import BinTable
from howsure.statistics.scores import Predictions
from howsure.statistics.scores.binned_error import ece, equal_range_bins

RESAMPLES = 2000


def ece_permutation_test(
    table: BinTable, judged: Predictions, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> float:
    """Return how often chance alone parts the hits as unevenly between fit and judged set.

    If the bins' probabilities are the same in both, then, given all hits of a bin, any of its
    samples are as likely to have had them: hits are dealt anew, hypergeometrically, the table is
    made from those of the fit, and its error taken on the rest. Unlike the consistency band, this
    does not take the probabilities served for the truth, which those of a table fitted on one
    error in thousands of samples are far from. Exact for a step table that was not pooled.

    Returns
    -------
    float
        At least ``1 / (1 + resamples)``.
    """
    bins = np.asarray(judged.bins, dtype=np.int64)
    counts = np.bincount(bins, minlength=table.n_bins)
    hits = table.hits + np.bincount(bins[judged.hits], minlength=table.n_bins)
    misses = table.counts + counts - hits
    dealt = rng.hypergeometric(hits, misses, counts, size=(resamples, table.n_bins))
    held = np.flatnonzero(counts)
    # An interpolated table serves, on average over a bin, something else than the bin's own.
    off = judged.occupied.probability - table.probability[held]
    accuracy = prior_accuracy((hits - dealt).sum(axis=1, keepdims=True), table.n_samples)
    refitted = regularised_rate(hits - dealt, table.counts, accuracy, table.prior.strength)
    probability = refitted[:, held] + off
    errors = np.abs(dealt[:, held] / counts[held] - probability) @ judged.occupied.weights
    observed = ece(judged) * (1.0 - 1e-9)  # the deal that was observed counts, to the last bit
    return float((1 + np.count_nonzero(errors >= observed)) / (1 + resamples))


CONSISTENCY_RESAMPLES = 1000
UPPER = 0.99
ROUNDING = 1e-9


@dataclass(frozen=True)
class ConsistencyBand:
    """A calibration error beside those of a world in which the probabilities served are true.

    Attributes
    ----------
    score : str
        Name of the score.
    observed : float
        Its value on the data.
    median, upper : float
        Median and 99 % point over resampled labels. A value above ``upper`` is more than chance
        makes of a calibrated table.
    resamples : int
        How often labels were drawn.
    refitted : bool
        Whether the table was made again from drawn labels, too. Where it was not, the band leaves
        out the noise of the fit, and is somewhat too low.
    consistent : bool
        Whether the value could come of a calibrated table.
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
    """Return the band of ``ece`` for a table judged on other samples than it was fitted on.

    Labels of both sets are drawn from the table's own probabilities, bin by bin from the mean of
    its samples; the probabilities are then made again, with edges and pooled bins as they are, and
    judged on the drawn labels.

    Parameters
    ----------
    table : BinTable
    fitted, judged : ndarray of float32, shape (n_fitted,), (n_judged,)
        Uncertainties of the samples that the table was fitted on, and of those that judge it.
    hits : ndarray of bool, shape (n_judged,)
    seed : int
    resamples : int

    Returns
    -------
    ConsistencyBand or None
        None without a judged sample.
    """
    if len(judged) == 0:
        return None
    rng = np.random.default_rng(seed)
    learnt, tested = _Cells.of(table, fitted), _Cells.of(table, judged)
    refitted = _refit(table, learnt.counts, learnt.draw(rng, resamples))
    errors = tested.errors(tested.draw(rng, resamples), refitted)
    truth = np.bincount(tested.bins[hits], minlength=table.n_bins)[:, np.newaxis]
    observed = tested.errors(truth, table.probability[:, np.newaxis])
    return _band("ece", float(observed[0]), errors)


def cross_validated_band(
    table: BinTable,
    uncertainty: Uncertainty,
    folds: BinIndex,
    *,
    observed: float | None,
    seed: int,
    resamples: int = CONSISTENCY_RESAMPLES,
) -> ConsistencyBand | None:
    """Return the band of the mean of ``ece`` over folds.

    Drawn as in `evaluation_band`; each fold is judged by the drawn labels of the others, in the
    bins of ``table``, which the tables of single folds have but for a few samples at the edges.
    None without an observed mean.
    """
    if observed is None:
        return None
    rng = np.random.default_rng(seed)
    cells = [_Cells.of(table, uncertainty[folds == fold]) for fold in range(int(folds.max()) + 1)]
    drawn = [cell.draw(rng, resamples) for cell in cells]
    counts = np.sum([cell.counts for cell in cells], axis=0)
    total = np.sum(drawn, axis=0)
    errors = [
        cell.errors(hits, _refit(table, counts - cell.counts, total - hits))
        for cell, hits in zip(cells, drawn, strict=True)
    ]
    return _band("ece", observed, np.mean(errors, axis=0))


def confidence_band(
    probability: Rates, observed: float | None, *, seed: int, resamples: int = CONSISTENCY_RESAMPLES
) -> ConsistencyBand | None:
    """Return the band of ``ece_15`` for probabilities as they are: only judging labels are drawn.

    None without an observed value.
    """
    if observed is None:
        return None
    _, bins = np.unique(equal_range_bins(probability, 15), return_inverse=True)
    counts = np.bincount(bins)
    means = np.bincount(bins, weights=probability) / counts
    rng = np.random.default_rng(seed)
    drawn = _draw(rng, counts, means, resamples)
    gaps = np.abs(drawn / counts[:, np.newaxis] - means[:, np.newaxis])
    return _band("ece_15", observed, counts / counts.sum() @ gaps, refitted=False)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Samples of one set in the bins of a table.

    ``shares[b, c]`` is by how much the probability of bin ``c`` moves the mean probability served
    to the samples of bin ``b``: None where they are the bin's own, as a step table serves.
    """

    bins: BinIndex
    counts: Counts
    shares: Floats | None
    mean: Rates

    @classmethod
    def of(cls, table: BinTable, uncertainty: Uncertainty) -> "_Cells":
        bins = table.look_up(uncertainty).bin
        counts = np.bincount(bins, minlength=table.n_bins)
        if table.lookup == "step":
            return cls(bins, counts, None, table.probability)
        shares = _hat_shares(table, uncertainty, bins, counts)
        return cls(bins, counts, shares, shares @ table.probability)

    def draw(self, rng: np.random.Generator, resamples: int) -> Counts:
        """Return hits by bin and resample."""
        return _draw(rng, self.counts, self.mean, resamples)

    def errors(self, hits: Counts, probability: Rates) -> Floats:
        """Return the calibration error of each resample."""
        served = probability if self.shares is None else self.shares @ probability
        gaps = np.abs(hits - self.counts[:, np.newaxis] * served)
        return np.asarray(gaps.sum(axis=0) / max(int(self.counts.sum()), 1), dtype=np.float64)


def _hat_shares(
    table: BinTable, uncertainty: Uncertainty, bins: BinIndex, counts: Counts
) -> Floats:
    values = uncertainty.astype(np.float64)
    shares = np.empty((table.n_bins, table.n_bins))
    for column, hat in enumerate(np.eye(table.n_bins)):
        weights = np.interp(values, table.mean_uncertainty, hat)
        shares[:, column] = np.bincount(bins, weights=weights, minlength=table.n_bins)
    shares[counts == 0] = np.eye(table.n_bins)[counts == 0]
    return np.asarray(shares / np.maximum(counts, 1)[:, np.newaxis], dtype=np.float64)


def _draw(rng: np.random.Generator, counts: Counts, mean: Rates, resamples: int) -> Counts:
    # Resamples run along the last axis: the generator keeps its tables while count and mean stay.
    chance = np.clip(mean, 0.0, 1.0)
    shape = (len(counts), resamples)
    return rng.binomial(counts[:, np.newaxis], chance[:, np.newaxis], size=shape)


def _refit(table: BinTable, counts: Counts, hits: Counts) -> Rates:
    """Return the regularised probability by bin and resample."""
    accuracy = prior_accuracy(hits.sum(axis=0), counts.sum())
    return regularised_rate(hits, counts[:, np.newaxis], accuracy, table.prior.strength)


def _band(score: str, observed: float, errors: Floats, *, refitted: bool = True) -> ConsistencyBand:
    median, upper = np.quantile(errors, [0.5, UPPER])
    return ConsistencyBand(
        score, observed, float(median), float(upper), len(errors), refitted=refitted
    )
