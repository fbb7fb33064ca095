"""Measure how often the intervals of a bin table contain the truth, by simulation.

    python benchmarks/interval_coverage.py [--runs 400]
    python benchmarks/interval_coverage.py --smooth [--runs 100]

Uncertainties are uniform on (0, 1] and the event holds with a probability that falls from 1 to
0.4, so the true probability of any bin is a known integral. Each run draws a calibration set, fits
a table and checks, bin by bin, whether its interval contains the truth of that bin: edges and
counts come from the same samples. For the interpolated lookup the truth is the probability at each
sample's own uncertainty, which no interval of a bin guarantees.

With --smooth it is the interval of a curve for P(correct | U), at new samples drawn from the same
truth: all of them, the least certain and the most certain tenth. Six truths are drawn: log-odds of
a calibrated, an over- and an underconfident model, two whose probability never reaches 0 or 1, and
the uniform uncertainties above.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.table import BinTable

Draw = Callable[[np.random.Generator, int], np.ndarray]
DROP = 0.6
SIZES = (500, 1000, 5000)
BINS = (10, 50)


@dataclass(frozen=True)
class Coverage:
    """Share of runs whose interval contained the truth: of each bin, and of all bins at once."""

    by_bin: np.ndarray
    together: float
    runs: int

    @property
    def mean(self) -> float:
        """Mean over the bins."""
        return float(self.by_bin.mean())

    @property
    def worst(self) -> float:
        """Minimum of the bins."""
        return float(self.by_bin.min())


def probability(uncertainty: np.ndarray) -> np.ndarray:
    """Return the true probability of the event: convex, falling from 1 to ``1 - DROP``."""
    return 1.0 - DROP * np.sqrt(uncertainty)


def bin_truth(table: BinTable) -> np.ndarray:
    """Return the true probability of each bin, the mean of `probability` over it."""
    edges = np.clip(table.edges.astype(np.float64), 0.0, 1.0)
    integral = edges - DROP * edges**1.5 / 1.5
    return np.diff(integral) / np.diff(edges)


def simulate(
    *,
    n_samples: int,
    n_bins: int,
    interval: IntervalOptions,
    runs: int,
    seed: int = 0,
    lookup: str = "step",
    monotone: bool = False,
) -> Coverage:
    """Return the coverage over this many runs; pooled tables count each sample's bin."""
    rng = np.random.default_rng(seed)
    held, together = [], 0
    for _ in range(runs):
        uncertainty = 1.0 - rng.random(n_samples, dtype=np.float32)
        hits = rng.random(n_samples) < probability(uncertainty.astype(np.float64))
        table = fit_bin_table(
            uncertainty, hits, n_bins=n_bins, interval=interval, lookup=lookup, monotone=monotone
        )
        if lookup == "step" and not monotone:
            truth = bin_truth(table)
            inside = (table.lower <= truth) & (truth <= table.upper)
        else:
            inside = _by_place(table, n_bins)
        held.append(inside)
        together += bool(inside.all())
    return Coverage(np.mean(held, axis=0), together / runs, runs)


def _by_place(table: BinTable, n_bins: int) -> np.ndarray:
    """Return whether the interval contains the truth at evenly spaced uncertainties."""
    places = ((np.arange(n_bins) + 0.5) / n_bins).astype(np.float32)
    found = table.look_up(places)
    truth = probability(places.astype(np.float64))
    if table.lookup == "step":
        truth = bin_truth(table)[found.bin]
    return (found.lower <= truth) & (truth <= found.upper)


@dataclass(frozen=True)
class Truth:
    """The probability of a hit at log-odds x, the law of x, and the measure that shows x."""

    name: str
    probability: Callable[[np.ndarray], np.ndarray]
    draw: Draw
    measure: str = "neg_log_topk_mass"


def normal(mean: float, deviation: float) -> Draw:
    return lambda rng, n: rng.normal(mean, deviation, n)


