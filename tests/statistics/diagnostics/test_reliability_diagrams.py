"""Reliability diagrams by choice of bins, against scores and plain numpy; Top-5 hits by bin."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from sample_strategies import fit_of, judged_without_bins, simulated_records

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.diagnostics.reliability_diagrams import (
    DIAGRAM_KINDS,
    reliability_diagrams,
)
from howsure.statistics.ranking import rank_samples
from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.binned_error import adaptive_cuts

SCORES_OF = {"equal_range_10": ("ece_10", "mce_10"), "adaptive": ("aece", "amce")}
MOST = {"equal_range_10": 10, "equal_range_50": 50, "equal_mass_50": 50, "equal_mass_100": 100}
ROUNDED = 1e-6


def drawn(n_samples, *, seed=0, **others):
    rng = np.random.default_rng(seed)
    probability = rng.random(n_samples) ** 0.3
    hits = rng.random(n_samples) < probability**1.4
    return Predictions(uncertainty=-probability, hits=hits, probability=probability, **others)


def by_hand(kind, probability, hits):
    """Return count, hits and mean probability of each bin, a bin at a time."""
    order = np.argsort(-probability, kind="stable")
    p, hits = probability[order], hits[order]
    family, _, number = kind.rpartition("_")
    if family == "equal_range":
        n = int(number)
        edges = [i / n for i in range(n + 1)]
        edges[0] = -1.0
        groups = [(p > edges[i]) & (p <= edges[i + 1]) for i in reversed(range(n))]
        rows = [np.flatnonzero(group) for group in groups if group.any()]
    elif family == "equal_mass":
        ends = {i * len(p) // int(number) for i in range(int(number) + 1)}
        # Equal probabilities stay together, in the bin of the first of them.
        moved = sorted({max(np.flatnonzero(p == p[end - 1])) + 1 if end else 0 for end in ends})
        rows = [np.arange(a, b) for a, b in pairwise(moved)]
    else:
        cuts = adaptive_cuts(rank_samples(-p, hits))
        rows = [np.arange(a, b) for a, b in pairwise(cuts)]
    return [(len(own), hits[own].sum(), p[own].mean()) for own in rows]


def check(kind, bins, probability, hits):
    expected = by_hand(kind, probability, hits)
    counts, n_hits, said = zip(*expected, strict=True)
    assert (bins.count, bins.hits) == (counts, n_hits)
    assert bins.said == pytest.approx(said, abs=ROUNDED)
    gaps = np.abs(np.divide(n_hits, counts) - said)
    assert bins.ece == pytest.approx(np.average(gaps, weights=counts), abs=1e-12)
    assert bins.mce == pytest.approx(gaps.max(), abs=1e-12)
    # The same from what is stored.
    stored = np.abs(np.divide(bins.hits, bins.count) - bins.said)
    assert np.average(stored, weights=bins.count) == pytest.approx(bins.ece, abs=ROUNDED)


@given(judged_without_bins())
def test_bins_are_those_of_a_second_implementation(judged):
    raw = judged.probability[::-1].copy()
    diagrams = reliability_diagrams(judged, raw)
    assert tuple(diagrams) == DIAGRAM_KINDS
    for kind, diagram in diagrams.items():
        check(kind, diagram.before, raw, judged.hits)
        check(kind, diagram.after, judged.probability, judged.hits)


@pytest.mark.parametrize("n_samples", [1, 7, 70, 1234])
def test_errors_are_the_scores_of_the_same_bins(n_samples):
    judged = drawn(n_samples)
    raw = np.sqrt(judged.probability)
    diagrams = reliability_diagrams(judged, raw)
    own = Predictions(uncertainty=judged.uncertainty, hits=judged.hits, probability=raw)
    for kind, (ece, mce) in SCORES_OF.items():
        for bins, sample in ((diagrams[kind].before, own), (diagrams[kind].after, judged)):
            assert bins.ece == pytest.approx(SCORES[ece].compute(sample), abs=1e-12)
            assert bins.mce == pytest.approx(SCORES[mce].compute(sample), abs=1e-12)
    for kind, most in MOST.items():
        check(kind, diagrams[kind].after, judged.probability, judged.hits)
        assert len(diagrams[kind].after.count) <= min(most, n_samples)


def test_samples_with_weights_have_no_diagrams():
    judged = drawn(50, design=SampleDesign(np.full(50, 2.0)))
    assert reliability_diagrams(judged, judged.probability) is None


def test_a_fit_has_the_diagrams_of_the_set_that_is_judged():
    known, new = (simulated_records(n, seed=n, sharpness=2.0) for n in (900, 1100))
    fit = fit_of(known, evaluation=new, measures=("entropy", "margin"), bins=10, top_k=(1, 5))
    for event in fit.events.values():
        served, raw = event.measures[event.served], event.baselines["raw_softmax"]
        for kind, names in SCORES_OF.items():
            diagram = served.reliability.diagrams[kind]
            for bins, scores in ((diagram.before, raw), (diagram.after, served)):
                expected = [scores.evaluation[name] for name in names]
                assert [bins.ece, bins.mce] == pytest.approx(expected, abs=1e-9)
                assert sum(bins.count) == 1100


def test_errors_of_each_bin_with_the_label_in_the_top_5():
    records = simulated_records(800, seed=1, n_classes=8, top_k=(1, 2, 5))
    fit = fit_of(records, measures=("entropy", "margin"), bins=6, top_k=(1, 2, 5))
    for k, event in fit.events.items():
        assert [m.top5_hits is not None for m in event.measures.values()] == [
            name == event.served and k < 5 for name in event.measures
        ]
        if k == 5:
            continue
        served = event.measures[event.served]
        is_near = (records.label_rank >= k) & (records.label_rank < 5)
        assert served.top5_hits.sum() == is_near.sum() > 0
        assert (served.top5_hits <= served.table.counts - served.table.hits).all()
        value, edges = records.uncertainty[served.column], served.table.edges
        inside = [(value > a) & (value <= b) for a, b in pairwise(edges)]
        assert served.top5_hits.tolist() == [(is_near & one).sum() for one in inside]
    alone = fit_of(records, measures=("entropy",), bins=6, top_k=(1,))
    assert alone.events[1].measures["entropy"].top5_hits is None
