"""The uncertainty head against float64 numpy."""

import numpy as np
import pytest
from graph_models import OPSETS, make_model, opsets, passthrough, reference, serve, steps, value
from onnx import TensorProto
from scipy.special import logsumexp

MEASURES = ("entropy", "neg_log_pmax", "margin", "neg_log_topk_mass_1", "neg_log_topk_mass_5")
TYPES = {
    np.float16: (TensorProto.FLOAT16, 1e-4),
    np.float32: (TensorProto.FLOAT, 1e-4),
    np.float64: (TensorProto.DOUBLE, 1e-6),  # the final cast to float32 remains
}


def draw(seed, rows, n_classes, *, scale=5.0):
    rng = np.random.default_rng(seed)
    return (scale * rng.normal(size=(rows, n_classes))).astype(np.float32)


def head_of(logits, **options):
    """Return what is served of scores that are fed as they are, in their own type."""
    element_type = TYPES[logits.dtype.type][0]
    model = passthrough(element_type=element_type, opset=options.pop("opset", 17))
    return serve(model, {"x": logits}, **options)


def assert_measures_agree(served, measures, *, relative=1e-4):
    for column, expected in measures.items():
        got = served[column]
        assert (got.dtype, got.shape) == (np.float32, expected.shape)
        assert np.isfinite(got).all(), column
        assert not np.signbit(got).any(), column
        resolved = expected >= 1e-12
        np.testing.assert_allclose(got[resolved], expected[resolved], rtol=relative, err_msg=column)
        # Ties at zero are for values below float32 alone.
        assert (expected[got == 0] < 1e-37).all(), column


ON_EACH_DEVICE = pytest.mark.usefixtures("each_device")
SCALES = (1e-20, 1e-3, 1, 10, 50, 1e3, 1e6, 1e30)


@ON_EACH_DEVICE
@pytest.mark.parametrize("opset", opsets(*OPSETS))
@pytest.mark.parametrize("n_classes", [2, 5, 6, 10, 1000, 20_000])
def test_measures_equal_float64_from_tiny_logits_to_huge_ones(n_classes, opset):
    rows = 8 if n_classes <= 1000 else 2
    logits = np.concatenate([draw(n_classes, rows, n_classes, scale=s) for s in SCALES])
    served = head_of(logits, opset=opset, kind="logits")
    order, probabilities, measures = reference(logits)
    assert_measures_agree(served, measures)
    n_top = min(10, n_classes)
    np.testing.assert_array_equal(served["top_classes"], order[:, :n_top], strict=True)
    expected = probabilities[:, :n_top]
    np.testing.assert_allclose(served["top_scores"], expected, rtol=1e-4, atol=1e-37)
    np.testing.assert_array_equal(served["scores"], logits)


@ON_EACH_DEVICE
@pytest.mark.parametrize("opset", [11, 17, 26])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_float_type_is_computed_in_enough_digits(dtype, opset):
    logits = draw(1, 40, 10, scale=8).astype(dtype)
    served = head_of(logits, opset=opset)
    assert_measures_agree(served, reference(logits)[2], relative=TYPES[dtype][1])
    assert served["scores"].dtype == (np.float64 if dtype == np.float64 else np.float32)


def test_double_logits_keep_differences_that_float32_rounds_away():
    logits = np.array([[1e8, 1e8 - 0.5, 0.0], [1e8, 1e8 - 3.0, 0.0]])
    served = head_of(logits, top_k=(1,))
    assert_measures_agree(served, reference(logits, top_k=(1,))[2], relative=1e-6)


def test_bfloat16_logits_go_up_to_float32():
    logits = (draw(2, 20, 6).view(np.uint32) & 0xFFFF0000).view(np.float32)  # exact in bfloat16
    kind = TensorProto.BFLOAT16
    model = make_model(steps(f"y = Cast<to={kind}>(x)"), outputs=[value("y", element_type=kind)])
    assert_measures_agree(serve(model, {"x": logits}), reference(logits)[2])


@ON_EACH_DEVICE
@pytest.mark.parametrize("top_k", [(3, 1), (1, 5, 8)])
def test_any_events_may_be_requested(top_k):
    logits = draw(3, 30, 10)
    served, measures = head_of(logits, top_k=top_k), reference(logits, top_k=top_k)[2]
    assert_measures_agree(served, measures)
    assert served["top_classes"].shape == (30, 10)
    assert {*served.outputs} == {*measures, "top_classes", "top_scores", "scores", "energy"}


