"""Advice for arrays in a shape that the model does not take."""

import json
import re

import numpy as np
import pytest

from service.calibrations.preprocessing_config import PreprocessingConfig
from service.child.onnx.model_inputs import ModelInputs, fit_inputs
from service.errors import InvalidConfig, InvalidInput
from service.graph.description import TensorSpec


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
    ((None, 8), (2, 7), None),
]


@pytest.mark.parametrize(("taken", "sent", "expression"), MISTAKES)
def test_frequent_mistakes_have_advice_that_mends_them(taken, sent, expression):
    message = advice({"x": np.zeros(sent)}, [TensorSpec("x", "float32", taken)])
    if expression is None:
        assert message.endswith("got [2, 7] of float64")
    else:
        assert expression in message
        assert eval(expression, {"x": np.zeros(sent)}).shape[1:] == taken[1:]  # noqa: S307 - ours


def test_pixels_without_preprocessing_have_advice():
    spec = TensorSpec("x", "float32", (None, 1, 28, 28))
    message = advice({"pixels": np.zeros((5, 28, 28, 1), np.uint8)}, [spec])
    assert "config.preprocessing" in message


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
