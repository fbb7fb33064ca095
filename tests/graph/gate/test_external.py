"""External weights, as ONNX Runtime takes them: from memory, in an empty working directory."""

import mmap

import numpy as np
import onnx
import onnxruntime
import pytest
from graph_external import BIAS, BLOB, WEIGHTS, external, linear
from graph_models import constant, make_model, node, run_session, value
from onnx import TensorProto, helper

from service.graph.describe import describe_onnx_model
from service.graph.gate.external_weights import attach_external_data, external_files
from service.graph.load import load_onnx_model

X = np.random.default_rng(1).normal(size=(3, 40)).astype(np.float32)


def load(model, companions, tmp_path, monkeypatch):
    """Run the model from bytes, in a folder where a file of the same name holds other numbers."""
    monkeypatch.chdir(tmp_path)
    for name in companions:
        (tmp_path / name).write_bytes(bytes(len(companions[name])))
    loaded = load_onnx_model(model.SerializeToString())
    in_memory = attach_external_data(loaded, companions)
    options = onnxruntime.SessionOptions()
    buffers = [companions[name] for name in in_memory]
    options.add_external_initializers_from_files_in_memory(
        list(in_memory), buffers, [len(buffer) for buffer in buffers]
    )
    return in_memory, run_session(loaded, {"x": X}, options)["y"]


def test_large_weights_come_from_memory_and_never_from_the_folder(tmp_path, monkeypatch):
    in_memory, y = load(linear(), {"w.data": BLOB}, tmp_path, monkeypatch)
    assert in_memory == ("w.data",)
    np.testing.assert_allclose(y, X @ WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


def test_a_mapped_file_will_do(tmp_path, monkeypatch):
    path = tmp_path / "upload-17"
    path.write_bytes(BLOB)
    with path.open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    folder = tmp_path / "work"
    folder.mkdir()
    _, y = load(linear(), {"w.data": mapped}, folder, monkeypatch)
    np.testing.assert_allclose(y, X @ WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


def test_what_onnx_saves_is_read(tmp_path, monkeypatch):
    model = make_model(
        [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["y"])],
        initializers=[constant("w", WEIGHTS), constant("b", BIAS)],
    )
    onnx.save_model(
        model,
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=0,
    )
    saved = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    assert describe_onnx_model(saved).external_files == ("model.onnx.data",)
    companions = {"model.onnx.data": (tmp_path / "model.onnx.data").read_bytes()}
    folder = tmp_path / "work"
    folder.mkdir()
    _, y = load(saved, companions, folder, monkeypatch)
    np.testing.assert_allclose(y, X @ WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


def test_several_files_may_hold_weights(tmp_path, monkeypatch):
    model = linear(bias=external("b", [20], 0, location="b.data"))
    assert external_files(model) == ("b.data", "w.data")
    companions = {"w.data": BLOB, "b.data": BIAS.tobytes()}
    in_memory, y = load(model, companions, tmp_path, monkeypatch)
    assert in_memory == ("w.data",)  # 80 bytes are put into the graph
    np.testing.assert_allclose(y, X @ WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


def test_a_shape_may_lie_outside(tmp_path, monkeypatch):
    blob = BLOB + np.array([-1, 20], np.int64).tobytes()
    model = make_model(
        [node("MatMul", ["x", "w"], ["m"]), node("Reshape", ["m", "s"], ["y"])],
        initializers=[
            external("w", [40, 20], 0, 3200),
            external("s", [2], 3280, 16, element_type=TensorProto.INT64),
        ],
    )
    _, y = load(model, {"w.data": blob}, tmp_path, monkeypatch)
    np.testing.assert_allclose(y, X @ WEIGHTS, rtol=1e-4, atol=1e-4)


def in_constant():
    nodes = [
        node("Constant", [], ["w"], value=external("", [40, 20], 0, 3200)),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    return make_model(nodes)


def in_branch():
    then = helper.make_graph(
        [node("MatMul", ["x", "w"], ["a"])],
        "then",
        [],
        [value("a")],
        [external("w", [40, 20], 0, 3200)],
    )
    other = helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [value("b")])
    return make_model(
        [node("If", ["flag"], ["y"], then_branch=then, else_branch=other)],
        initializers=[constant("flag", True, np.bool_)],
    )


def in_function():
    body = [
        node("Constant", [], ["w"], value=external("", [40, 20], 0, 3200)),
        node("MatMul", ["a", "w"], ["o"]),
    ]
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("own", "Project", ["a"], ["o"], body, imports)
    return make_model(
        [node("Project", ["x"], ["y"], domain="own")],
        functions=[function],
        opset_imports=[helper.make_opsetid("own", 1)],
    )


@pytest.mark.parametrize("make", [in_constant, in_branch, in_function])
def test_weights_of_nodes_branches_and_functions_are_put_into_the_graph(
    make, tmp_path, monkeypatch
):
    model = make()
    assert external_files(model) == ("w.data",)
    in_memory, y = load(model, {"w.data": BLOB}, tmp_path, monkeypatch)
    assert in_memory == ()
    np.testing.assert_allclose(y, X @ WEIGHTS, rtol=1e-4, atol=1e-4)


def test_sparse_weights_are_found():
    model = make_model([node("MatMul", ["x", "w"], ["y"])])
    model.graph.sparse_initializer.add(
        values=external("w", [2], 0, 8),
        indices=external("i", [2], 8, 16, element_type=TensorProto.INT64),
        dims=[40, 20],
    )
    assert external_files(model) == ("w.data",)
    attach_external_data(model, {"w.data": BLOB})
    assert external_files(model) == ()
