"""No tensor is overlooked, wherever the format lets one be."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.external_weights import external_files

TENSOR = TensorProto.DESCRIPTOR
Path = tuple[str, ...]


def paths_to_tensors(kind: Descriptor = ModelProto.DESCRIPTOR, above: Path = ()) -> Iterator[Path]:
    """Yield the fields that lead to a tensor, each kind of message at most twice on the way."""
    for field in kind.fields:
        if field.message_type is None:
            continue
        path = (*above, field.name)
        if field.message_type is TENSOR:
            yield path
        elif path.count(field.name) <= 2 and len(path) <= 8:
            yield from paths_to_tensors(field.message_type, path)


def put(message: Message, path: Path) -> TensorProto:
    for name in path:
        held = getattr(message, name)
        message = held if isinstance(held, Message) else held.add()
    message.SetInParent()
    return message


PATHS = sorted(paths_to_tensors())


def test_the_places_that_are_known_are_among_those_that_are_tried():
    assert {
        ("graph", "initializer"),
        ("graph", "node", "attribute", "graphs", "node", "attribute", "sparse_tensors", "values"),
        ("functions", "attribute_proto", "tensors"),
        ("training_info", "algorithm", "initializer"),
    } <= set(PATHS)


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_a_reference_is_found(path):
    model = ModelProto()
    tensor = put(model, path)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../outside")
    with pytest.raises(InvalidOnnxModel) as caught:
        external_files(model)
    assert caught.value.violations[0].rule is ModelRule.EXTERNAL_PATH
