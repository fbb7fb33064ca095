"""The 2-norm of the covariance of passes, against numpy's K x K norm, and its laws."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import peak_of
from pass_strategies import drawn_passes, pass_blocks

from howsure.statistics.measures.passes import covariance_norm


def numpy_norm(log_p):
    """What the definition says, K x K."""
    return np.array([np.linalg.norm(np.cov(np.exp(row).T), 2) for row in log_p])


@pytest.mark.parametrize(
    ("n_samples", "n_passes", "n_classes"),
    [
        (50, 2, 2),
        (50, 10, 10),
        (50, 30, 3),
        (2, 30, 1000),
    ],
)
def test_it_is_the_norm_of_the_whole_covariance(n_samples, n_passes, n_classes):
    log_p, _ = drawn_passes(n_samples, n_passes, n_classes)
    found = covariance_norm(log_p)
    assert found.shape == (n_samples,)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, numpy_norm(log_p), rtol=1e-10)


@given(log_p=pass_blocks())
def test_it_is_finite_never_negative_nor_minus_zero_and_near_numpy(log_p):
    found = covariance_norm(log_p)
    assert np.isfinite(found).all()
    assert not np.signbit(found).any()
    np.testing.assert_allclose(found, numpy_norm(log_p), rtol=1e-6, atol=1e-25)


@given(log_p=pass_blocks(), data=st.data())
def test_the_order_of_classes_and_of_passes_does_not_show(log_p, data):
    classes = data.draw(st.permutations(range(log_p.shape[2])))
    passes = data.draw(st.permutations(range(log_p.shape[1])))
    found = covariance_norm(log_p)
    np.testing.assert_allclose(covariance_norm(log_p[:, :, classes]), found, rtol=1e-9)
    np.testing.assert_allclose(covariance_norm(log_p[:, passes]), found, rtol=1e-9)


@given(log_p=pass_blocks(), n_passes=st.integers(2, 9))
def test_passes_that_are_the_same_have_none(log_p, n_passes):
    same = np.repeat(log_p[:, :1], n_passes, axis=1)
    np.testing.assert_array_equal(covariance_norm(same), np.zeros(len(log_p)))
    np.testing.assert_array_equal(covariance_norm(same.astype(np.float32)), np.zeros(len(log_p)))


@given(log_p=pass_blocks())
def test_a_sample_does_not_depend_on_the_samples_beside_it(log_p):
    alone = [covariance_norm(row[np.newaxis])[0] for row in log_p]
    np.testing.assert_array_equal(covariance_norm(log_p), alone)
    np.testing.assert_array_equal(covariance_norm(np.asfortranarray(log_p)), alone)


def test_single_precision_is_taken_as_it_is():
    log_p, _ = drawn_passes(20, 7, 10)
    single = log_p.astype(np.float32)
    expected = covariance_norm(single.astype(np.float64))
    np.testing.assert_array_equal(covariance_norm(single), expected)
    np.testing.assert_allclose(expected, numpy_norm(log_p), rtol=1e-4)


def test_one_pass_has_no_covariance():
    with pytest.raises(ValueError, match="at least 2 passes, not 1"):
        covariance_norm(np.log(np.full((2, 1, 2), 0.5)))


@pytest.mark.parametrize("bad", [np.nan, 3.0])
def test_what_is_no_log_probability_is_refused(bad):
    log_p, _ = drawn_passes(4, 3, 5)
    log_p[2, 1, 0] = bad
    with pytest.raises(ValueError, match="pass 1 of row 2"):
        covariance_norm(log_p)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 0, 4)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match="log_probabilities must have shape"):
        covariance_norm(np.zeros(shape))
    with pytest.raises(ValueError, match="must be floating, not int64"):
        covariance_norm(np.zeros((2, 2, 2), dtype=np.int64))


def test_memory_does_not_grow_with_the_samples():
    """Beyond what is given: tens of megabytes for blocks, and eight bytes a sample."""
    log_p, _ = drawn_passes(500, 20, 500)
    assert log_p.nbytes == 40_000_000
    covariance_norm(log_p[:1])
    peaks = [peak_of(partial(covariance_norm, log_p[:n_samples])) for n_samples in (250, 500)]
    assert peaks[1] < 1.1 * peaks[0] + 100_000
