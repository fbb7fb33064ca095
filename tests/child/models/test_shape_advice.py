"""Advice for arrays in a shape that the model does not take."""

import json
import re

import numpy as np
import pytest

from service.calibrations.preprocessing_config import PreprocessingConfig
from service.child.onnx.model_inputs import ModelInputs, check_input_types, fit_inputs
from service.errors import InvalidConfig, InvalidInput, InvalidOnnxModel
from service.graph.description import TensorSpec
from service.runner.messages.preprocessing import PRESETS


@pytest.mark.parametrize(
    ("taken", "sent", "advice"),
    [
        ((None, 3, 16, 16), (5, 16, 16, 3), "write x.transpose(0, 3, 1, 2)"),
        ((None, 16, 16, 3), (5, 3, 16, 16), "write x.transpose(0, 2, 3, 1)"),
        ((None, 1, 28, 28), (5, 28, 28), "write x[:, None]"),
        ((None, 28, 28, 1), (5, 28, 28), "write x[..., None]"),
        ((None, 8), (8,), "wrap one row in a list (x[None])"),
        ((None, 3, 16, 16), (3, 16, 16), "wrap one row in a list (x[None])"),
    ],
)
def test_frequent_mistakes_have_advice(taken, sent, advice):
    if advice.startswith("write x["):
        assert eval(advice[6:], {"x": np.zeros(sent)}).shape[1:] == taken[1:]  # noqa: S307 - ours
    elif advice.startswith("write"):
        axes = [int(axis) for axis in advice[18:-1].split(", ")]
        moved = np.zeros(sent).transpose(axes)
        assert moved.shape[1:] == taken[1:]
    with pytest.raises(InvalidInput, match="expected shape") as caught:
        fit_inputs(
            {"x": np.zeros(sent)}, [TensorSpec("x", "float32", taken)], location="inputs", start=0
        )
    assert caught.value.violations[0].message.endswith(advice)


def test_pixels_without_preprocessing_have_advice():
    spec = TensorSpec("x", "float32", (None, 1, 28, 28))
    with pytest.raises(InvalidInput, match="has 'x'; pixels need config"):
        fit_inputs({"pixels": np.zeros((5, 28, 28, 1), np.uint8)}, [spec], location="c", start=0)


@pytest.mark.parametrize("preset", ["imagenet", "unit", "none"])
@pytest.mark.parametrize(
    "taken", [(1, 28, 28), (28, 28, 1), (28, 28), (3, 28, 28), (28, 28, 3), (3, 224, 224)]
)
def test_the_advice_about_preprocessing_mends_it(preset, taken):
    """The options in the message make what the model takes; none are named for what suits."""
    inputs = [TensorSpec("x", "float32", (None, *taken))]
    config: dict[str, object] = {"preset": preset}
    try:
        ModelInputs(inputs, PreprocessingConfig(**config).resolved()).check_preprocessing()
    except InvalidConfig as error:
        (violation,) = error.violations
        told = violation.message.partition("; set ")[2]
        config |= {
            key: json.loads(value)
            for key, value in re.findall(r'(\w+) to ("\w+"|\[\d+, \d+\]|null)', told)
        }
        ModelInputs(inputs, PreprocessingConfig(**config).resolved()).check_preprocessing()


def test_advice_about_preprocessing_is_a_sentence():
    inputs = [TensorSpec("x", "float32", (None, 28, 28, 1))]
    with pytest.raises(InvalidConfig) as caught:
        ModelInputs(inputs, PRESETS["imagenet"]).check_preprocessing()
    assert caught.value.violations[0].message.endswith(
        '; set colour to "grey", preset to "unit" (or mean and std to one number each), layout to '
        '"nhwc", resize to [28, 28] and crop to null'
    )


def test_other_shapes_have_none():
    spec = TensorSpec("x", "float32", (None, 8))
    with pytest.raises(InvalidInput, match=r"got \[2, 7\] of float64$"):
        fit_inputs({"x": np.zeros((2, 7))}, [spec], location="inputs", start=0)


@pytest.mark.parametrize(
    ("width", "columns", "said"),
    [
        (1, None, "; send an array of shape [rows, 1] for each of them, or a table with these"),
        (1, ["age", "heigth"], "none for `height`, but `heigth`; did you mean `heigth`?; rename"),
        (1, ["age", "height"], "; each is read from the column of its name: leave `inputs` out of"),
        (1, ["age"], "there is none for `height`; rename columns, or name the column of every"),
        (2, None, "it has 'age', 'height'"),
    ],
)
def test_a_model_with_an_input_for_each_column_has_advice(width, columns, said):
    specs = [TensorSpec(name, "float32", (None, width)) for name in ("age", "height")]
    given = None if columns is None else {"inputs": columns}
    with pytest.raises(InvalidInput, match="no such input; it has 'age', 'height'") as caught:
        fit_inputs(
            {"inputs": np.zeros((5, 2))}, specs, location="calibration", start=0, columns=given
        )
    message = caught.value.violations[0].message
    assert said in message
    assert width == 1 or message.endswith(said)
    if columns is not None and "height" not in columns:
        assert "(--columns height='its column' --columns age=age)" in message


def test_a_model_of_text_is_named_as_unsupported():
    with pytest.raises(InvalidOnnxModel, match="takes text, which is not supported yet"):
        check_input_types([TensorSpec("x", "str", (None, 1))])
