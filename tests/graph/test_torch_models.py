"""Models as PyTorch exports them; tests/data/onnx/make_torch_models.py made the files."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import reference, serve

FOLDER = Path(__file__).parents[1] / "data" / "onnx"


with np.load(FOLDER / "references.npz") as references:
    IMAGES, LOGITS = references["images"], references["logits"]


def assert_agree(outputs, logits):
    order, probabilities, measures = reference(logits)
    np.testing.assert_array_equal(outputs["top_classes"], order[:, :5])
    np.testing.assert_allclose(outputs["top_scores"], probabilities[:, :5], rtol=1e-4)
    for column, expected in measures.items():
        np.testing.assert_allclose(outputs[column], expected, rtol=1e-4, err_msg=column)


@pytest.mark.parametrize(
    ("name", "opset", "batch", "softmax"),
    [
        ("torch_legacy_11", 11, None, False),
        ("torch_legacy_17_softmax", 17, None, True),
        ("torch_dynamo_18_fixed", 18, 4, False),
        ("torch_dynamo_23_softmax", 23, None, True),
    ],
)
def test_exports_answer_as_in_pytorch(name, opset, batch, softmax):
    served = serve((FOLDER / f"{name}.onnx").read_bytes(), {"images": IMAGES[:batch]})
    assert served.description.opset == opset
    assert served.description.fixed_batch == batch
    assert served.choice.kind == "logits"
    assert (served.choice.tensor != served.choice.name) == softmax
    assert_agree(served, LOGITS[:batch])
