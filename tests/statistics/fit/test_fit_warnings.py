from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions


def warnings_of(ranks, **options):
    records = records_with_ranks(ranks)
    return fit_calibration(records, options=FitOptions(top_k=(1,), **options)).warnings


def said(warnings, *parts):
    return [text for text in warnings if all(part in text for part in parts)]


def test_a_healthy_set_is_warned_about_only_if_a_baseline_is_better():
    """Five steps lose to a temperature; a curve does not."""
    records = simulated_records(4000, seed=1, sharpness=3.0)
    options = FitOptions(top_k=(1,), bins=5)
    assert fit_calibration(records, options=options).warnings == []
    fit = fit_calibration(records, options=replace(options, lookup="step"))
    assert fit.warnings == [fit.events[1].verdict.sentence]


FEWER = "means over fewer folds"
MISSING = "scores that need both hits and errors are missing"


@pytest.mark.parametrize(
    ("ranks", "parts"),
    [
        ([0] * 100, ("always holds in 100 calibration samples", "towards 0.995", MISSING)),
        ([1] * 100, ("never holds in 100 calibration samples", "towards 0.0049", MISSING)),
        ([0] * 99 + [1], ("Top-1 fails 1 time in 100", FEWER)),
        ([0] * 97 + [1] * 3, ("Top-1 fails 3 times in 100", FEWER)),
        ([1] * 97 + [0] * 3, ("Top-1 holds 3 times in 100", FEWER)),
        ([0, 1, 0], ("3 calibration samples make 3 folds, not 10",)),
        ([0], ("cannot be cross-validated",)),
    ],
)
def test_sets_too_small_or_too_alike_for_their_folds(ranks, parts):
    assert said(warnings_of(ranks), *parts)


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
    assert len(texts) == 5
    assert said(warnings_of([0], bins=8), "8 bins requested, 1 created")


def test_bins_that_pooling_merged_are_no_ties():
    ranks = np.random.default_rng(0).integers(0, 2, 400).tolist()
    records = records_with_ranks(ranks)
    fit = fit_calibration(records, options=FitOptions(top_k=(1,), bins=8, monotone=True))
    assert fit.events[1].measures["entropy"].table.n_bins < 8
    assert not said(fit.warnings, "share a bin")


def test_the_widest_interval_is_named_unless_it_is_narrow():
    (text,) = said(warnings_of([0, 1] * 50, bins=2), "the widest interval reaches from")
    assert text.endswith("with 50 calibration samples.")
    assert not said(warnings_of([0, 1] * 500, bins=2), "widest")
