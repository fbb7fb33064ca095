"""Advice for arrays in a shape that the model does not take."""

import numpy as np
import pytest

from service.child.onnx.model_inputs import check_input_types, fit_inputs
from service.errors import InvalidInput, InvalidOnnxModel
from service.graph.description import TensorSpec


@pytest.mark.parametrize(
    ("taken", "sent", "advice"),
    [
        ((None, 3, 16, 16), (5, 16, 16, 3), "write x.transpose(0, 3, 1, 2)"),
        ((None, 16, 16, 3), (5, 3, 16, 16), "write x.transpose(0, 2, 3, 1)"),
        ((None, 8), (8,), "wrap one row in a list"),
        ((None, 3, 16, 16), (3, 16, 16), "wrap one row in a list"),
    ],
)
def test_frequent_mistakes_have_advice(taken, sent, advice):
    if advice.startswith("write"):
        axes = [int(axis) for axis in advice[18:-1].split(", ")]
        moved = np.zeros(sent).transpose(axes)
        assert moved.shape[1:] == taken[1:]
    with pytest.raises(InvalidInput, match="expected shape") as caught:
        fit_inputs(
            {"x": np.zeros(sent)}, [TensorSpec("x", "float32", taken)], location="inputs", start=0
        )
    assert caught.value.violations[0].message.endswith(advice)


def test_other_shapes_have_none():
    spec = TensorSpec("x", "float32", (None, 8))
    with pytest.raises(InvalidInput, match=r"got \[2, 7\] of float64$"):
        fit_inputs({"x": np.zeros((2, 7))}, [spec], location="inputs", start=0)


@pytest.mark.parametrize(("width", "is_told"), [(1, True), (2, False)])
def test_a_model_with_an_input_for_each_column_has_advice(width, is_told):
    specs = [TensorSpec(name, "float32", (None, width)) for name in ("age", "height")]
    with pytest.raises(InvalidInput, match="no such input; it has 'age', 'height'") as caught:
        fit_inputs({"inputs": np.zeros((5, 2))}, specs, location="calibration", start=0)
    assert ("export it with one input" in caught.value.violations[0].message) is is_told


def test_a_model_of_text_is_named_as_unsupported():
    with pytest.raises(InvalidOnnxModel, match="takes text, which is not supported yet"):
        check_input_types([TensorSpec("x", "str", (None, 1))])
