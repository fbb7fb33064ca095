"""The uncertainty head against float64 numpy."""

import numpy as np
import pytest
from graph_models import OPSETS, make_model, node, opsets, passthrough, reference, serve, value
from onnx import TensorProto
from scipy.special import logsumexp

COLUMNS = (
    "entropy",
    "neg_log_pmax",
    "margin",
    "energy",
    "neg_log_topk_mass_1",
    "neg_log_topk_mass_5",
)


def assert_measures_agree(served, measures, *, relative=1e-4):
    for column, expected in measures.items():
        got = served[column]
        assert got.dtype == np.float32
        assert got.shape == expected.shape
        assert np.isfinite(got).all(), column
        assert not np.signbit(got).any(), column
        resolved = expected >= 1e-12
        np.testing.assert_allclose(got[resolved], expected[resolved], rtol=relative, err_msg=column)
        # Ties at zero are for values below float32 alone.
        assert (expected[got == 0] < 1e-37).all(), column


@pytest.mark.parametrize("opset", opsets(*OPSETS))
@pytest.mark.parametrize("n_classes", [2, 5, 6, 10, 1000, 10_000])
def test_measures_equal_float64(n_classes, opset):
    rng = np.random.default_rng(n_classes)
    rows = 60 if n_classes <= 1000 else 12
    logits = np.concatenate(
        [scale * rng.normal(size=(rows // 3, n_classes)) for scale in (1, 10, 50)]
    ).astype(np.float32)
    served = serve(passthrough(opset=opset), {"x": logits})
    order, probabilities, measures = reference(logits)
    assert_measures_agree(served, measures)
    n_top = min(5, n_classes)
    assert served["top_classes"].dtype == np.int64
    np.testing.assert_array_equal(served["top_classes"], order[:, :n_top])
    np.testing.assert_allclose(
        served["top_scores"], probabilities[:, :n_top], rtol=1e-4, atol=1e-37
    )
    np.testing.assert_array_equal(served["scores"], logits)
    assert served.choice.kind == "logits"


@pytest.mark.parametrize(
    ("element_type", "dtype", "relative"),
    [
        (TensorProto.FLOAT16, np.float16, 1e-4),
        (TensorProto.FLOAT, np.float32, 1e-4),
        (TensorProto.DOUBLE, np.float64, 1e-6),  # the final cast to float32 remains
    ],
)
@pytest.mark.parametrize("opset", [11, 17, 26])
def test_every_float_type_is_computed_in_enough_digits(element_type, dtype, relative, opset):
    logits = (8 * np.random.default_rng(1).normal(size=(40, 10))).astype(dtype)
    served = serve(passthrough(opset=opset, element_type=element_type), {"x": logits})
    assert_measures_agree(served, reference(logits)[2], relative=relative)
    assert served["scores"].dtype == (np.float64 if dtype == np.float64 else np.float32)


def test_double_logits_keep_differences_that_float32_rounds_away():
    logits = np.array([[1e8, 1e8 - 0.5, 0.0], [1e8, 1e8 - 3.0, 0.0]])
    served = serve(passthrough(element_type=TensorProto.DOUBLE), {"x": logits}, top_k=(1,))
    assert_measures_agree(served, reference(logits, top_k=(1,))[2], relative=1e-6)


def test_bfloat16_logits_go_up_to_float32():
    logits = (4 * np.random.default_rng(2).normal(size=(20, 6))).astype(np.float32)
    logits = (logits.view(np.uint32) & 0xFFFF0000).view(np.float32)  # exact in bfloat16
    model = make_model(
        [node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)],
        outputs=[value("y", element_type=TensorProto.BFLOAT16)],
    )
    served = serve(model, {"x": logits})
    assert_measures_agree(served, reference(logits)[2])


@pytest.mark.parametrize("top_k", [(1,), (3, 1), (1, 5, 8), (2, 9)])
def test_any_events_may_be_asked_for(top_k):
    logits = (5 * np.random.default_rng(3).normal(size=(30, 10))).astype(np.float32)
    served = serve(passthrough(), {"x": logits}, top_k=top_k)
    assert_measures_agree(served, reference(logits, top_k=top_k)[2])
    assert served["top_classes"].shape == (30, max(5, *top_k))
    assert {name for name in served.outputs if name.startswith("neg_log_topk")} == {
        f"neg_log_topk_mass_{k}" for k in top_k
    }


@pytest.mark.parametrize("opset", [11, 17, 26])
@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_energy_is_that_of_the_logits(opset, element_type):
    dtype = np.float32 if element_type == TensorProto.FLOAT else np.float64
    rng = np.random.default_rng(11)
    logits = (5 * rng.normal(size=(40, 10)) + 20 * rng.normal(size=(40, 1))).astype(dtype)
    logits[0] = -np.inf
    logits[0, 3] = 0  # one class is left: energy 0, and no -0
    served = serve(
        passthrough(opset=opset, element_type=element_type), {"x": logits}, kind="logits"
    )
    expected = -logsumexp(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(served["energy"], expected, rtol=1e-5, atol=1e-5)
    assert served["energy"][0] == 0
    assert not np.signbit(served["energy"][0])


@pytest.mark.parametrize("n_classes", [3, 10, 1000])
def test_ties_go_to_the_lower_class(n_classes):
    rng = np.random.default_rng(5)
    logits = rng.integers(-2, 2, size=(200, n_classes)).astype(np.float32)
    logits[:20] = 0
    served = serve(passthrough(), {"x": logits}, top_k=(1,), trial={"x": logits - 0.5})
    expected = np.argsort(-logits, axis=1, kind="stable")[:, : min(5, n_classes)]
    np.testing.assert_array_equal(served["top_classes"], expected)


def test_ruled_out_classes_count_for_nothing():
    logits = (3 * np.random.default_rng(6).normal(size=(30, 10))).astype(np.float32)
    logits[:, 4] = -np.inf
    served = serve(passthrough(), {"x": logits})
    without = np.delete(logits, 4, axis=1)
    assert_measures_agree(served, reference(without)[2])


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ([-np.inf] * 3 + [7] + [-np.inf] * 2, "logits"),  # one class left
        ([0, 0, 0, 1, 0, 0], "probabilities"),
        ([-1e-9, 0, 0, 1, 0, 0], "probabilities"),  # rounding below zero
    ],
)
def test_certainty_is_a_positive_zero(row, kind):
    served = serve(passthrough(), {"x": np.float32([row])}, kind=kind)
    for column in set(COLUMNS) - {"energy"}:
        assert served[column][0] == 0, column
        assert not np.signbit(served[column][0]), column
    assert served["top_classes"][0, 0] == 3
    assert served["top_scores"][0, 0] == 1


@pytest.mark.parametrize(
    "row",
    [
        [np.nan, 1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1, np.nan],
        [np.nan] * 6,
        [np.inf, 1, 2, 3, 4, 5],
        [np.inf, np.inf, 2, 3, 4, 5],
        [-np.inf] * 6,
    ],
)
@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_rows_that_are_not_finite_say_so_in_every_measure(row, element_type):
    dtype = np.float32 if element_type == TensorProto.FLOAT else np.float64
    logits = np.array([[0, 1, 2, 3, 4, 5], row], dtype=dtype)
    served = serve(passthrough(element_type=element_type), {"x": logits})
    for column in COLUMNS:
        assert np.isfinite(served[column][0])
        assert np.isnan(served[column][1]), column
    assert np.isnan(served["top_scores"][1]).all()


@pytest.mark.parametrize("opset", [11, 13, 26])
@pytest.mark.parametrize("n_classes", [2, 5, 10, 1000])
def test_probabilities_keep_what_their_tails_still_say(n_classes, opset):
    rng = np.random.default_rng(7)
    logits = np.concatenate([s * rng.normal(size=(20, n_classes)) for s in (1, 5, 20)])
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    served = serve(passthrough(opset=opset), {"x": probabilities})
    assert served.choice.kind == "probabilities"
    with np.errstate(divide="ignore"):
        expected = reference(np.log(probabilities.astype(np.float64)))
    assert_measures_agree(served, expected[2])
    np.testing.assert_array_equal(served["top_classes"], expected[0][:, :5])
    np.testing.assert_array_equal(served["scores"], probabilities)
    assert "energy" not in served.outputs


def test_a_row_of_no_probability_is_not_finite():
    rows = np.array([[0, 1, 0, 0, 0, 0], [0] * 6], np.float32)
    served = serve(passthrough(), {"x": rows}, trial={"x": rows[:1]})
    for column in set(COLUMNS) - {"energy"}:
        np.testing.assert_array_equal(np.isnan(served[column]), [False, True])
