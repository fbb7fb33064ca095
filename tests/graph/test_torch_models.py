"""Models as PyTorch exports them; tests/data/onnx/make_torch_models.py made the files."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from graph_models import reference, run_session, serve

from service.graph.describe import describe_onnx_model
from service.graph.gate.external_weights import attach_external_data
from service.graph.load import load_onnx_model
from service.graph.output.choose import choose_output
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

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


def test_an_export_with_external_weights(images, logits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "torch_dynamo_18_external.onnx"
    model = load_onnx_model((FOLDER / name).read_bytes())
    assert describe_onnx_model(model).external_files == (f"{name}.data",)
    companions = {f"{name}.data": (FOLDER / f"{name}.data").read_bytes()}
    in_memory = attach_external_data(model, companions)
    assert in_memory == (f"{name}.data",)

    def run(graph):
        options = onnxruntime.SessionOptions()
        options.add_external_initializers_from_files_in_memory(
            list(in_memory),
            list(companions.values()),
            [len(companions[name]) for name in in_memory],
        )
        return run_session(graph, {"images": images}, options)

    plan = plan_output(model)
    choice = choose_output(plan, run(probe_graph(model, plan)), n_samples=len(images))
    outputs = run(build_serving_graph(model, choice, top_k=(1, 5)))
    assert_agree({key.removeprefix("howsure_"): array for key, array in outputs.items()}, logits)
