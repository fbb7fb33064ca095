"""Weights and groups: weights are repeated rows, and repeated rows in groups are one row each."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import fit_of, records_of, simulated_records

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions
from howsure.statistics.calibrators.isotonic import fit_isotonic
from howsure.statistics.comparison import Served, compare_on_samples
from howsure.statistics.effective import TooFewEffectiveSamples, effective_bins, effective_share
from howsure.statistics.records.order import stratified_folds
from howsure.statistics.scores import SCORES, Predictions, compute_scores
from howsure.statistics.shift.evaluation import evaluate_set

rng = np.random.default_rng(5)
N = 600
WEIGHTS = rng.integers(1, 5, N)
WEIGHTS[-1] += -WEIGHTS.sum() % 10
U = rng.gamma(1.0, size=N).astype(np.float32)
HITS = rng.random(N) < np.exp(-U)
REPEATED = np.repeat(np.arange(N), WEIGHTS)
# These count each sample as one.
UNWEIGHTED = {"ece_equal_mass", "l2_debiased", "aece", "amce", "aurc", "e_aurc"}
RATES = ("probability", "lower", "upper")


def fitted(values=U, hits=HITS, *, weights=None, groups=None, **options):
    options = {"n_bins": 10, "measure": "entropy", **options}
    return fit_bin_table(values, hits, design=SampleDesign(weights, groups), **options)


def weighted(**options):
    return fitted(weights=WEIGHTS.astype(np.float64), **options)


def test_weights_are_repeated_rows():
    table, repeated = weighted(), fit_bin_table(U[REPEATED], HITS[REPEATED], n_bins=10)
    np.testing.assert_array_equal(table.edges, repeated.edges)
    np.testing.assert_allclose(table.effective.hit_rates, repeated.hit_rates, rtol=1e-12)
    np.testing.assert_allclose(table.weights, repeated.weights, rtol=1e-12)
    assert table.prior.accuracy == pytest.approx(repeated.prior.accuracy)
    assert table.counts.sum() == N, "counts stay numbers of samples"


def test_the_posterior_follows_the_effective_samples():
    """These are as many as an operating point of the bin's samples is worth."""
    groups = np.random.default_rng(6).integers(0, 90, N)
    design = SampleDesign(WEIGHTS.astype(np.float64), groups)
    options = {"n_bins": 4, "interval": IntervalOptions(method="beta")}
    table = fitted(weights=design.weight, groups=design.group, **options)
    bins = np.searchsorted(table.edges[1:-1], U)
    for place in range(table.n_bins):
        rows = bins == place
        own = effective_share(HITS[rows], design.take(rows))
        n, rate = own.n_effective, own.share
        assert table.effective.counts[place] == pytest.approx(n)
        expected = (n * rate + table.prior.accuracy) / (n + 1.0)
        assert table.probability[place] == pytest.approx(expected)


WAYS = [*((method, "step") for method in INTERVALS), ("beta", "interpolated"), ("beta", "smooth")]


@pytest.mark.parametrize(("method", "lookup"), WAYS)
def test_equal_weights_change_nothing(method, lookup):
    options = {"interval": IntervalOptions(method=method), "lookup": lookup}
    plain = fit_bin_table(U, HITS, n_bins=10, measure="entropy", **options)
    equal = fitted(weights=np.full(N, 0.3), **options)
    np.testing.assert_array_equal(equal.edges, plain.edges)
    ours, theirs = equal.look_up(U), plain.look_up(U)
    for name in RATES:
        np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), rtol=1e-9)
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6)


def test_scores_of_weighted_samples_are_those_of_repeated_rows():
    found = weighted().look_up(U)
    parts = {"uncertainty": U, "hits": HITS, "probability": found.probability, "bins": found.bin}
    ours = compute_scores(Predictions(**parts, design=SampleDesign(WEIGHTS * 0.7)))
    theirs = compute_scores(Predictions(**{name: v[REPEATED] for name, v in parts.items()}))
    assert SCORES.keys() > UNWEIGHTED
    for name in ours.keys() - UNWEIGHTED:
        expected = None if theirs[name] is None else pytest.approx(theirs[name], rel=1e-9)
        assert ours[name] == expected, name


def test_isotonic_regression_of_weighted_samples_is_that_of_repeated_rows():
    x = -U.astype(np.float64)
    ours, theirs = (
        fit_isotonic(x, HITS, WEIGHTS),
        fit_isotonic(x[REPEATED], HITS[REPEATED], np.ones(REPEATED.size)),
    )
    np.testing.assert_allclose(ours.probability(x), theirs.probability(x), atol=1e-12)


