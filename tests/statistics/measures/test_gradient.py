"""The gradient norm, on softmax regressions whose gradient is known in closed form."""

import numpy as np
import pytest
from scipy.special import gammaln, softmax

from howsure.statistics.measures.gradient import (
    directions,
    gaussian_directions,
    gradient_norm,
    is_exact,
    jacobian_norm,
    logit_slopes,
    slopes,
)
from howsure.statistics.measures.noise import normal

STEP = 1e-3


class SoftmaxRegression:
    """p = softmax(W x), and the exact gradient of ||p||_2 in x."""

    def __init__(self, n_values, n_classes):
        self.weights = np.random.default_rng(0).normal(size=(n_classes, n_values))

    def gradient(self, x):
        p = softmax(x @ self.weights.T, axis=1)
        norm = np.sqrt((p**2).sum(axis=1, keepdims=True))
        return (p * (p - norm**2) / norm) @ self.weights

    def slopes(self, x, moves):
        ends = [(x + sign * STEP * moves[:, None].astype(np.float64)) for sign in (1, -1)]
        pair = [(end @ self.weights.T).reshape(-1, len(self.weights)) for end in ends]
        return slopes(*pair, distance=2 * STEP).reshape(len(moves), len(x)).T


@pytest.mark.parametrize(("n_values", "n_classes"), [(1, 2), (12, 10)])
def test_along_the_coordinates_it_is_the_gradient(n_values, n_classes):
    model = SoftmaxRegression(n_values, n_classes)
    x = np.random.default_rng(1).normal(size=(40, n_values))
    moves = directions((n_values,), n_directions=16, seed=0, site=0)
    found = model.slopes(x, moves)
    exact = model.gradient(x)
    norms = np.linalg.norm(exact, axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4 * norms.max())
    np.testing.assert_allclose(gradient_norm(found, exact=True), norms, rtol=1e-4)


def test_the_mean_of_squares_is_unbiased_and_the_root_low_as_a_chi_is():
    """m ratio^2 is chi-square of m degrees: its relative variance is 2 / m."""
    m, seeds, model = 16, 1500, SoftmaxRegression(30, 10)
    x = np.random.default_rng(2).normal(size=(1, 30))
    moves = [directions((30,), n_directions=m, seed=seed, site=0) for seed in range(seeds)]
    of_seeds = model.slopes(x, np.concatenate(moves)).reshape(seeds, m)
    ratio = gradient_norm(of_seeds, exact=False) / np.linalg.norm(model.gradient(x))
    assert np.mean(ratio**2) == pytest.approx(1, abs=5 * np.sqrt(2 / m / seeds))
    mean = np.sqrt(2 / m) * np.exp(gammaln((m + 1) / 2) - gammaln(m / 2))
    sd = np.sqrt(1 - mean**2)
    assert np.mean(ratio) == pytest.approx(mean, abs=5 * sd / np.sqrt(seeds))
    assert np.std(ratio) == pytest.approx(sd, rel=0.1)


def test_slopes_are_those_of_the_norms_for_logits_and_for_log_probabilities():
    scores = np.random.default_rng(5).normal(size=(2, 200, 6)) * 3
    scores[0, 0, 2] = scores[1, 1, 0] = -np.inf
    norms = np.linalg.norm(softmax(scores, axis=2), axis=2)
    expected = (norms[0] - norms[1]) / 0.1
    np.testing.assert_allclose(slopes(*scores, distance=0.1), expected, rtol=1e-9, atol=1e-13)
    with np.errstate(divide="ignore"):
        log_p = np.log(softmax(scores, axis=2))
    np.testing.assert_allclose(slopes(*log_p, distance=0.1), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("shape", "n_directions", "exact"), [((4,), 4, True), ((2, 2), 4, True), ((5,), 4, False)]
)
def test_coordinates_are_taken_where_there_are_enough_directions(shape, n_directions, exact):
    moves = directions(shape, n_directions=n_directions, seed=3, site=1)
    assert is_exact(shape, n_directions) is exact
    drawn = [normal(shape, seed=3, number=number, site=1) for number in range(4)]
    expected = np.eye(4, dtype=np.float32).reshape(4, *shape) if exact else np.array(drawn)
    np.testing.assert_array_equal(moves, expected, strict=True)


class TwoLayers:
    """f = tanh(x A) B, and its exact Jacobian."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.first, self.last = rng.normal(size=(30, 40)) / 3, rng.normal(size=(40, 5))

    def norms(self, x):
        slopes = 1 - np.tanh(x @ self.first) ** 2
        rows = np.einsum("dh,nh,hk->nkd", self.first, slopes, self.last)
        return np.linalg.norm(rows, axis=2).max(axis=1)

    def slopes(self, x, moves):
        ends = [
            [np.tanh((x + h * v) @ self.first) @ self.last for h in (STEP, -STEP)] for v in moves
        ]
        return np.stack([logit_slopes(*pair, distance=2 * STEP) for pair in ends], axis=1)


def test_the_jacobian_norm_follows_full_differences_of_a_network():
    """512 directions: a deviation of 3 %, beside norms that spread by 36 %."""
    model, rng = TwoLayers(), np.random.default_rng(1)
    x = rng.normal(size=(20, 30)) * rng.uniform(0.2, 3, size=(20, 1))
    moves = directions((30,), n_directions=30, seed=0, site=0).astype(np.float64)
    full = jacobian_norm(model.slopes(x, moves), exact=True)
    np.testing.assert_allclose(full, model.norms(x), rtol=1e-5)
    for seed in range(5):
        moves = gaussian_directions((30,), n_directions=512, seed=seed, site=0).astype(np.float64)
        few = jacobian_norm(model.slopes(x, moves), exact=False)
        assert np.corrcoef(np.log(few), np.log(full))[0, 1] >= 0.99


def test_classes_ruled_out_have_no_slope():
    plus, minus = [[3.0, 1.0, -np.inf], [-np.inf, 0.0, 2.0]], [[1.0, 2.0, -np.inf], [1.0, 0.0, 1.0]]
    assert logit_slopes(plus, minus, distance=2.0).tolist() == [[1.0, -0.5, 0.0], [0.0, 0.0, 0.5]]


GOOD, BAD = np.zeros((2, 3)), np.array([[0.0, 0, 0], [np.nan, 0, 0]])


@pytest.mark.parametrize(("call", "rule"), [
    (lambda: slopes(GOOD, GOOD, distance=0.0), "distance must be above 0"),
    (lambda: slopes(GOOD, GOOD[:1], distance=1.0), "minus must have the shape"),
    (lambda: logit_slopes(GOOD, GOOD[:1], distance=1.0), "minus must have the shape"),
    (lambda: slopes(GOOD, BAD, distance=1.0), "minus must be finite: row 1"),
    (lambda: directions((0, 3), n_directions=2, seed=0, site=0), "must be at least 1"),
    (lambda: directions((3,), n_directions=0, seed=0, site=0), "must be at least 1"),
])  # fmt: skip
def test_arguments_that_break_their_rules_are_refused(call, rule):
    with pytest.raises(ValueError, match=rule):
        call()
