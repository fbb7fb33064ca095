"""External weights, as ONNX Runtime takes them: from memory, in an empty working directory."""

import mmap
from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from graph_models import branched, external, function_call, make_model, node, run_session, steps
from onnx import ModelProto, TensorProto

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.describe import describe_onnx_model
from service.graph.gate.external_weights import (
    MAX_EMBEDDED_BYTES,
    attach_external_data,
    external_files,
)
from service.graph.load import load_onnx_model

X = np.random.default_rng(1).normal(size=(3, 40)).astype(np.float32)


WEIGHTS = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
BIAS = np.arange(20, dtype=np.float32)
BLOB = WEIGHTS.tobytes() + BIAS.tobytes()


def weights(name="w"):
    return external(name, [40, 20], 0, 3200)


def linear(w=None, bias=None):
    """Return a linear model whose weights lie in ``w.data``, of which ``BLOB`` is the content."""
    initializers = [w or weights(), bias or external("b", [20], 3200, 80)]
    return make_model(steps("m = MatMul(x, w); y = Add(m, b)"), initializers=initializers)


CONSTANT = node("Constant", [], ["w"], value=weights(""))
IN_CONSTANT = make_model([CONSTANT, *steps("y = MatMul(x, w)")])
IN_BRANCH = make_model(branched(steps("a = MatMul(x, w)"), "x", "y", initializers=[weights()]))


def in_function():
    call, options = function_call([CONSTANT, *steps("o = MatMul(a, w)")], "x", "y")
    return make_model(call, **options)


def with_shape():
    shape = external("s", [2], 3280, 16, element_type=TensorProto.INT64)
    nodes = steps("m = MatMul(x, w); y = Reshape(m, s)")
    return make_model(nodes, initializers=[weights(), shape])


WITH_SHAPE = BLOB + np.array([-1, 20], np.int64).tobytes()
TWO_FILES = {"w.data": BLOB, "b.data": BIAS.tobytes()}


MODELS = [
    (linear(), {"w.data": BLOB}, ("w.data",), BIAS),
    # 80 bytes are put into the graph.
    (linear(bias=external("b", [20], 0, location="b.data")), TWO_FILES, ("w.data",), BIAS),
    (with_shape(), {"w.data": WITH_SHAPE}, ("w.data",), 0),
    # Weights of nodes, branches and functions are put into the graph.
    (IN_CONSTANT, {"w.data": BLOB}, (), 0),
    (IN_BRANCH, {"w.data": BLOB}, (), 0),
    (in_function(), {"w.data": BLOB}, (), 0),
]


@pytest.mark.parametrize(("model", "companions", "in_memory", "bias"), MODELS)
def test_weights_come_from_memory_and_never_from_the_folder(
    tmp_path, monkeypatch, model, companions, in_memory, bias
):
    """Files of the same names in the folder hold other numbers."""
    assert external_files(model) == tuple(sorted(companions))
    monkeypatch.chdir(tmp_path)
    for name, content in companions.items():
        (tmp_path / name).write_bytes(bytes(len(content)))
    loaded = load_onnx_model(model.SerializeToString())
    assert attach_external_data(loaded, companions) == in_memory
    options = onnxruntime.SessionOptions()
    buffers = [companions[name] for name in in_memory]
    sizes = [len(buffer) for buffer in buffers]
    options.add_external_initializers_from_files_in_memory(list(in_memory), buffers, sizes)
    y = run_session(loaded, {"x": X}, options)["y"]
    np.testing.assert_allclose(y, X @ WEIGHTS + bias, rtol=1e-4, atol=1e-4)


def test_sparse_weights_are_found():
    model = make_model(steps("y = MatMul(x, w)"))
    indices = external("i", [2], 8, 16, element_type=TensorProto.INT64)
    model.graph.sparse_initializer.add(values=external("w", [2], 0, 8), indices=indices)
    assert external_files(model) == ("w.data",)
    attach_external_data(model, {"w.data": BLOB})
    assert external_files(model) == ()


