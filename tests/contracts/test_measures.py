"""Laws that every uncertainty measure keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import logit_blocks

from howsure.statistics.measures import (
    SINGLE_PASS_MEASURES,
    column,
    columns,
    output_names,
    parse_measure,
    supplied_names,
)
from howsure.statistics.softmax import rank_scores

KS = {name: (1, 2, 5) if own.per_event else (1,) for name, own in SINGLE_PASS_MEASURES.items()}
EVENTS = [(name, k) for name, ks in KS.items() for k in ks]
EACH = pytest.mark.parametrize(("name", "k"), EVENTS)
NEED_LOGITS = [event for event in EVENTS if SINGLE_PASS_MEASURES[event[0]].needs_logits]
OF_SOFTMAX = pytest.mark.parametrize(("name", "k"), sorted({*EVENTS} - {*NEED_LOGITS}))
OF_LOGITS = pytest.mark.parametrize(("name", "k"), NEED_LOGITS)


def measure(name, logits, k):
    """Compute a measure of the largest event up to k that these logits have."""
    n_classes = logits.shape[1]
    ranked = rank_scores(logits, n_top=n_classes)
    return SINGLE_PASS_MEASURES[name].compute(ranked, min(k, n_classes))


@EACH
@given(logits=logit_blocks())
def test_it_is_finite_and_never_minus_zero_nor_negative_if_of_softmax(name, k, logits):
    values = measure(name, logits, k)
    assert values.shape == (len(logits),)
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    if SINGLE_PASS_MEASURES[name].needs_logits:  # which may be negative
        values = values[values == 0]
    assert not np.signbit(values).any()


@EACH
@given(logits=logit_blocks(), data=st.data())
def test_the_order_of_classes_does_not_show(name, k, logits, data):
    order = data.draw(st.permutations(range(logits.shape[1])))
    reordered = measure(name, logits[:, order], k)
    np.testing.assert_allclose(reordered, measure(name, logits, k), rtol=1e-12)


@OF_SOFTMAX
@given(logits=logit_blocks(), shift=st.integers(-1000, 1000))
def test_adding_a_constant_to_the_logits_does_not_show(name, k, logits, shift):
    # On a grid of 1/16 the shift is exact, and what is compared is the measure's own error.
    grid = np.round(logits * 16) / 16
    np.testing.assert_array_equal(measure(name, grid + shift, k), measure(name, grid, k))


@OF_SOFTMAX
@given(logits=logit_blocks(ruled_out=False), data=st.data())
def test_mixing_with_the_uniform_never_lowers_it(name, k, logits, data):
    share = data.draw(st.floats(0, 1))
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    mixed = (1 - share) * probabilities + share / logits.shape[1]
    assert (measure(name, np.log(mixed), k) >= measure(name, logits, k) * (1 - 1e-9) - 1e-12).all()


@OF_SOFTMAX
def test_logits_as_far_apart_as_float64_allows_are_certain(name, k):
    logits = np.full((1, 7), -1.7e308)
    logits[0, :k] = 1.7e308
    values = measure(name, logits, k)
    assert np.isfinite(values).all()
    if k == 1:
        assert values == [0]


@EACH
@given(logits=logit_blocks())
def test_a_sample_does_not_depend_on_the_samples_beside_it(name, k, logits):
    alone = [measure(name, row[np.newaxis], k)[0] for row in logits]
    np.testing.assert_array_equal(measure(name, logits, k), alone)
    np.testing.assert_array_equal(measure(name, np.asfortranarray(logits), k), alone)


def test_each_column_is_made_once():
    masses = ["neg_log_topk_mass_1", "neg_log_topk_mass_5"]
    of_softmax = [name for name, _, _ in columns((1, 5))]
    assert of_softmax == ["entropy", "neg_log_pmax", *masses, "margin"]
    with_logits = [name for name, _, _ in columns((1, 5), logits=True)]
    assert set(with_logits) - set(of_softmax) == {"energy"}


@OF_LOGITS
@given(logits=logit_blocks(), shift=st.integers(-1000, 1000))
def test_what_needs_logits_moves_with_a_constant_added_to_them(name, k, logits, shift):
    grid = np.round(logits * 16) / 16
    moved = measure(name, grid + shift, k)
    np.testing.assert_allclose(moved, measure(name, grid, k) - shift, atol=1e-9)


def test_a_supplied_measure_has_a_column_of_its_own():
    assert column("supplied:learned", 1) == column("supplied:learned", 5) == "supplied_learned"
    assert parse_measure("supplied:learned").kind == "supplied"
    assert parse_measure("entropy").kind == "single_pass"
    with pytest.raises(ValueError, match="measure must be one of"):
        parse_measure("supplied:")
    measures = ("supplied:b", "entropy", "output:c", "supplied:a", "supplied:b")
    assert supplied_names(measures) == ("b", "a")
    assert output_names(measures) == ("c",)
