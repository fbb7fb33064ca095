"""Top classes, label ranks, heads and tails of the softmax."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import logit_blocks

from howsure.statistics.softmax import label_ranks, n_recorded_classes, top_classes


def full_ranking(scores):
    """Sort each row in Python by falling score, then by class."""
    return np.array([sorted(range(len(row)), key=lambda c: (-row[c], c)) for row in scores])


@given(logit_blocks(), st.data())
def test_top_classes_are_the_head_of_the_full_ranking(scores, data):
    n_top = data.draw(st.integers(1, scores.shape[1]))
    np.testing.assert_array_equal(top_classes(scores, n_top), full_ranking(scores)[:, :n_top])


@given(logit_blocks())
def test_the_rank_of_a_label_is_its_place_in_the_full_ranking(scores):
    ranking = full_ranking(scores)
    for place in range(scores.shape[1]):
        labels = ranking[:, place].astype(np.int64)
        np.testing.assert_array_equal(label_ranks(scores, labels), place)


def test_ties_at_the_boundary_go_to_the_lower_class_among_many():
    scores = np.random.default_rng(0).integers(0, 4, size=(40, 500)).astype(np.float64)
    np.testing.assert_array_equal(top_classes(scores, 7), full_ranking(scores)[:, :7])


def test_few_classes_are_all_kept_and_otherwise_ten_or_as_many_as_events_need():
    sizes = (2, (1,)), (5, (1,)), (6, (1, 5)), (1000, (1, 5)), (1000, (1, 10))
    assert [n_recorded_classes(*size) for size in sizes] == [2, 5, 6, 10, 10]


@pytest.mark.parametrize(
    ("top_k", "rule"), [((1, 5), "not 5"), ((0,), "not 0"), ((1, 1), "distinct"), ((), "one")]
)
def test_events_out_of_range_are_refused(top_k, rule):
    with pytest.raises(ValueError, match=rule):
        n_recorded_classes(5, top_k)