def test_the_curve_follows_weights():
    """A miss that counts for many pulls the curve down around it."""
    weights = [np.where(HITS, 1.0, of_misses) for of_misses in (1.0, 6.0)]
    plain, pulled = (fitted(weights=own, n_bins=5, lookup="smooth") for own in weights)
    middle = np.sort(U)[N // 10 : -N // 10]
    assert (pulled.look_up(middle).probability < plain.look_up(middle).probability).all()


def test_duplicated_rows_in_groups_are_worth_one_row_each():
    twice = np.repeat(np.arange(N), 2)
    plain, alone = (fit_bin_table(U[rows], HITS[rows], n_bins=10) for rows in (slice(None), twice))
    grouped = fitted(U[twice], HITS[twice], groups=twice)
    np.testing.assert_allclose(grouped.effective.counts, plain.counts)
    np.testing.assert_allclose(grouped.lower, plain.lower)
    np.testing.assert_allclose(grouped.upper, plain.upper)
    assert (alone.upper - alone.lower < 0.8 * (plain.upper - plain.lower)).all()


def test_groups_without_a_common_fate_are_worth_their_samples():
    design = SampleDesign(group=rng.integers(0, 100, 5000))
    found = effective_bins(np.zeros(5000, np.int64), rng.random(5000) < 0.8, 1, design)
    assert 2500 < found.counts[0] <= 5000


def test_intervals_of_clustered_hits_cover():
    """Groups of 10 whose hit rates vary: intervals of single samples cover far too little."""
    groups, flat, covered = np.repeat(np.arange(60), 10), np.zeros(600, np.float32), np.zeros(2)
    for _ in range(200):
        hits = rng.random(600) < np.repeat(rng.beta(4, 1, 60), 10)
        tables = fitted(flat, hits, n_bins=1, groups=groups), fit_bin_table(flat, hits, n_bins=1)
        covered += [table.lower[0] <= 0.8 <= table.upper[0] for table in tables]
    assert covered[0] >= 182 > covered[1]


def test_no_fold_splits_a_group_and_folds_are_alike():
    groups = rng.integers(0, 90, N)
    keys = rng.integers(0, 2**32, N, dtype=np.uint32)
    folds = stratified_folds(HITS, keys, n_folds=5, design=SampleDesign(group=groups))
    assert all(np.unique(folds[groups == group]).size == 1 for group in np.unique(groups))
    for part in (HITS, ~HITS):
        counts = np.bincount(folds[part], minlength=5)
        assert counts.min() > 0.85 * counts.max()
    codes, order = np.unique(groups, return_inverse=True)[1] * 7 - 3, rng.permutation(N)
    again = stratified_folds(
        HITS[order], keys[order], n_folds=5, design=SampleDesign(group=codes[order])
    )
    np.testing.assert_array_equal(again, folds[order])
    three = stratified_folds(HITS, keys, n_folds=10, design=SampleDesign(group=np.arange(N) % 3))
    assert set(three) == {0, 1, 2}, "no more folds than groups"


def fit_with(records, *, bins=5, **design):
    return fit_of(replace(records, **design), bins=bins, folds=5)


def test_bins_filled_by_one_weight():
    """Are refused, and are not tried by auto: one outweighs a twentieth of the set, no fifth."""
    records = simulated_records(600, seed=3)
    surest = np.arange(600) == records.uncertainty["entropy"].argmin()
    with pytest.raises(TooFewEffectiveSamples, match=r"in bin \d of entropy"):
        fit_with(records, weight=np.where(surest, 3000.0, 1.0))
    fit = fit_with(records, bins="auto", weight=np.where(surest, 40.0, 1.0))
    found = fit.events[1].measures["entropy"]
    assert found.table.effective.counts.min() >= 5.0
    assert max(candidate.n_bins for candidate in found.candidates) < 20


def test_bins_of_the_loss_never_serve_and_may_be_worth_few_samples():
    records = records_of(np.tile([4.0, 0.0, 0.0], (300, 1)), np.arange(300) % 100 // 99)
    fit = fit_with(records, group=np.arange(300) // 2)
    assert fit.events[1].oracle.scores["nll"].pooled >= 0.0


def test_a_weighted_fit_is_that_of_repeated_rows():
    records = simulated_records(400, seed=9)
    weights = np.where(records.hits(1), 1, 2)
    weights[-1] += -weights.sum() % 5
    ours = fit_with(records, weight=weights.astype(float))
    theirs = fit_with(records.take(np.repeat(np.arange(400), weights)))
    event, other = ours.events[1], theirs.events[1]
    assert event.accuracy == pytest.approx(other.accuracy)
    nll = theirs.model_scores["calibration"].nll
    assert ours.model_scores["calibration"].nll == pytest.approx(nll)
    for name in ("temperature", "quadratic_logistic", "constant"):
        same = pytest.approx(other.baselines[name].parameters, rel=0.02, abs=0.01)
        assert event.baselines[name].parameters == same
    # The temperature's scores need no fold of its own: both sides see the same samples.
    raw, same = event.baselines["raw_softmax"].scores, other.baselines["raw_softmax"].scores
    for name in ("nll", "brier", "ece_15", "auroc"):
        assert raw[name].pooled == pytest.approx(same[name].pooled, rel=1e-6)
    found, same = event.measures["entropy"], other.measures["entropy"]
    np.testing.assert_allclose(found.table.effective.hit_rates, same.table.hit_rates)
    np.testing.assert_allclose(found.curves.risk_coverage.risk, same.curves.risk_coverage.risk)
    for cell, expected in zip(found.coarse.cells, same.coarse.cells, strict=True):
        assert cell.probability == pytest.approx(expected.probability)
        assert cell.weight == pytest.approx(expected.weight)
    assert (found.guarantee.width, found.ece_band) == (None, None)


def test_a_further_set_is_scored_by_weight():
    records = simulated_records(300, seed=4)
    table = fit_with(records).events[1].measures["entropy"].table
    weights = np.where(records.hits(1), 1.0, 3.0)
    options = {"served": {1: "entropy"}, "labelled": True, "n_classes": 10}
    weighted_set = replace(records, weight=weights)
    found = evaluate_set({1: {"entropy": table}}, records, weighted_set, **options).events[1]
    assert found.accuracy == pytest.approx(weights @ records.hits(1) / weights.sum())
    judged = found.measures["entropy"]
    # Errors count for three, so fewer are right than stated.
    assert (judged.ece_p_value, found.outcome) == (None, "worse")
    assert judged.gap_p_value < 1e-6


def test_out_of_distribution_thresholds_are_weighted_in_the_fit_and_on_further_sets():
    """Certain answers count for eight: nine tenths of the traffic are far surer than of the set."""
    records = simulated_records(800, seed=1)
    records = replace(records, weight=np.where(records.hits(1), 8.0, 1.0))
    measure = fit_with(records).events[1].measures["entropy"]
    options = {"served": {1: "entropy"}, "labelled": True, "n_classes": 10}
    found = evaluate_set({1: {"entropy": measure.table}}, records, records, **options)
    above = found.events[1].measures["entropy"].discarded
    for level, threshold in measure.ood_thresholds.items():
        flagged = records.uncertainty["entropy"] > np.float32(threshold)
        assert above[level] == pytest.approx(np.average(flagged, weights=records.weight))
        assert 0.0 < above[level] <= 1.0 - level


def test_differences_of_repeated_rows_in_groups_are_as_certain_as_of_one_row_each():
    """In the evaluation of a fit and between calibrations; as samples of their own: 3.5 times."""
    records, judged = simulated_records(500, seed=1), simulated_records(300, seed=2)
    rows = np.repeat(np.arange(300), 12)
    sets = [judged, replace(judged.take(rows), group=rows), judged.take(rows)]
    fits = [fit_of(records, evaluation=one, bins=5).events[1] for one in sets]
    tables = [
        fit_bin_table(judged.uncertainty[name], judged.hits(1), n_bins=5)
        for name in ("entropy", "margin")
    ]
    found = []
    for fit, one in zip(fits, sets, strict=True):
        served = [
            Served(table, name, one)
            for table, name in zip(tables, ("entropy", "margin"), strict=True)
        ]
        found.append((
            fit.baselines["raw_softmax"].evaluation_difference["nll"],
            compare_on_samples(1, *served).differences["brier"],
        ))  # fmt: skip
    for once, grouped, alone in zip(*found, strict=True):
        assert grouped.pairs == once.pairs == 300
        assert grouped.mean == pytest.approx(once.mean)
        assert grouped.standard_error == pytest.approx(once.standard_error)
        assert alone.standard_error < once.standard_error / 3
