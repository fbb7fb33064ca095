import numpy as np
from core_strategies import logit_blocks, quick
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.softmax import label_ranks, top_classes


def full_ranking(scores):
    """Sort each row in Python by falling score, then by class."""
    return np.array([sorted(range(len(row)), key=lambda c: (-row[c], c)) for row in scores])


@quick
@given(logit_blocks(), st.data())
def test_top_classes_are_the_head_of_the_full_ranking(scores, data):
    n_top = data.draw(st.integers(1, scores.shape[1]))
    np.testing.assert_array_equal(top_classes(scores, n_top), full_ranking(scores)[:, :n_top])


@quick
@given(logit_blocks())
def test_the_rank_of_a_label_is_its_place_in_the_full_ranking(scores):
    ranking = full_ranking(scores)
    for place in range(scores.shape[1]):
        labels = ranking[:, place].astype(np.int64)
        np.testing.assert_array_equal(label_ranks(scores, labels), place)


def test_ties_at_the_boundary_go_to_the_lower_class_among_many():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, size=(40, 500)).astype(np.float64)
    np.testing.assert_array_equal(top_classes(scores, 7), full_ranking(scores)[:, :7])


def test_zero_and_minus_zero_tie():
    assert top_classes(np.array([[-0.0, 0.0, -1.0]]), 2).tolist() == [[0, 1]]
