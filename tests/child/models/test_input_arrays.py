"""Arrays become what the model's inputs are; the value that cannot is named."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from service.calibrations.preprocessing_config import PreprocessingConfig
from service.child.onnx.model_inputs import ModelInputs, by_input, check_input_types, fit_inputs
from service.errors import InvalidConfig, InvalidInput, InvalidOnnxModel
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


def refused_at(array, dtype, shape=None, *, start=0):
    with pytest.raises(InvalidInput) as caught:
        fit(array, dtype, shape, start=start)
    return caught.value.violations[0].location


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


def test_the_same_type_is_not_copied_and_extremes_are_cast():
    array = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    assert fit(array, "float32") is array
    np.testing.assert_array_equal(fit(array, "float16"), array)
    assert fit(np.array([[True]]), "int8")[0, 0] == 1
    assert fit(np.array([[2**63 - 1]], np.uint64), "int64")[0, 0] == 2**63 - 1


# Also what the property above does not draw: numbers that are not finite, beyond 64 bits, ….
NO_CASTS = [(1e39, "f8", "float32"), (np.nan, "f8", "int32"), (2.0**63, "f8", "int64")]
NO_CASTS += [(0.5, "f8", "int64"), (2**63, "u8", "int64"), (-1, "i8", "uint64")]


@pytest.mark.parametrize(("value", "kept_as", "dtype"), NO_CASTS)
def test_the_value_that_cannot_be_cast_is_named(value, kept_as, dtype):
    array = np.zeros((4, 2), dtype=kept_as)
    array[2, 1] = value
    assert refused_at(array, dtype, start=10) == "inputs.x[12][1]"


SHAPES = [
    *(((2,), (None, 3), True), ((2, 3, 1), (None, 3), True), ((2, 4), (None, 3), True)),
    *(((0, 3), (None, 3), True), ((2, 0), (None, None), True), ((), None, True)),
    *(((7, 3), (None, 3), False), ((7, 3), (8, 3), False), ((7, 9), (None, None), False)),
    *(((7, 2, 2), None, False), ((7,), (1,), False)),
]


@pytest.mark.parametrize(("shape", "taken", "is_refused"), SHAPES)
def test_the_number_of_rows_is_free_and_no_other(shape, taken, is_refused):
    if is_refused:
        assert refused_at(np.zeros(shape), "float32", taken) == "inputs.x"
    else:
        assert fit(np.zeros(shape), "float32", taken).shape == shape


ROWS = np.zeros((2, 1))


NAMES = [
    ({"a": ROWS}, "inputs.b"),
    ({"a": ROWS, "b": ROWS, "c": ROWS}, "inputs.c"),
    ({"a": ROWS, "b": ROWS, "labels": ROWS}, "inputs.labels"),
    ({"a": ROWS, "b": ROWS[:1]}, "inputs"),
    ({"inputs": ROWS}, "inputs.inputs"),
]


@pytest.mark.parametrize(("arrays", "location"), NAMES)
def test_names_must_be_those_of_the_model(arrays, location):
    specs = [TensorSpec(name, "float32", None) for name in ("a", "b")]
    with pytest.raises(InvalidInput) as caught:
        fit_inputs(by_input(arrays, specs), specs, location="inputs", start=0)
    assert caught.value.violations[0].location == location
    assert ("leave it out" in caught.value.message) == ("labels" in arrays)


@pytest.mark.parametrize("name", ["str", "bfloat16", "sequence", "complex64"])
def test_inputs_of_no_numbers_are_refused(name):
    check_input_types([TensorSpec("x", number, None) for number in NUMBERS])
    with pytest.raises(InvalidOnnxModel, match="'x'"):
        check_input_types([TensorSpec("x", name, None)])


# Arrays in a shape that the model does not take have advice.


def advice(arrays, specs, **options):
    with pytest.raises(InvalidInput) as caught:
        fit_inputs(arrays, specs, location="calibration", start=0, **options)
    return caught.value.violations[0].message


MISTAKES = [
    ((None, 3, 16, 16), (5, 16, 16, 3), "x.transpose(0, 3, 1, 2)"),
    ((None, 16, 16, 3), (5, 3, 16, 16), "x.transpose(0, 2, 3, 1)"),
    ((None, 1, 28, 28), (5, 28, 28), "x[:, None]"),
    ((None, 28, 28, 1), (5, 28, 28), "x[..., None]"),
    ((None, 8), (8,), "x[None]"),
    ((None, 3, 16, 16), (3, 16, 16), "x[None]"),
]


@pytest.mark.parametrize(("taken", "sent", "expression"), MISTAKES)
def test_frequent_mistakes_have_advice_that_mends_them(taken, sent, expression):
    message = advice({"x": np.zeros(sent)}, [TensorSpec("x", "float32", taken)])
    assert expression in message
    assert eval(expression, {"x": np.zeros(sent)}).shape[1:] == taken[1:]  # noqa: S307 - ours


def test_pixels_without_preprocessing_have_advice():
    spec = TensorSpec("x", "float32", (None, 1, 28, 28))
    message = advice({"pixels": np.zeros((5, 28, 28, 1), np.uint8)}, [spec])
    assert "config.preprocessing" in message


PICTURE_SHAPES = [(1, 28, 28), (28, 28, 1), (28, 28), (3, 28, 28), (28, 28, 3), (3, 224, 224)]


@pytest.mark.parametrize("preset", ["imagenet", "unit", "none"])
@pytest.mark.parametrize("taken", PICTURE_SHAPES)
def test_the_advice_about_preprocessing_mends_it(preset, taken):
    """The options in the message make what the model takes; none are named for what suits."""
    inputs = [TensorSpec("x", "float32", (None, *taken))]
    config: dict[str, object] = {"preset": preset}
    try:
        ModelInputs(inputs, PreprocessingConfig(**config).resolved()).check_preprocessing()
    except InvalidConfig as error:
        told = error.violations[0].message.partition("; set ")[2]
        options = re.findall(r'(\w+) to ("\w+"|\[\d+, \d+\]|null)', told)
        config |= {key: json.loads(value) for key, value in options}
        ModelInputs(inputs, PreprocessingConfig(**config).resolved()).check_preprocessing()


BY_COLUMN = [
    (1, None, "[rows, 1]"),
    (1, ["age", "heigth"], "`heigth`?"),
    (1, ["age", "heigth"], "(--columns height='its column' --columns age=age)"),
    (1, ["age", "height"], "leave `inputs` out"),
    (1, ["age"], "none for `height`"),
    (2, None, "it has 'age', 'height'"),
]


@pytest.mark.parametrize(("width", "columns", "named"), BY_COLUMN)
def test_a_model_with_an_input_for_each_column_has_advice(width, columns, named):
    specs = [TensorSpec(name, "float32", (None, width)) for name in ("age", "height")]
    options = {"columns": None if columns is None else {"inputs": columns}}
    message = advice({"inputs": np.zeros((5, 2))}, specs, **options)
    assert named in message
    assert width == 1 or message.endswith(named)
