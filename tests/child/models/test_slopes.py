"""Slopes of inputs whose values are large beside how they vary."""

import numpy as np
import pytest
from scipy.special import softmax

from howsure.bins_document.pass_plan import PassPlan
from howsure.statistics.measures.gradient import gradient_norm
from service.child.onnx.gradient import plan_gradient, slopes_of

WEIGHTS = np.random.default_rng(0).normal(size=(5, 4))


def exact_norm(x):
    """Return the norm of the gradient of ||p||_2 for p = softmax(x W), float64."""
    p = softmax(x @ WEIGHTS, axis=1)
    norm = np.linalg.norm(p, axis=1, keepdims=True)
    by_logits = p * (p - (p * p).sum(axis=1, keepdims=True)) / norm
    return np.linalg.norm(by_logits @ WEIGHTS.T, axis=1)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 3e4])
@pytest.mark.parametrize("n_directions", [16, 4])
def test_slopes_use_the_step_that_rounding_left(offset, n_directions):
    x = (np.random.default_rng(1).normal(size=(50, 5)) + offset).astype(np.float32)
    plan = plan_gradient(PassPlan("gradient_norm", n_directions, 0, step=1e-3), {"x": x})
    assert plan.divisible is (n_directions == 4)

    def norms(rows, offset=0.0):
        def logs(rows):
            return (rows["x"].astype(np.float64) - offset) @ WEIGHTS

        slopes = slopes_of({"x": rows}, plan, logs, [plan.measure])[plan.measure]
        return gradient_norm(slopes, exact=not plan.divisible)

    if plan.divisible:  # the same directions, without an offset to be rounded beside
        ratio = norms(x, offset) / norms(x - np.float32(offset))
        assert np.median(np.abs(ratio - 1)) < 0.05
    else:
        exact = exact_norm(x.astype(np.float64) - offset)
        np.testing.assert_allclose(norms(x, offset) / exact, 1, atol=0.01)