LOCATIONS = [
    *("", "..", "folder/w.data", "/etc/passwd", "..\\w.data", "C:w.data", "w.data\0"),
    "*/_ORT_MEM_ADDR_/*",
]


@pytest.mark.parametrize("location", LOCATIONS)
def test_only_plain_names_are_followed(location):
    with pytest.raises(InvalidOnnxModel, match="'w'") as caught:
        describe_onnx_model(linear(external("w", [40, 20], 0, location=location)))
    assert caught.value.violations[0].rule is ModelRule.EXTERNAL_PATH


def twice():
    tensor = external("w", [40, 20], 0)
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


BROKEN_TENSORS = [
    (external("w", [40, 20], 0, 3199), "3200 bytes.*'3199'"),
    (external("w", [40, 20], -4, 3200), "offset '-4'"),
    (external("w", [40, 20], 0, "9" * 30), "length"),
    (external("w", [40, 20], "²"), "offset"),
    (external("w", [40, -20], 0), "type or shape"),
    (external("w", [2], 0, element_type=TensorProto.STRING), "type or shape"),
    (external("w", [2], 0, element_type=999), "type or shape"),
    (external("w", [2**40, 2**40], 0, 3200), "bytes"),
    (twice(), "twice"),
]


@pytest.mark.parametrize(("tensor", "named"), BROKEN_TENSORS)
def test_references_that_do_not_fit_their_tensor_are_refused(tensor, named):
    with pytest.raises(InvalidOnnxModel, match=named):
        external_files(linear(tensor))


BROKEN_COMPANIONS = [
    ({}, "sent: none"),
    ({"other": BLOB}, r"'w' needs.*'w.data'.*sent: 'other'"),
    *(({"w.data": BLOB[:n]}, f"'w.data', which has {n}") for n in (0, 3199, 3279)),
]


@pytest.mark.parametrize(("companions", "named"), BROKEN_COMPANIONS)
def test_references_that_do_not_fit_what_was_sent_are_refused(companions, named):
    with pytest.raises(InvalidOnnxModel, match=named):
        attach_external_data(linear(), companions)


def test_two_numbers_of_four_bits_are_in_a_byte():
    """As ONNX Runtime counts."""
    model = linear(external("w", [5], 0, 3, element_type=TensorProto.INT4))
    assert external_files(model) == ("w.data",)


def test_many_references_to_one_file_cannot_fill_the_memory():
    n_references = MAX_EMBEDDED_BYTES // 2**22 + 1
    tensor = external("", [2**20], 0)
    nodes = [node("Constant", [], [f"c{k}"], value=tensor) for k in range(n_references)]
    zeros = memoryview(mmap.mmap(-1, 2**22))
    with pytest.raises(InvalidOnnxModel, match="exceed"):
        attach_external_data(make_model(nodes), {"w.data": zeros})


# No tensor is overlooked, wherever the format lets one be.
Path = tuple[str, ...]


def paths_to_tensors(kind: Descriptor = ModelProto.DESCRIPTOR, above: Path = ()) -> Iterator[Path]:
    """Yield the fields that lead to a tensor, each kind of message at most twice on the way."""
    for field in kind.fields:
        path = (*above, field.name)
        if field.message_type is TensorProto.DESCRIPTOR:
            yield path
        elif field.message_type and path.count(field.name) <= 2 and len(path) <= 8:
            yield from paths_to_tensors(field.message_type, path)


@pytest.mark.parametrize("path", sorted({*paths_to_tensors()}), ids=".".join)
def test_a_reference_is_found_wherever_the_format_lets_one_be(path):
    model = message = ModelProto()
    for name in path:
        inner = getattr(message, name)
        message = inner if isinstance(inner, Message) else inner.add()
    message.data_location = TensorProto.EXTERNAL
    message.external_data.add(key="location", value="../outside")
    with pytest.raises(InvalidOnnxModel) as caught:
        external_files(model)
    assert caught.value.violations[0].rule is ModelRule.EXTERNAL_PATH
