import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from service.child.onnx.model_inputs import by_input, check_input_types, fit_inputs
from service.errors import InvalidInput, InvalidOnnxModel
from service.graph.description import TensorSpec
from service.runner.messages.frames import DTYPES

NUMBERS = sorted(DTYPES)
finite = npst.arrays(
    st.sampled_from(NUMBERS).map(np.dtype),
    npst.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=4),
    elements={"allow_nan": False, "allow_infinity": False},
)


def fit(array, dtype, shape=None, *, start=0):
    spec = TensorSpec("x", dtype, shape)
    return fit_inputs({"x": array}, [spec], location="inputs", start=start)["x"]


def refusal(array, dtype, shape=None, *, start=0):
    with pytest.raises(InvalidInput) as caught:
        fit(array, dtype, shape, start=start)
    return caught.value.violations[0]


@given(finite, st.sampled_from(NUMBERS))
def test_casts_keep_values(array, name):
    dtype = np.dtype(name)
    try:
        cast = fit(array, name)
    except InvalidInput:
        # Only what a Python integer or a float64 shows to be out of the type's reach is refused.
        assert not all(fits(value, dtype) for value in array.ravel().tolist())
        return
    assert cast.dtype == dtype
    for before, after in zip(array.ravel().tolist(), cast.ravel().tolist(), strict=True):
        if dtype.kind == "f":
            assert after == pytest.approx(float(before), rel=float(np.finfo(dtype).eps), abs=6e-8)
        else:
            assert after == before


def fits(value, dtype):
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float64(value).astype(dtype)))
    if dtype.kind == "b":
        return value in (0, 1)
    return value == int(value) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def test_the_same_type_is_not_copied():
    array = np.zeros((2, 3), dtype=np.float32)
    assert fit(array, "float32") is array


def test_nan_and_infinity_reach_a_model_that_takes_floats():
    given_rows = np.array([[np.nan, np.inf, -np.inf]])
    np.testing.assert_array_equal(fit(given_rows, "float16"), given_rows)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1e39, "float32"),
        (70000, "float16"),
        (0.5, "int64"),
        (np.nan, "int32"),
        (np.inf, "int64"),
        (-1, "uint8"),
        (256, "uint8"),
        (2.0**63, "int64"),
        (2.0**64, "uint64"),
        (2, "bool"),
    ],
)
def test_the_value_that_cannot_be_cast_is_named(value, dtype):
    array = np.zeros((4, 2), dtype=np.float64)
    array[2, 1] = value
    assert refusal(array, dtype, start=10).location == "inputs.x[12][1]"


def test_integers_of_any_width_are_compared_exactly():
    assert refusal(np.array([[2**64 - 1]], dtype=np.uint64), "int64").location == "inputs.x[0][0]"
    assert refusal(np.array([[-1]], dtype=np.int64), "uint64").location == "inputs.x[0][0]"
    assert fit(np.array([[2**63 - 1]], dtype=np.uint64), "int64")[0, 0] == 2**63 - 1


@pytest.mark.parametrize(
    ("given_shape", "wanted"),
    [
        ((2,), (None, 3)),
        ((2, 3, 1), (None, 3)),
        ((2, 4), (None, 3)),
        ((0, 3), (None, 3)),
        ((2, 0), (None, None)),
        ((), None),
    ],
)
def test_other_shapes_are_refused(given_shape, wanted):
    found = refusal(np.zeros(given_shape), "float32", wanted)
    assert found.location == "inputs.x"


@pytest.mark.parametrize(
    ("given_shape", "wanted"),
    [
        ((7, 3), (None, 3)),
        ((7, 3), (8, 3)),
        ((7, 9), (None, None)),
        ((7, 2, 2), None),
        ((7,), (1,)),
    ],
)
def test_the_number_of_rows_is_free(given_shape, wanted):
    assert fit(np.zeros(given_shape), "float32", wanted).shape == given_shape


def test_names_must_be_those_of_the_model():
    specs = [TensorSpec(name, "float32", None) for name in ("a", "b")]
    rows = np.zeros((2, 1))
    for arrays, location in [
        ({"a": rows}, "inputs.b"),
        ({"a": rows, "b": rows, "c": rows}, "inputs.c"),
        ({"a": rows, "b": rows[:1]}, "inputs"),
        ({"inputs": rows}, "inputs.inputs"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            fit_inputs(by_input(arrays, specs), specs, location="inputs", start=0)
        assert caught.value.violations[0].location == location


def test_inputs_of_no_numbers_are_refused():
    check_input_types([TensorSpec("x", name, None) for name in NUMBERS])
    for name in ("str", "bfloat16", "sequence", "complex64"):
        with pytest.raises(InvalidOnnxModel, match="'x'"):
            check_input_types([TensorSpec("x", name, None)])


def test_labels_in_a_request_are_named():
    specs = [TensorSpec("x", "float32", (None, 2))]
    with pytest.raises(InvalidInput, match="has no such input; it has 'x'; leave it out"):
        fit_inputs({"x": np.ones((3, 2)), "labels": np.ones(3)}, specs, location="inputs", start=0)
