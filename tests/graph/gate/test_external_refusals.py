"""References to files that are not followed."""

import mmap

import pytest
from graph_external import BLOB, external, linear
from graph_models import make_model, node
from onnx import TensorProto

from service.errors import InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.gate.external_weights import (
    MAX_EMBEDDED_BYTES,
    attach_external_data,
    external_files,
)


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


def test_a_reference_says_each_thing_once():
    tensor = external("w", [40, 20], 0)
    tensor.external_data.add(key="location", value="/etc/passwd")
    with pytest.raises(InvalidOnnxModel, match="twice"):
        external_files(linear(tensor))


def test_a_missing_companion_is_named_with_those_that_came():
    with pytest.raises(InvalidOnnxModel, match=r"tensor 'w' needs.*'w.data'.*sent: 'other'"):
        attach_external_data(linear(), {"other": BLOB})
    with pytest.raises(InvalidOnnxModel, match="sent: none"):
        attach_external_data(linear(), {})


@pytest.mark.parametrize("size", [0, 3199, 3279])
def test_weights_beyond_the_end_of_the_file_are_refused(size):
    with pytest.raises(InvalidOnnxModel, match=f"'w.data', which has {size}"):
        attach_external_data(linear(), {"w.data": BLOB[:size]})


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
