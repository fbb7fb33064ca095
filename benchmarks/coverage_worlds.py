"""Measure how often the served interval contains the truth, in worlds where it is known.

    python benchmarks/coverage_worlds.py [--runs 40 30 12] [--measure neg_log_topk_mass]

Scores are those of networks trained here on drawn data. Labels are drawn anew from
``softmax(z / T + bias)`` of those scores, some of them from all classes alike: so the probability
that an answer is right is known for each row. Each run fits the measure and its table to n rows, as
a calibration does by default. The truth at an uncertainty is the mean over the 101 nearest of all
other rows. Shares of rows whose interval contains it: all, the most certain tenth and 1 %, and the
worst tenth; and the width.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.special import softmax
from served_probability import Outputs, drawn_classes, texts, uneven_classes

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.label_model.fit import fit_label_model
from howsure.statistics.label_model.recorded import with_learned
from howsure.statistics.measures import LEARNED, column
from howsure.statistics.records.order import in_canonical_order, stratified_folds

SIZES, RUNS = (200, 600, 5000), (40, 30, 12)
NEAREST = 101
OPTIONS = FitOptions(top_k=(1,))


@dataclass(frozen=True)
class World:
    """The law of the labels: temperature, deviation of class biases, share of random labels."""

    name: str
    scores: str
    temperature: float
    bias: float
    noise: float


WORLDS = (
    World("30 classes, overconfident", "uneven", 1.5, 0.3, 0.0),
    World("10 classes, 2 % noise", "drawn", 1.2, 0.3, 0.02),
    World("10 classes, calibrated", "drawn", 1.0, 0.0, 0.0),
    World("texts, underconfident, .5 % noise", "texts", 0.5, 0.3, 0.005),
    World("30 classes, 12 % right", "uneven", 25.0, 0.3, 0.0),
    World("10 classes, overconfident, .3 % noise", "drawn", 2.0, 0.3, 0.003),
    World("99 % right, .1 % noise", "drawn", 0.25, 0.0, 0.001),
)


@cache
def scores_of(name: str) -> np.ndarray:
    """Return log-probabilities of a network, shape (n_rows, n_classes)."""

    def network(models: Iterator[Outputs], kind: str) -> np.ndarray:
        return next(model for model in models if model.name.endswith(kind)).scores

    match name:
        case "texts":
            return network(texts(), "logistic")
        case "uneven":
            return network(uneven_classes(), "network")
        case _:
            return network(islice(drawn_classes(), 5, 10), "network")


@dataclass(frozen=True)
class Drawn:
    """One draw: what the fit sees, and the other rows by falling certainty with their truth."""

    uncertainty: np.ndarray
    hits: np.ndarray
    measure: str
    new: np.ndarray
    truth: np.ndarray


def draw(world: World, n: int, run: int, measure: str) -> Drawn:
    """Draw labels, fit the measure to ``n`` rows and return it for these and for all others."""
    scores = scores_of(world.scores)
    rng = np.random.default_rng((run, n, WORLDS.index(world)))
    n_rows, n_classes = scores.shape
    # Very small probabilities are raised, so that each class is possible at every temperature.
    p = softmax(
        np.maximum(scores.astype(np.float64), -30.0) / world.temperature
        + rng.normal(0.0, world.bias, n_classes),
        axis=1,
    )
    p = (1.0 - world.noise) * p + world.noise / n_classes
    labels = (p.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(max=n_classes - 1)
    records, order = Outputs("", scores, labels).records(), rng.permutation(n_rows)
    right = p[np.arange(n_rows), records.top_classes[:, 0]][order[n:]]
    fitted, others = in_canonical_order(records.take(order[:n])), records.take(order[n:])
    name = column(measure, 1)
    if measure == LEARNED:
        folds = stratified_folds(fitted.hits(1), fitted.tie_key, n_folds=OPTIONS.folds)
        fit = fit_label_model(fitted, folds, n_classes=n_classes, top_k=(1,))[1]
        fitted = fitted.with_uncertainty({name: fit.uncertainty})
        others = with_learned(others, {1: fit.model})
    new = others.uncertainty[name]
    by_certainty = np.argsort(new, kind="stable")
    truth = uniform_filter1d(right[by_certainty], NEAREST, mode="reflect")
    return Drawn(
        fitted.uncertainty[name], EventSamples(fitted, 1).hits, measure, new[by_certainty], truth
    )


def covered(drawn: Drawn) -> np.ndarray:
    """Return the shares covered: all, each tenth by falling certainty, the first 1 %; the width."""
    table = fit_bin_table(
        drawn.uncertainty, drawn.hits, n_bins=1, lookup="smooth", measure=drawn.measure
    )
    answers = table.look_up(drawn.new)
    inside = (answers.lower <= drawn.truth) & (drawn.truth <= answers.upper)
    tenths = [part.mean() for part in np.array_split(inside, 10)]
    width = (answers.upper - answers.lower).mean()
    return np.array([inside.mean(), *tenths, inside[: len(inside) // 100].mean(), width])


def measured(world: World, n: int, runs: int, measure: str) -> np.ndarray:
    """Return the means of `covered` over the runs."""
    return np.mean([covered(draw(world, n, run, measure)) for run in range(runs)], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, nargs="+", default=RUNS)
    parser.add_argument("--measure", default=LEARNED)
    arguments = parser.parse_args()
    print("| world | n | all | certain tenth | certain 1 % | worst tenth | width |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with ProcessPoolExecutor() as processes:
        for n, runs in zip(SIZES, arguments.runs, strict=True):
            jobs = [
                processes.submit(measured, world, n, runs, arguments.measure) for world in WORLDS
            ]
            rows = [job.result() for job in jobs]
            for name, row in zip(
                [*(world.name for world in WORLDS), "mean"],
                [*rows, np.mean(rows, axis=0)],
                strict=True,
            ):
                values = row[0], row[1], row[11], row[1:11].min(), row[12]
                print(f"| {name} | {n} | {' | '.join(f'{v:.3f}' for v in values)} |", flush=True)


if __name__ == "__main__":
    main()
