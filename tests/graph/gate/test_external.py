"""External weights, as ONNX Runtime takes them: from memory, in an empty working directory."""

import mmap

import numpy as np
import onnxruntime
import pytest
from graph_models import (
    BIAS,
    BLOB,
    EXTERNAL_WEIGHTS,
    branched,
    external,
    function_call,
    linear,
    make_model,
    node,
    run_session,
)
from onnx import TensorProto

from service.errors import InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.gate.external_weights import (
    MAX_EMBEDDED_BYTES,
    attach_external_data,
    external_files,
)
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
    np.testing.assert_allclose(y, X @ EXTERNAL_WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


def test_several_files_may_hold_weights(tmp_path, monkeypatch):
    model = linear(bias=external("b", [20], 0, location="b.data"))
    assert external_files(model) == ("b.data", "w.data")
    companions = {"w.data": BLOB, "b.data": BIAS.tobytes()}
    in_memory, y = load(model, companions, tmp_path, monkeypatch)
    assert in_memory == ("w.data",)  # 80 bytes are put into the graph
    np.testing.assert_allclose(y, X @ EXTERNAL_WEIGHTS + BIAS, rtol=1e-4, atol=1e-4)


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
    np.testing.assert_allclose(y, X @ EXTERNAL_WEIGHTS, rtol=1e-4, atol=1e-4)


def in_constant():
    nodes = [
        node("Constant", [], ["w"], value=external("", [40, 20], 0, 3200)),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    return make_model(nodes)


def in_branch():
    weights = [external("w", [40, 20], 0, 3200)]
    return make_model(branched([node("MatMul", ["x", "w"], ["a"])], "x", "y", initializers=weights))


def in_function():
    body = [
        node("Constant", [], ["w"], value=external("", [40, 20], 0, 3200)),
        node("MatMul", ["a", "w"], ["o"]),
    ]
    call, options = function_call(body, "x", "y")
    return make_model(call, **options)


@pytest.mark.parametrize("make", [in_constant, in_branch, in_function])
def test_weights_of_nodes_branches_and_functions_are_put_into_the_graph(
    make, tmp_path, monkeypatch
):
    model = make()
    assert external_files(model) == ("w.data",)
    in_memory, y = load(model, {"w.data": BLOB}, tmp_path, monkeypatch)
    assert in_memory == ()
    np.testing.assert_allclose(y, X @ EXTERNAL_WEIGHTS, rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize(
    "location",
    [
        "",
        "..",
        "folder/w.data",
        "/etc/passwd",
        "..\\w.data",
        "C:w.data",
        "w.data\0",
        "*/_ORT_MEM_ADDR_/*",
    ],
)
@pytest.mark.parametrize("check", [external_files, describe_onnx_model])
def test_only_plain_names_are_followed(location, check):
    with pytest.raises(InvalidOnnxModel, match=r"tensor 'w'.*plain name") as caught:
        check(linear(external("w", [40, 20], 0, location=location)))
    assert caught.value.violations[0].location == "model"


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (external("w", [40, 20], 0, 3199), "3200 bytes.*'3199'"),
        (external("w", [40, 20], -4, 3200), "offset '-4'"),
        (external("w", [40, 20], 0, "9" * 30), "length"),
        (external("w", [40, 20], "²"), "offset"),
        (external("w", [40, -20], 0), "type or shape"),
        (external("w", [2], 0, element_type=TensorProto.STRING), "type or shape"),
        (external("w", [2], 0, element_type=999), "type or shape"),
        (external("w", [2**40, 2**40], 0, 3200), "bytes"),
    ],
)
def test_references_that_do_not_fit_their_tensor_are_refused(tensor, message):
    with pytest.raises(InvalidOnnxModel, match=message):
        external_files(linear(tensor))


def twice():
    tensor = external("w", [40, 20], 0)
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


@pytest.mark.parametrize(
    ("tensor", "companions", "message"),
    [
        (twice(), {}, "twice"),
        (None, {}, "sent: none"),
        (None, {"other": BLOB}, r"tensor 'w' needs.*'w.data'.*sent: 'other'"),
        *((None, {"w.data": BLOB[:n]}, f"'w.data', which has {n}") for n in (0, 3199, 3279)),
    ],
)
def test_references_that_do_not_fit_what_was_sent_are_refused(tensor, companions, message):
    with pytest.raises(InvalidOnnxModel, match=message):
        attach_external_data(linear(tensor), companions)


def test_two_to_a_byte_are_counted_as_onnx_runtime_does():
    model = linear(external("w", [5], 0, 3, element_type=TensorProto.INT4))
    assert external_files(model) == ("w.data",)


def test_many_references_to_one_file_cannot_fill_the_memory():
    shape = [2**20]
    nodes = [
        node("Constant", [], [f"c{index}"], value=external("", shape, 0))
        for index in range(MAX_EMBEDDED_BYTES // 2**22 + 1)
    ]
    model = make_model(nodes)
    zeros = memoryview(mmap.mmap(-1, 2**22))
    with pytest.raises(InvalidOnnxModel, match="exceed"):
        attach_external_data(model, {"w.data": zeros})
