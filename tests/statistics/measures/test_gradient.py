"""The gradient norm, on softmax regressions whose gradient is known in closed form."""

import numpy as np
import pytest
from scipy.special import gammaln, softmax

from howsure.statistics.measures.gradient import directions, gradient_norm, is_exact, slopes
from howsure.statistics.measures.noise import normal

STEP = 1e-3


class SoftmaxRegression:
    """p = softmax(W x + b), and the exact gradient of ||p||_2 in x."""

    def __init__(self, n_values, n_classes, *, seed=0, lead=0.0):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=(n_classes, n_values))
        self.bias = np.zeros(n_classes)
        self.bias[0] = lead

    def logits(self, x):
        return x @ self.weights.T + self.bias

    def gradient(self, x):
        p = softmax(self.logits(x), axis=1)
        norm = np.sqrt((p**2).sum(axis=1, keepdims=True))
        return (p * (p - norm**2) / norm) @ self.weights

    def slopes(self, x, moves):
        return np.stack(
            [
                slopes(self.logits(x + STEP * v), self.logits(x - STEP * v), distance=2 * STEP)
                for v in moves.astype(np.float64)
            ],
            axis=1,
        )


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
    n_directions, seeds = 16, 1500
    model = SoftmaxRegression(30, 10)
    x = np.random.default_rng(2).normal(size=(1, 30))
    found = np.array(
        [
            gradient_norm(
                model.slopes(x, directions((30,), n_directions=16, seed=seed, site=0)), exact=False
            )[0]
            for seed in range(seeds)
        ]
    )
    ratio = found / np.linalg.norm(model.gradient(x))
    # m ratio^2 is chi-square of m degrees: its relative variance is 2 / m.
    assert np.mean(ratio**2) == pytest.approx(1, abs=5 * np.sqrt(2 / n_directions / seeds))
    log_mean = gammaln((n_directions + 1) / 2) - gammaln(n_directions / 2)
    mean = np.sqrt(2 / n_directions) * np.exp(log_mean)
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
    assert moves.dtype == np.float32
    assert moves.shape == (4, *shape)
    if exact:
        np.testing.assert_array_equal(moves.reshape(4, -1), np.eye(4))
    else:
        for number, move in enumerate(moves):
            np.testing.assert_array_equal(move, normal(shape, seed=3, number=number, site=1))


def test_arguments_that_break_their_rules_are_refused():
    good = np.zeros((2, 3))
    with pytest.raises(ValueError, match="distance must be above 0"):
        slopes(good, good, distance=0.0)
    with pytest.raises(ValueError, match="minus must have the shape"):
        slopes(good, np.zeros((1, 3)), distance=1.0)
    with pytest.raises(ValueError, match="minus must be finite: row 1"):
        slopes(good, np.array([[0.0, 0, 0], [np.nan, 0, 0]]), distance=1.0)
    with pytest.raises(ValueError, match="must be at least 1"):
        directions((0, 3), n_directions=2, seed=0, site=0)
    with pytest.raises(ValueError, match="must be at least 1"):
        directions((3,), n_directions=0, seed=0, site=0)
