"""What the chosen output is taken for."""

import numpy as np
import pytest
from graph_models import (
    assert_reads_logits,
    constant,
    ending,
    make_model,
    node,
    passthrough,
    reference,
    resolve,
    serve,
    value,
)
from scipy.special import log_softmax, softmax

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.description import OutputChoice

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)


def test_plain_logits_are_told_by_value():
    choice = resolve(passthrough(), {"x": LOGITS})
    assert choice == OutputChoice("y", "logits", "y", choice.inferred, n_classes=6)
    assert "'y' is the only output" in choice.inferred
    assert "12 rows" in choice.inferred


def test_the_callers_logits_are_the_outputs_own_values():
    model = ending(node("Softmax", ["z"], ["y"]))
    served = serve(model, {"x": LOGITS}, kind="logits")
    assert_reads_logits(served, softmax(LOGITS, axis=1), "y")
    assert "the caller says" in served.choice.inferred


def test_the_callers_probabilities_are_cross_checked():
    with pytest.raises(InvalidConfig, match="probabilities, but its values reach from") as caught:
        resolve(passthrough(), {"x": LOGITS}, kind="probabilities")
    assert caught.value.violations[0].location == "config.output.kind"
    with pytest.raises(InvalidConfig, match="probabilities"):
        resolve(ending(node("LogSoftmax", ["z"], ["y"])), {"x": LOGITS}, kind="probabilities")


def test_scores_that_the_caller_calls_probabilities_are_normalised_and_it_is_said():
    shares = np.abs(LOGITS) / 30
    served = serve(passthrough(), {"x": shares}, kind="probabilities")
    assert "normalised" in served.choice.inferred
    normalised = shares / shares.sum(axis=1, keepdims=True, dtype=np.float64)
    expected = reference(np.log(normalised))[2]["entropy"]
    np.testing.assert_allclose(served["entropy"], expected, rtol=1e-4)


def test_log_probabilities_serve_as_logits():
    served = serve(passthrough(), {"x": log_softmax(LOGITS, axis=1)})
    assert_reads_logits(served, LOGITS, "y")
    assert "log-probabilities" in served.choice.inferred


@pytest.mark.parametrize(
    ("nodes", "initializers"),
    [
        ([node("Reshape", ["x", "s"], ["y"])], [constant("s", [-1, 3, 2], np.int64)]),
        ([node("Reshape", ["x", "s"], ["y"])], [constant("s", [-1], np.int64)]),
        ([node("ReduceSum", ["x"], ["y"], keepdims=0)], []),
        ([node("Transpose", ["x"], ["y"])], []),
        ([node("Slice", ["x", "a", "a"], ["y"])], [constant("a", [0], np.int64)]),
    ],
)  # fmt: skip
def test_a_shape_that_only_shows_when_run_is_refused(nodes, initializers):
    model = make_model(nodes, outputs=[value("y", None)], initializers=initializers)
    with pytest.raises(InvalidOnnxModel, match=r"shape .* for 12 samples; \(samples, classes\)"):
        resolve(model, {"x": LOGITS})
