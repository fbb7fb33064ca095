"""The expected odds ratio over bins that have a hit and a miss each.

Regularised, bins without an error dominate the expected odds ratio: their odds are what the prior
makes of them. Finlay & Oberman, section 2.1, ask for one correct and one incorrect answer in each
bin; so neighbours are merged until they have both.
"""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Counts, Floats
from howsure.statistics.bins.table import BinTable

N_DRAWS = 200
LEVEL = 0.95


@dataclass(frozen=True)
class MergedOdds:
    """The expected odds ratio, or mean Bayes factor, over merged bins.

    Attributes
    ----------
    eor : float or None
        None where it is not defined: without a hit, or without a miss.
    lower, upper : float or None
        Ends of a bootstrap interval at 95 %; None where more than a twentieth of the draws do not
        define it, and for samples with weights or groups.
    n_bins : int
        Merged bins; 0 where it is not defined.
    one_sided : float or None
        Share of the regularised one that comes from bins without a hit or without a miss.
    """

    eor: float | None
    lower: float | None
    upper: float | None
    n_bins: int
    one_sided: float | None


def merged_odds(table: BinTable) -> MergedOdds:
    """Return the expected odds ratio of a table over merged bins."""
    hits, misses = table.hits.astype(np.float64), (table.counts - table.hits).astype(np.float64)
    is_plain = table.effective is None
    if table.effective is not None:
        hits = table.effective.shares * table.effective.hit_rates
        misses = table.effective.shares - hits
    eor, n_bins = _merged(hits[np.newaxis], misses[np.newaxis])
    parts = table.weights * table.odds_ratios
    sided = (table.hits == 0) | (table.hits == table.counts)
    whole = parts.sum()
    ends = _bootstrap(table.hits, table.counts) if is_plain and n_bins[0] else (None, None)
    return MergedOdds(
        eor=float(eor[0]) if n_bins[0] else None,
        lower=ends[0],
        upper=ends[1],
        n_bins=int(n_bins[0]),
        one_sided=float(parts[sided].sum() / whole) if np.isfinite(whole) else None,
    )


def _merged(hits: Floats, misses: Floats) -> tuple[Floats, Counts]:
    """Return the ratio and the number of bins of each row; both are 0 where it is not defined.

    From the most certain bin on, a merged bin ends as soon as it has both; what is left at the end
    joins the last one.
    """
    n_draws = len(hits)
    total_hits, total_misses = hits.sum(axis=1), misses.sum(axis=1)
    open_hits, open_misses, last_hits, last_misses, total = np.zeros((5, n_draws))
    n_bins = np.zeros(n_draws, np.int64)

    def part(of_hits: Floats, of_misses: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = of_hits * total_misses / (of_misses * total_hits)
            part = (of_hits + of_misses) * np.maximum(ratio, 1.0 / ratio)
        return np.where(of_hits + of_misses > 0.0, part, 0.0)

    for more_hits, more_misses in zip(hits.T, misses.T, strict=True):
        open_hits, open_misses = open_hits + more_hits, open_misses + more_misses
        closed = (open_hits > 0.0) & (open_misses > 0.0)
        total = np.where(closed, total + part(last_hits, last_misses), total)
        last_hits = np.where(closed, open_hits, last_hits)
        last_misses = np.where(closed, open_misses, last_misses)
        open_hits, open_misses = (np.where(closed, 0.0, one) for one in (open_hits, open_misses))
        n_bins += closed
    total += part(last_hits + open_hits, last_misses + open_misses)
    return np.where(n_bins > 0, total / (total_hits + total_misses), 0.0), n_bins


def _bootstrap(hits: Counts, counts: Counts) -> tuple[float | None, float | None]:
    cells = np.concatenate([hits, counts - hits])
    n_samples = int(counts.sum())
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n_samples, cells / n_samples, size=N_DRAWS).astype(np.float64)
    eor, n_bins = _merged(drawn[:, : len(hits)], drawn[:, len(hits) :])
    tail = (1.0 - LEVEL) / 2.0
    if np.mean(n_bins == 0) > 2 * tail:
        return None, None
    lower, upper = np.quantile(eor[n_bins > 0], [tail, 1.0 - tail])
    return float(lower), float(upper)
