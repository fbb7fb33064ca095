"""Slopes of inputs whose values are large beside how they vary."""

import numpy as np
import pytest
from scipy.special import softmax

from howsure.statistics.measures.gradient import gradient_norm
from service.child.onnx.gradient import plan_gradient, slopes_of
from service.runner.messages.passes import PassPlan

WEIGHTS = np.random.default_rng(0).normal(size=(5, 4))


def exact_norm(offset, x):
    """Return the norm of the gradient of ||p||_2 for p = softmax((x - offset) W), float64."""
    p = softmax((x.astype(np.float64) - offset) @ WEIGHTS, axis=1)
    norm = np.linalg.norm(p, axis=1, keepdims=True)
    by_logits = p * (p - (p * p).sum(axis=1, keepdims=True)) / norm
    return np.linalg.norm(by_logits @ WEIGHTS.T, axis=1)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 3e4])
@pytest.mark.parametrize("n_directions", [16, 4])
def test_slopes_use_the_step_that_rounding_left(offset, n_directions):
    x = (np.random.default_rng(1).normal(size=(50, 5)) + offset).astype(np.float32)
    asked = PassPlan("gradient_norm", passes=n_directions, seed=0, step=1e-3)
    plan = plan_gradient(asked, {"x": x})
    assert plan.divisible is (n_directions == 4)

    def logs(rows):
        return (rows["x"].astype(np.float64) - offset) @ WEIGHTS

    found = gradient_norm(slopes_of({"x": x}, plan, logs), exact=not plan.divisible)
    ratio = found / exact_norm(offset, x)
    if plan.divisible:
        exact = gradient_norm(
            slopes_of({"x": (x - np.float32(offset))}, plan, lambda r: r["x"] @ WEIGHTS),
            exact=False,
        )
        ratio = found / exact  # the same directions, without an offset to be rounded beside
        assert np.median(np.abs(ratio - 1)) < 0.05
    else:
        np.testing.assert_allclose(ratio, 1, atol=0.01)