TRUTHS = (
    Truth("calibrated", expit, normal(2.5, 2.5)),
    Truth("overconfident", lambda x: expit(0.5 * x - 0.2), normal(5.0, 3.5)),
    Truth("underconfident", lambda x: expit(1.6 * x + 0.3), normal(1.2, 1.0)),
    Truth("from .02 to .97", lambda x: 0.02 + 0.95 * expit(x - 1.0), normal(3.0, 3.0)),
    Truth("from .10 to .95", lambda x: 0.1 + 0.85 * expit(0.8 * x), normal(2.0, 2.0)),
    Truth(
        "square root",
        lambda x: probability(np.log1p(np.exp(-x))),
        lambda rng, n: -np.log(np.expm1(1.0 - rng.random(n))),
        measure="margin",
    ),
)
CURVE_SIZES = (200, 600, 5000)
N_NEW = 2000


def simulate_curve(truth: Truth, n_samples: int, *, runs: int) -> tuple[np.ndarray, float]:
    """Return the coverage of all, least certain and most certain samples, and the mean width."""
    held, widths = [], []
    for run in range(runs):
        rng = np.random.default_rng((run, n_samples, TRUTHS.index(truth)))
        x, new = truth.draw(rng, n_samples), np.sort(truth.draw(rng, N_NEW))
        table = fit_bin_table(
            np.log1p(np.exp(-x)).astype(np.float32),
            rng.random(n_samples) < truth.probability(x),
            n_bins=1,
            interval=IntervalOptions(level=0.95),
            lookup="smooth",
            measure=truth.measure,
        )
        found, true = table.look_up(np.log1p(np.exp(-new))), truth.probability(new)
        inside = (found.lower <= true) & (true <= found.upper)
        tenth = N_NEW // 10
        held.append([inside.mean(), inside[:tenth].mean(), inside[-tenth:].mean()])
        widths.append(np.mean(found.upper - found.lower))
    return np.mean(held, axis=0), float(np.mean(widths))


def print_curves(runs: int) -> None:
    print(f"{runs} runs each, nominal 0.95\n")
    print("| truth | n | all | least certain tenth | most certain tenth | mean width |")
    print("|---|---:|---:|---:|---:|---:|")
    for n_samples in CURVE_SIZES:
        rows = []
        for truth in TRUTHS:
            covered, width = simulate_curve(truth, n_samples, runs=runs)
            rows.append([*covered, width])
            _print_row(truth.name, n_samples, rows[-1])
        _print_row("mean", n_samples, np.mean(rows, axis=0).tolist())


def _print_row(name: str, n_samples: int, values: list[float]) -> None:
    print(f"| {name} | {n_samples} | {' | '.join(f'{v:.3f}' for v in values)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--smooth", action="store_true")
    asked = parser.parse_args()
    runs = asked.runs
    if asked.smooth:
        print_curves(runs)
        return
    print(f"{runs} runs each, nominal 0.90\n")
    print("| interval | table | n | bins | mean over bins | worst bin | all bins at once |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for method, simultaneous in (
        ("clopper_pearson", False),
        ("hoeffding", False),
        ("clopper_pearson", True),
        ("beta", False),
        ("jeffreys", False),
        ("wilson", False),
    ):
        interval = IntervalOptions(method, 0.9, simultaneous=simultaneous)
        name = f"{method}, simultaneous" if simultaneous else method
        kinds = [("step", False)]
        if method == "clopper_pearson" and not simultaneous:
            kinds += [("step", True), ("interpolated", True)]
        for lookup, monotone in kinds:
            table = f"{lookup}, monotone" if monotone else lookup
            for n_samples in SIZES:
                for n_bins in BINS:
                    found = simulate(
                        n_samples=n_samples,
                        n_bins=n_bins,
                        interval=interval,
                        runs=runs,
                        lookup=lookup,
                        monotone=monotone,
                    )
                    print(
                        f"| {name} | {table} | {n_samples} | {n_bins} | {found.mean:.3f} "
                        f"| {found.worst:.3f} | {found.together:.3f} |"
                    )


if __name__ == "__main__":
    main()
