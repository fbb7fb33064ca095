"""Sets with equally many samples of each class, weighted by the shares of classes in traffic."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import records_of
from scipy.special import softmax

from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.label_model.recorded import with_learned

POPULATION, N_JUDGED, EACH = 40_000, 20_000, 1000
LONG = [pytest.param(range(at, at + 20), marks=pytest.mark.slow) for at in range(2, 202, 20)]


def losses(seed, n_classes):
    """Return the loss of the served number, and the least of a baseline, where truth is known.

    The model was trained on balanced classes, and is too sure or not sure enough.
    """
    rng = np.random.default_rng(seed)
    shares = np.maximum(rng.dirichlet(np.full(n_classes, 0.7)), 0.02)
    shape = (POPULATION + N_JUDGED, n_classes)
    logits = rng.normal(size=shape) * rng.uniform(0.8, 2.5) + np.log(shares)
    truth = softmax(logits, axis=1)
    labels = (truth.cumsum(axis=1)[:, :-1] < rng.random((len(truth), 1))).sum(axis=1)
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    scores = (logits - np.log(shares)) * rng.uniform(0.7, 1.6)
    of_class = [np.flatnonzero(labels[:POPULATION] == c)[:EACH] for c in range(n_classes)]
    rows, weights = np.concatenate(of_class), shares / [len(own) for own in of_class]
    records = replace(records_of(scores[rows], labels[rows]), weight=weights[labels[rows]])

    event = fit_calibration(records, options=FitOptions(top_k=(1,))).events[1]
    judged = with_learned(
        records_of(scores[POPULATION:], labels[POPULATION:]), {1: event.learned.model}
    )
    right = truth[np.arange(POPULATION, len(truth)), judged.top_classes[:, 0]]

    def loss(probability):
        q = np.clip(probability, 0.5 / len(rows), 1 - 0.5 / len(rows))
        return -(right * np.log(q) + (1 - right) * np.log1p(-q)).mean()

    served = event.measures[event.served]
    samples, others = EventSamples(records, 1), EventSamples(judged, 1)
    baselines = [one.fit(samples, slice(None))(others).probability for one in BASELINES.values()]
    ours = served.table.look_up(judged.uncertainty[served.column]).probability
    return loss(ours), min(map(loss, baselines))


@pytest.mark.parametrize("seeds", [range(2), *LONG])
def test_what_is_served_is_no_worse_than_any_baseline_on_the_traffic(seeds):
    for seed in seeds:
        served, best = losses(seed, n_classes=(2, 3, 5)[seed % 3])
        assert served <= 1.02 * best, seed
