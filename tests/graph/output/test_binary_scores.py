"""Binary models with one score: a second column is made."""

import numpy as np
import pytest
from graph_models import (
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
from scipy.special import expit

from service.errors import InvalidOnnxModel

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)


@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 1, 1, 1)])
def test_a_binary_sigmoid_is_read_at_its_input(shape):
    model = make_model(
        [node("Identity", ["x"], ["z"]), node("Sigmoid", ["z"], ["y"])],
        inputs=[value("x", shape)],
        outputs=[value("y", shape)],
    )
    z = np.float32([-70, -3, 0.5, 2, 90])
    served = serve(model, {"x": z.reshape(-1, *shape[1:])})
    assert (served.choice.n_classes, served.choice.positive_column) == (2, 0)
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(served["scores"], np.stack([0 * z, z], axis=1))
    expected = reference(np.stack([0 * z, z], axis=1))[2]
    np.testing.assert_allclose(served["neg_log_pmax"], expected["neg_log_pmax"], rtol=1e-4)
    assert "sigmoid of 'z'" in served.choice.inferred


def test_one_column_of_probabilities_is_that_of_class_1():
    p = np.float32([0, 1e-6, 0.25, 0.5, 0.75, 1])
    served = serve(passthrough(shape=["N", 1]), {"x": p[:, None]})
    assert served.choice.kind == "probabilities"
    np.testing.assert_array_equal(served["scores"], np.stack([1 - p, p], axis=1))
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 0, 0, 1, 1])
    surprise = -np.log1p(-np.minimum(p, 1 - p).astype(np.float64))
    np.testing.assert_allclose(served["neg_log_pmax"], surprise, rtol=1e-4)


def test_one_column_of_other_values_is_the_logit_of_class_1():
    z = np.float32([-4, -0.5, 0, 3])
    served = serve(passthrough(shape=["N"]), {"x": z})
    assert served.choice.kind == "logits"
    np.testing.assert_allclose(
        served["top_scores"][:, 0], expit(np.abs(z.astype(np.float64))), rtol=1e-6
    )
    assert "one column is the logit of class 1" in served.choice.inferred


def test_a_softmax_over_one_column_is_refused():
    model = ending(node("Softmax", ["z"], ["y"]), shape=("N", 1))
    with pytest.raises(InvalidOnnxModel, match="always 1"):
        resolve(model, {"x": LOGITS[:, :1]})


def test_the_caller_overrules_what_one_columns_values_suggest():
    p = np.float32([0.1, 0.6, 0.9])
    served = serve(passthrough(shape=["N"]), {"x": p}, kind="logits")
    np.testing.assert_array_equal(served["scores"], np.stack([0 * p, p], axis=1))


def test_an_infinite_binary_logit_is_certainty():
    z = np.float32([[-np.inf], [2]])
    served = serve(passthrough(shape=["N", 1]), {"x": z})
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 1])
    assert served["neg_log_pmax"][0] == 0


def test_a_pair_made_of_one_sigmoid_is_read_at_its_input():
    model = make_model(
        [
            node("Identity", ["x"], ["z"]),
            node("Sigmoid", ["z"], ["s"]),
            node("Sub", ["one", "s"], ["c"]),
            node("Concat", ["c", "s"], ["y"], axis=1),
        ],
        initializers=[constant("one", [1])],
    )
    z = np.float32([[-90], [-2], [0.5], [90]])
    served = serve(model, {"x": z})
    assert (served.choice.tensor, served.choice.positive_column) == ("z", 0)
    assert (served["neg_log_pmax"] > 0).all()
