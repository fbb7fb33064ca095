"""Weights and groups: weights are repeated rows, and repeated rows in groups are one row each."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import simulated_records

from howsure.statistics.bins.design import (
    SampleDesign,
    TooFewEffectiveSamples,
    effective_bins,
)
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.calibrators.isotonic import fit_isotonic
from howsure.statistics.calibrators.logistic import fit_quadratic_logistic
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
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


def weighted(**options):
    return fit_bin_table(
        U, HITS, n_bins=10, design=SampleDesign(WEIGHTS.astype(np.float64)), **options
    )


def test_weights_are_repeated_rows():
    table, repeated = weighted(), fit_bin_table(U[REPEATED], HITS[REPEATED], n_bins=10)

    np.testing.assert_array_equal(table.edges, repeated.edges)
    np.testing.assert_allclose(table.effective.hit_rates, repeated.hit_rates, rtol=1e-12)
    np.testing.assert_allclose(table.weights, repeated.weights, rtol=1e-12)
    assert table.prior.accuracy == pytest.approx(repeated.prior.accuracy)
    assert table.counts.sum() == N, "counts stay numbers of samples"


def test_the_posterior_follows_the_effective_samples():
    table = weighted(interval=IntervalOptions(method="beta"))
    bins = np.searchsorted(table.edges[1:-1], U)
    for place in range(table.n_bins):
        own = WEIGHTS[bins == place]
        n = own.sum() ** 2 / (own**2).sum()
        rate = own @ HITS[bins == place] / own.sum()
        expected = (n * rate + table.prior.accuracy) / (n + 1.0)
        assert table.probability[place] == pytest.approx(expected)
        assert n < table.counts[place]


@pytest.mark.parametrize("method", ["clopper_pearson", "hoeffding", "beta", "jeffreys", "wilson"])
@pytest.mark.parametrize("lookup", ["step", "interpolated", "smooth"])
def test_equal_weights_change_nothing(method, lookup):
    interval = IntervalOptions(method=method)
    options = {"n_bins": 8, "interval": interval, "lookup": lookup, "measure": "entropy"}
    plain = fit_bin_table(U, HITS, **options)
    equal = fit_bin_table(U, HITS, **options, design=SampleDesign(np.full(N, 0.3)))

    np.testing.assert_array_equal(equal.edges, plain.edges)
    for name in ("probability", "lower", "upper"):
        np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), rtol=1e-9)
    if plain.curve is not None:
        for name in ("probability", "lower", "upper"):
            ours, theirs = getattr(equal.curve, name), getattr(plain.curve, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_scores_of_weighted_samples_are_those_of_repeated_rows():
    table = weighted()
    found = table.look_up(U)
    parts = {"uncertainty": U, "hits": HITS, "probability": found.probability, "bins": found.bin}
    ours = compute_scores(Predictions(**parts, weights=WEIGHTS * 0.7))
    theirs = compute_scores(Predictions(**{name: v[REPEATED] for name, v in parts.items()}))

    assert SCORES.keys() > UNWEIGHTED
    for name in ours.keys() - UNWEIGHTED:
        expected = None if theirs[name] is None else pytest.approx(theirs[name], rel=1e-9)
        assert ours[name] == expected, name


def test_calibrators_of_weighted_samples_are_those_of_repeated_rows():
    x = -U.astype(np.float64)
    ours, theirs = fit_isotonic(x, HITS, WEIGHTS), fit_isotonic(x[REPEATED], HITS[REPEATED])
    np.testing.assert_allclose(ours.probability(x), theirs.probability(x), atol=1e-12)
    ours = fit_quadratic_logistic(x, HITS, WEIGHTS.astype(float))
    theirs = fit_quadratic_logistic(x[REPEATED], HITS[REPEATED])
    assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-3)
    np.testing.assert_allclose(ours.slopes, theirs.slopes, rtol=1e-2)


def test_the_curve_follows_weights():
    """A miss that counts for many pulls the curve down around it."""
    heavy = np.where(~HITS, 6.0, 1.0)
    plain = fit_bin_table(U, HITS, n_bins=5, lookup="smooth", measure="entropy")
    options = {"n_bins": 5, "lookup": "smooth", "measure": "entropy"}
    pulled = fit_bin_table(U, HITS, **options, design=SampleDesign(heavy))
    middle = np.sort(U)[N // 10 : -N // 10]
    assert (pulled.look_up(middle).probability < plain.look_up(middle).probability).all()


class TestGroups:
    def test_duplicated_rows_in_groups_are_worth_one_row_each(self):
        twice = np.repeat(np.arange(N), 2)
        plain = fit_bin_table(U, HITS, n_bins=10)
        alone = fit_bin_table(U[twice], HITS[twice], n_bins=10)
        design = SampleDesign(groups=twice.astype(np.int64))
        grouped = fit_bin_table(U[twice], HITS[twice], n_bins=10, design=design)

        np.testing.assert_allclose(grouped.effective.counts, plain.counts)
        np.testing.assert_allclose(grouped.lower, plain.lower)
        np.testing.assert_allclose(grouped.upper, plain.upper)
        assert (alone.upper - alone.lower < 0.8 * (plain.upper - plain.lower)).all()

    def test_groups_without_a_common_fate_are_worth_their_samples(self):
        groups = rng.integers(0, 100, 5000)
        hits = rng.random(5000) < 0.8
        design = SampleDesign(groups=groups)
        found = effective_bins(np.zeros(5000, np.int64), hits, 1, design)
        assert 2500 < found.counts[0] <= 5000

    def test_intervals_of_clustered_hits_cover(self):
        """Groups of 10 whose hit rates vary: intervals of single samples cover far too little."""
        covered = {"grouped": 0, "single": 0}
        for _ in range(200):
            rates = np.repeat(rng.beta(4, 1, 60), 10)
            hits = rng.random(600) < rates
            groups = np.repeat(np.arange(60), 10)
            for name, design in (("grouped", SampleDesign(groups=groups)), ("single", None)):
                flat = np.zeros(600, np.float32)
                table = fit_bin_table(flat, hits, n_bins=1, design=design)
                covered[name] += table.lower[0] <= 0.8 <= table.upper[0]
        assert covered["grouped"] >= 182
        assert covered["single"] < 182

    def test_no_fold_splits_a_group_and_folds_are_alike(self):
        groups = rng.integers(0, 90, N)
        keys = rng.integers(0, 2**32, N, dtype=np.uint32)
        folds = stratified_folds(HITS, keys, n_folds=5, groups=groups)
        assert all(np.unique(folds[groups == group]).size == 1 for group in np.unique(groups))
        for part in (HITS, ~HITS):
            counts = np.bincount(folds[part], minlength=5)
            assert counts.min() > 0.85 * counts.max()
        codes = np.unique(groups, return_inverse=True)[1] * 7 - 3
        order = rng.permutation(N)
        again = stratified_folds(HITS[order], keys[order], n_folds=5, groups=codes[order])
        np.testing.assert_array_equal(again, folds[order])

    def test_there_are_no_more_folds_than_groups(self):
        folds = stratified_folds(
            HITS, np.arange(N, dtype=np.uint32), n_folds=10, groups=np.arange(N) % 3
        )
        assert set(folds) == {0, 1, 2}


class TestFit:
    OPTIONS = FitOptions(top_k=(1,), measures=("entropy",), bins=5, folds=5)

    def test_a_bin_filled_by_one_weight_is_refused(self):
        records = simulated_records(100, seed=3)
        weights = np.ones(100)
        weights[records.uncertainty["entropy"].argmax()] = 500.0
        with pytest.raises(TooFewEffectiveSamples, match=r"in bin \d of entropy.*fewer bins"):
            fit_calibration(replace(records, weight=weights), options=self.OPTIONS)

    def test_auto_tries_only_bins_that_are_worth_enough(self):
        records = simulated_records(600, seed=3)
        weights = np.ones(600)
        # One sample outweighs a twentieth of the set, but not a fifth of it.
        weights[records.uncertainty["entropy"].argmin()] = 40.0
        options = replace(self.OPTIONS, bins="auto")
        fitted = fit_calibration(replace(records, weight=weights), options=options)
        found = fitted.events[1].measures["entropy"]
        assert found.table.effective.counts.min() >= 5.0
        assert max(candidate.n_bins for candidate in found.candidates) < 20

    @pytest.mark.parametrize("lookup", ["step", "smooth"])
    def test_a_weighted_fit_is_that_of_repeated_rows(self, lookup):
        records = simulated_records(400, seed=9)
        weights = np.where(records.hits(1), 1, 2)
        weights[-1] += -weights.sum() % 5
        repeated = records.take(np.repeat(np.arange(400), weights))
        options = replace(self.OPTIONS, lookup=lookup)
        ours = fit_calibration(replace(records, weight=weights.astype(float)), options=options)
        theirs = fit_calibration(repeated, options=options)

        event, other = ours.events[1], theirs.events[1]
        assert event.accuracy == pytest.approx(other.accuracy)
        assert ours.model_scores["calibration"].nll == pytest.approx(
            theirs.model_scores["calibration"].nll
        )
        table, expected = event.measures["entropy"].table, other.measures["entropy"].table
        np.testing.assert_allclose(table.effective.hit_rates, expected.hit_rates)
        for name in ("temperature", "quadratic_logistic", "constant"):
            for parameter, value in event.baselines[name].parameters.items():
                assert value == pytest.approx(
                    other.baselines[name].parameters[parameter], rel=0.02, abs=0.01
                )
        # The temperature's scores need no fold of its own: both sides see the same samples.
        raw, same = event.baselines["raw_softmax"].scores, other.baselines["raw_softmax"].scores
        for name in ("nll", "brier", "ece_15", "auroc"):
            assert raw[name].pooled == pytest.approx(same[name].pooled, rel=1e-6)
        found, same = event.measures["entropy"], other.measures["entropy"]
        np.testing.assert_allclose(found.curves.risk_coverage.risk, same.curves.risk_coverage.risk)
        for ours_of, theirs_of in zip(found.coarse.cells, same.coarse.cells, strict=True):
            assert ours_of.probability == pytest.approx(theirs_of.probability)
            assert ours_of.weight == pytest.approx(theirs_of.weight)
        assert any("weights" in warning for warning in ours.warnings)
        assert event.measures["entropy"].guarantee.width is None
        assert event.measures["entropy"].ece_band is None
        assert "(ece_15), which is not tested for chance, because" in event.verdict.sentence

    def test_groups_are_told_and_survive_storage(self):
        records = simulated_records(300, seed=4)
        records = replace(records, group=np.arange(300, dtype=np.int64) // 3)
        again = type(records).from_arrays(records.to_arrays())
        np.testing.assert_array_equal(again.group, records.group)
        fitted = fit_calibration(again, options=self.OPTIONS)
        assert any("100 groups" in warning for warning in fitted.warnings)

    def test_a_further_set_is_scored_by_weight(self):
        records = simulated_records(300, seed=4)
        table = fit_calibration(records, options=self.OPTIONS).events[1].measures["entropy"].table
        weights = np.where(records.hits(1), 1.0, 3.0)
        found = evaluate_set(
            {1: {"entropy": table}},
            records,
            replace(records, weight=weights),
            served={1: "entropy"},
            labelled=True,
            n_classes=10,
        ).events[1]
        assert found.accuracy == pytest.approx(weights @ records.hits(1) / weights.sum())
        judged = found.measures["entropy"]
        assert judged.ece_p_value is None
        # Errors count for three, so fewer are right than stated.
        assert judged.gap_p_value < 1e-6
        assert found.outcome == "worse"
        assert "more than chance explains (p =" in found.sentence

    def test_a_weight_that_is_not_positive_is_refused(self):
        records = simulated_records(10, seed=4)
        with pytest.raises(ValueError, match="weight must hold positive"):
            replace(records, weight=np.zeros(10))
