"""Models as PyTorch exports them; tests/data/onnx/make_torch_models.py made the files."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import reference, serve

FOLDER = Path(__file__).parents[1] / "data" / "onnx"


@pytest.fixture(scope="module")
def images():
    with np.load(FOLDER / "references.npz") as references:
        return references["images"]


@pytest.fixture(scope="module")
def logits():
    with np.load(FOLDER / "references.npz") as references:
        return references["logits"]


def assert_agree(outputs, logits):
    order, probabilities, measures = reference(logits)
    np.testing.assert_array_equal(outputs["top_classes"], order[:, :5])
    np.testing.assert_allclose(outputs["top_scores"], probabilities[:, :5], rtol=1e-4)
    for column, expected in measures.items():
        np.testing.assert_allclose(outputs[column], expected, rtol=1e-4, err_msg=column)


@pytest.mark.parametrize(
    ("name", "opset", "softmax"),
    [
        ("torch_legacy_11", 11, False),
        ("torch_legacy_17_softmax", 17, True),
        ("torch_dynamo_23_softmax", 23, True),
    ],
)
def test_exports_with_a_free_batch(name, opset, softmax, images, logits):
    served = serve((FOLDER / f"{name}.onnx").read_bytes(), {"images": images})
    assert served.description.opset == opset
    assert served.description.fixed_batch is None
    assert served.choice.kind == "logits"
    assert (served.choice.tensor != served.choice.name) == softmax
    assert_agree(served, logits)


def test_an_export_with_a_fixed_batch(images, logits):
    data = (FOLDER / "torch_dynamo_18_fixed.onnx").read_bytes()
    served = serve(data, {"images": images[:4]})
    assert served.description.fixed_batch == 4
    assert_agree(served, logits[:4])
