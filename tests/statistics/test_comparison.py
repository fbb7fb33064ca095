"""Paired differences, and comparisons of two calibrations."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import simulated_records
from scipy.stats import t as student_t
from scipy.stats import ttest_rel

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.comparison import (
    PairedDifference,
    Served,
    accuracy_difference,
    are_same_samples,
    compare_on_folds,
    compare_on_samples,
    fold_difference,
)
from howsure.statistics.fit.cross_validation import FoldScore


def test_pairs_without_both_are_left_out_and_one_pair_has_no_error():
    found = fold_difference((0.5, None, 0.9, 0.2), (0.1, 0.3, None, 0.4))
    assert (found.mean, found.pairs) == (pytest.approx(0.1), 2)
    assert fold_difference((None, 1.0), (1.0, None)) is fold_difference((), ()) is None
    assert fold_difference((0.5,), (0.25,)) == PairedDifference(0.25, None, 1)


@pytest.mark.parametrize("rivals", [1, 9])
def test_a_difference_is_clear_beyond_chance_with_so_many_pairs_and_rivals(rivals):
    for pairs in (2, 10, 600):
        least = student_t.isf(0.05 / max(rivals, 2), pairs - 1) * 0.1
        sides = [
            PairedDifference(mean, 0.1, pairs, rivals) for mean in (least * 1.01, least * -0.99)
        ]
        assert [one.clear for one in sides] == [True, False]
    assert not PairedDifference(0.25, None, 1).clear


COLUMN = "neg_log_pmax"


def served_of(records, *, n_bins):
    fitted = simulated_records(400, seed=1)
    table = fit_bin_table(fitted.uncertainty[COLUMN], fitted.hits(1), n_bins=n_bins)
    return Served(table, COLUMN, records)


def test_samples_are_compared_one_by_one():
    records = simulated_records(300, seed=2)
    hits, pair = records.hits(1), [served_of(records, n_bins=n_bins) for n_bins in (2, 8)]
    found = compare_on_samples(1, *pair)
    assert found.paired
    q = [one.table.look_up(records.uncertainty[COLUMN]).probability for one in pair]
    losses = {"nll": [-np.where(hits, np.log(p), np.log1p(-p)) for p in q]}
    losses["brier"] = [(p - hits) ** 2 for p in q]
    for name, (ours, theirs) in losses.items():
        difference = found.differences[name]
        assert difference.mean == pytest.approx((theirs - ours).mean(), rel=1e-9)
        statistic = ttest_rel(theirs, ours).statistic
        assert difference.mean / difference.standard_error == pytest.approx(statistic, rel=1e-9)
        assert difference.pairs == 300
    assert found.differences["accuracy"].mean == 0.0


@pytest.mark.parametrize("places", [(0, 1), (1, 0), (0, 0)])
def test_an_infinite_loss_is_no_difference(places):
    """The prior is too weak for float64 to tell a bin of hits alone from certainty."""
    records = simulated_records(400, seed=1)
    values = records.uncertainty[COLUMN]
    hits = values < np.median(values)
    weak, usual = ({"n_bins": 2, "prior_strength": strength} for strength in (1e-20, 1.0))
    tables = fit_bin_table(values, hits, **weak), fit_bin_table(values, hits, **usual)
    assert tables[0].probability[0] == 1.0
    found = compare_on_samples(1, *(Served(tables[place], COLUMN, records) for place in places))
    assert set(found.differences) == {"brier", "accuracy"}


def test_samples_are_the_same_where_labels_are_in_one_order():
    """Of other files, or of the outputs of other models; sorted labels tell nothing."""
    labels, other = (simulated_records(300, seed=seed).label for seed in (2, 3))
    assert are_same_samples(labels, labels.copy())
    assert not are_same_samples(labels, other)
    assert not are_same_samples(labels, labels[:299])
    assert not are_same_samples(labels, np.roll(labels, 1))
    assert not are_same_samples(np.sort(labels), np.sort(labels))
    one, two = (served_of(simulated_records(50, seed=seed), n_bins=2) for seed in (2, 3))
    with pytest.raises(ValueError, match="their labels differ"):
        compare_on_samples(1, one, two)


ALIKE = ((0.9, 1000), (0.9, 1000))


def test_folds_are_compared_by_their_means():
    first = {"nll": FoldScore(0.30, 0.05, 10, None), "brier": FoldScore(0.1, 0.02, 10, None)}
    second = {"nll": FoldScore(0.27, 0.08, 5, None), "brier": FoldScore(None, None, 0, None)}
    found = compare_on_folds(5, first, second, accuracies=ALIKE)

    assert (found.k, found.paired, set(found.differences)) == (5, False, {"nll", "accuracy"})
    difference = found.differences["nll"]
    variance = 0.08**2 * (1 / 5 + 1 / 4) + 0.05**2 * (1 / 10 + 1 / 9)  # Nadeau & Bengio
    assert difference.mean == pytest.approx(-0.03)
    assert difference.standard_error == pytest.approx(variance**0.5, rel=1e-9)
    single = {"nll": FoldScore(0.2, None, 1, None)}
    found = compare_on_folds(1, single, first, accuracies=ALIKE)
    assert found.differences["nll"].standard_error is None


def test_a_model_that_is_always_wrong_does_not_win():
    """Its own answers are the easiest to rate, so its loss is the smallest."""
    right, wrong = simulated_records(400, seed=2), simulated_records(400, seed=2)
    wrong = replace(wrong, label_rank=np.ones(400, np.int32))
    first, second = (
        Served(fit_bin_table(own.uncertainty[COLUMN], own.hits(1), n_bins=2), COLUMN, own)
        for own in (right, wrong)
    )
    found = compare_on_samples(1, first, second)
    assert found.differences["nll"].mean < 0
    assert found.differences["nll"].clear
    assert not found.rates_the_same
    assert compare_on_samples(1, first, first).rates_the_same


def test_accuracies_of_two_sets_are_compared_by_their_samples():
    one, same = {"nll": FoldScore(0.3, 0.05, 10, None)}, (0.9, 1000)
    for other, rates_the_same in (((0.89, 1000), True), ((0.85, 1000), False), ((0.85, 100), True)):
        accuracies = same, other
        found = compare_on_folds(1, one, one, accuracies=accuracies)
        assert found.differences["accuracy"].mean == pytest.approx(other[0] - 0.9)
        assert found.rates_the_same == rates_the_same
    assert accuracy_difference((1.0, 50), (1.0, 50)).standard_error > 0
    # Without any other score there is nothing to compare.
    assert not compare_on_folds(1, {}, one, accuracies=accuracies).differences


@pytest.mark.parametrize(
    ("n_wrong", "is_too_rare"), [(0, True), (9, True), (10, False), (391, True)]
)
def test_losses_are_not_compared_without_errors(n_wrong, is_too_rare):
    """The larger probabilities have the smaller loss, with hardly any standard error."""
    records, rng = simulated_records(400, seed=2), np.random.default_rng(1)
    records = replace(records, label_rank=(np.arange(400) < n_wrong).astype(np.int32))
    values = records.uncertainty[COLUMN]
    tables = [fit_bin_table(values, rng.random(400) < rate, n_bins=2) for rate in (0.9, 0.99)]
    found = compare_on_samples(1, *(Served(table, COLUMN, records) for table in tables))
    assert (found.n_wrong, found.n_right) == (n_wrong, 400 - n_wrong)
    assert found.differences["nll"].clear or n_wrong > 0
    folds = {"nll": FoldScore(0.3, 0.05, 10, None)}
    accuracies = (1.0 - n_wrong / 400, 400), (0.5, 400)
    of_folds = compare_on_folds(1, folds, folds, accuracies=accuracies)
    assert found.is_too_rare == of_folds.is_too_rare == is_too_rare
