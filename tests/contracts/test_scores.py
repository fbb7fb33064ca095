"""Laws that every score obeys. One drawn set of samples is judged by all of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_by_table, judged_without_bins

from howsure.statistics.scores import SCORES, Predictions, applicable, compute_scores

any_judged = judged_by_table() | judged_without_bins()


@given(any_judged)
def test_is_a_finite_number_or_undefined_and_leaves_its_input_as_it_was(judged):
    for array in (judged.uncertainty, judged.hits, judged.probability, judged.bins):
        if array is not None:
            array.setflags(write=False)
    for name, score in compute_scores(judged).items():
        assert score is None or (type(score) is float and np.isfinite(score)), name


@given(any_judged, st.data())
def test_ignores_the_order_of_samples(judged, data):
    order = np.array(data.draw(st.permutations(range(judged.n_samples))))
    names = ["uncertainty", "hits", "probability", *(() if judged.bins is None else ("bins",))]
    shuffled = replace(judged, **{name: getattr(judged, name)[order] for name in names})
    expected = compute_scores(judged)
    for name, score in compute_scores(shuffled).items():
        assert (score is None) == (expected[name] is None), name
        if score is not None:
            assert score == pytest.approx(expected[name], rel=1e-12, abs=1e-12), name


@given(any_judged)
def test_nothing_scores_better_than_the_truth(judged):
    hits, bins = judged.hits, (~judged.hits).astype(np.int64)
    about = {"probability": hits.astype(np.float64), "bins": bins}
    truth = Predictions(uncertainty=bins.astype(np.float32), hits=hits, **about)
    best = compute_scores(truth)
    for name, score in compute_scores(judged).items():
        if score is None or best[name] is None:
            continue
        if SCORES[name].larger_is_better is not False:
            assert score <= best[name] + 1e-12, name
        if not SCORES[name].larger_is_better:
            assert score >= best[name] - 1e-12, name


@given(judged_by_table(), judged_without_bins())
def test_a_table_gets_every_score_and_a_baseline_those_that_need_no_bins(by_table, without_bins):
    assert list(compute_scores(by_table)) == list(SCORES)
    assert tuple(compute_scores(without_bins)) == applicable(has_bins=False)
    assert {"brier", "nll", "ece_15", "mce_15", "auroc", "aurc"} <= set(applicable(has_bins=False))


def test_no_samples_leave_every_score_undefined():
    none = np.empty(0)
    judged = Predictions(uncertainty=none.astype(np.float32), hits=none > 0, probability=none)
    assert compute_scores(judged) == dict.fromkeys(applicable(has_bins=False))
