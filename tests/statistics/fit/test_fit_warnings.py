import numpy as np
import pytest
from score_strategies import records_with_ranks, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions


def warnings_of(ranks, **options):
    records = records_with_ranks(ranks)
    return fit_calibration(records, options=FitOptions(top_k=(1,), **options)).warnings


def said(warnings, *parts):
    return [text for text in warnings if all(part in text for part in parts)]


def test_a_healthy_set_is_not_warned_about():
    fit = fit_calibration(
        simulated_records(4000, seed=1, sharpness=3.0), options=FitOptions(top_k=(1,), bins=5)
    )
    assert fit.warnings == [fit.events[1].verdict.sentence]


def test_a_baseline_that_clearly_beats_the_bins_is_named():
    records = simulated_records(4000, seed=1)
    coarse = fit_calibration(records, options=FitOptions(top_k=(1,), bins=2))
    (text,) = said(coarse.warnings, "has the least cross-validated negative log-likelihood")
    assert text == coarse.events[1].verdict.sentence
    assert coarse.events[1].verdict.cross_validation.difference.clear


def test_a_baseline_that_may_be_better_by_chance_is_not():
    fit = fit_calibration(records_with_ranks([0, 1] * 100), options=FitOptions(top_k=(1,)))
    found = fit.events[1].verdict.cross_validation
    assert found.best == "bins" or not found.difference.clear
    assert not said(fit.warnings, "cross-validated negative log-likelihood")


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([0] * 100, "Top-1 always holds in 100 calibration samples"),
        ([1] * 100, "Top-1 never holds in 100 calibration samples"),
    ],
)
def test_an_event_that_does_not_vary(ranks, expected):
    warnings = warnings_of(ranks)
    assert said(warnings, expected, "scores that need both hits and errors are missing")


def test_the_stand_in_for_an_accuracy_of_one_is_named():
    assert said(warnings_of([0] * 100), f"towards {100.5 / 101:.6g} in place of 1")


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([0] * 99 + [1], "Top-1 fails 1 time in 100"),
        ([0] * 97 + [1] * 3, "Top-1 fails 3 times in 100"),
        ([1] * 97 + [0] * 3, "Top-1 holds 3 times in 100"),
    ],
)
def test_fewer_errors_or_hits_than_folds(ranks, expected):
    assert said(warnings_of(ranks), expected, "means over fewer folds")


def test_enough_errors_are_not_remarked():
    assert not said(warnings_of([0] * 90 + [1] * 10), "fewer folds")


def test_what_is_a_finding_is_not_said_twice():
    """Too few samples for the bins: tests/statistics/findings/test_few_samples_for_bins.py."""
    assert not said(warnings_of([0, 1] * 50, bins=5), "bins share")
    assert not said(warnings_of([0, 1] * 24), "One bin")


def test_fewer_samples_than_folds():
    assert said(warnings_of([0, 1, 0]), "3 calibration samples make 3 folds, not 10")
    assert said(warnings_of([0]), "cannot be cross-validated")


def test_bins_that_ties_merged():
    records = records_with_ranks([0, 1] * 100)
    tied = records.uncertainty["margin"].copy()
    tied[:150] = 0.5
    records.uncertainty["margin"] = tied
    fit = fit_calibration(records, options=FitOptions(top_k=(1,), bins=8, folds=4))
    (text,) = said(fit.warnings, "samples with equal uncertainty share a bin")
    left = fit.events[1].measures["margin"].quantile_bins
    assert text.startswith(f"Top-1, margin: 8 bins requested, {left} created")
    assert left < 8


def test_more_bins_than_samples_are_no_ties():
    warnings = warnings_of([0, 1, 0, 0], bins=8)
    assert not said(warnings, "equal uncertainty")
    texts = said(warnings, "8 bins requested, 4 created: every sample has its own")
    assert len(texts) == 4
    assert said(warnings_of([0], bins=8), "8 bins requested, 1 created")


def test_bins_that_pooling_merged_are_no_ties():
    ranks = np.random.default_rng(0).integers(0, 2, 400).tolist()
    records = records_with_ranks(ranks)
    fit = fit_calibration(records, options=FitOptions(top_k=(1,), bins=8, monotone=True))
    assert fit.events[1].measures["entropy"].table.n_bins < 8
    assert not said(fit.warnings, "equal values")


def test_the_widest_interval_and_the_labels_that_would_narrow_it():
    (text,) = said(warnings_of([0, 1] * 50, bins=2), "the widest interval reaches from")
    assert "with 50 calibration samples" in text
    assert "more labels would bring it to ±0.05" in text
    assert not said(warnings_of([0, 1] * 500, bins=2), "widest")