@ON_EACH_DEVICE
@pytest.mark.parametrize("opset", [11, 17, 26])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_energy_is_that_of_the_logits(opset, dtype):
    logits = (draw(11, 40, 10) + 4 * draw(12, 40, 1)).astype(dtype)
    logits[0] = -np.inf
    logits[0, 3] = 0  # one class is left: energy 0, and no -0
    energy = head_of(logits, opset=opset, kind="logits")["energy"]
    expected = -logsumexp(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(energy, expected, rtol=1e-5, atol=1e-5)
    assert (energy[0], np.signbit(energy[0])) == (0, False)


@ON_EACH_DEVICE
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 200])
@pytest.mark.parametrize("n_classes", [3, 10, 257, 1000, 20_000])
def test_ties_go_to_the_lower_class(n_classes, n_rows, dtype):
    """A GPU has several ways to find the largest, by the number of classes."""
    rows = min(n_rows, 200_000 // n_classes)
    logits = np.random.default_rng(5).integers(-2, 2, size=(rows, n_classes)).astype(dtype)
    logits[: rows // 10 + 1] = 0
    logits[rows // 2 :, 2:] = -np.inf
    expected = np.argsort(-logits, axis=1, kind="stable")
    for top_k in ((1,), (1, 50)):
        classes = head_of(logits, kind="logits", top_k=top_k)["top_classes"]
        np.testing.assert_array_equal(classes, expected[:, : classes.shape[1]])


@ON_EACH_DEVICE
def test_ruled_out_classes_count_for_nothing():
    logits = draw(6, 30, 10)
    logits[:, 4] = -np.inf
    assert_measures_agree(head_of(logits), reference(np.delete(logits, 4, axis=1))[2])


CERTAIN = [
    ([-np.inf] * 3 + [7] + [-np.inf] * 2, "logits"),  # one class left
    ([0, 0, 0, 1, 0, 0], "probabilities"),
    ([-1e-9, 0, 0, 1, 0, 0], "probabilities"),  # rounding below zero
]


@pytest.mark.parametrize(("row", "kind"), CERTAIN)
def test_certainty_is_a_positive_zero(row, kind):
    served = head_of(np.float32([row]), kind=kind)
    for column in MEASURES:
        assert (served[column][0], np.signbit(served[column][0])) == (0, False), column
    assert (served["top_classes"][0, 0], served["top_scores"][0, 0]) == (3, 1)


NAN, INF = np.nan, np.inf


NOT_FINITE = [
    *([NAN, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, NAN], [NAN] * 6, [INF, 1, 2, 3, 4, 5]),
    *([INF, INF, 2, 3, 4, 5], [-INF] * 6),
]


@ON_EACH_DEVICE
@pytest.mark.parametrize("row", NOT_FINITE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_not_finite_say_so_in_every_measure(row, dtype):
    served = head_of(np.array([[0, 1, 2, 3, 4, 5], row], dtype=dtype))
    for column in (*MEASURES, "energy"):
        np.testing.assert_array_equal(np.isnan(served[column]), [False, True], err_msg=column)
    assert np.isnan(served["top_scores"][1]).all()
    shares = np.array([[0, 1, 0, 0, 0, 0], [0] * 6], dtype=dtype)  # no probability in the second
    served = head_of(shares, trial={"x": shares[:1]})
    np.testing.assert_array_equal(np.isnan(served["entropy"]), [False, True])


@ON_EACH_DEVICE
@pytest.mark.parametrize("opset", [11, 13, 26])
@pytest.mark.parametrize("n_classes", [2, 5, 10, 1000])
def test_probabilities_keep_what_their_tails_still_say(n_classes, opset):
    logits = np.concatenate([draw(7, 20, n_classes, scale=s) for s in (1, 5, 20)]).astype(float)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    served = head_of(rows, opset=opset)
    assert served.choice.kind == "probabilities"
    with np.errstate(divide="ignore"):
        order, _, measures = reference(np.log(rows.astype(np.float64)))
    assert_measures_agree(served, measures)
    np.testing.assert_array_equal(served["top_classes"], order[:, :10])
    np.testing.assert_array_equal(served["scores"], rows)
    assert "energy" not in served.outputs
