"""Parts counted in the bytes are those that protocol buffers find in them."""

from pathlib import Path

import pytest
from google.protobuf.message import Message
from graph_models import make_model, node, passthrough
from hostile_models import calling, delimited, function, in_branch, varint
from onnx import ModelProto

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.size import MAX_MESSAGES_PER_NODE, check_parts
from service.graph.inline import all_nodes

FILES = sorted((Path(__file__).parents[2] / "data" / "onnx").glob("*.onnx"))
MANY = 10**6


def parts_of(message: Message) -> int:
    found = 0
    for field, held in message.ListFields():
        if field.message_type is None:
            continue
        inside = [held] if isinstance(held, Message) else list(held)
        found += sum(1 + parts_of(one) for one in inside)
    return found


def refused(data, *, max_nodes=MANY):
    with pytest.raises(InvalidOnnxModel) as caught:
        check_parts(data, max_nodes=max_nodes)
    return caught.value.violations[0].rule


LISTS = {"nodes_values": [0.5] * 1000, "nodes_modes": ["BRANCH_LEQ"] * 1000}
FOREST = node("TreeEnsembleClassifier", ["x"], ["y"], domain="ai.onnx.ml", **LISTS)


def nodes_of(model: ModelProto) -> int:
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    return sum(1 for body in bodies for _ in all_nodes(body))


NODES = [node("Neg", ["a"], ["b"], alpha=1.0)] * 9


MODELS = [
    *(path.read_bytes() for path in FILES),
    in_branch(passthrough().graph).SerializeToString(),
    make_model([FOREST]).SerializeToString(),
    make_model(NODES).SerializeToString(),
    calling(function("f", *NODES)).SerializeToString(),
    in_branch(make_model(NODES).graph, make_model(NODES[:1]).graph).SerializeToString(),
]


@pytest.mark.parametrize("data", MODELS)
def test_as_many_parts_as_there_are_may_be_there(data):
    model = ModelProto.FromString(data)
    n_nodes, n_parts = nodes_of(model), -(-parts_of(model) // MAX_MESSAGES_PER_NODE)
    least = max(n_nodes, n_parts)
    check_parts(data, max_nodes=least)
    if least > 1:
        too_many = {ModelRule.TOO_MANY_NODES: n_nodes, ModelRule.TOO_MANY_PARTS: n_parts}
        assert too_many[refused(data, max_nodes=least - 1)] == least


def test_what_says_nothing_is_a_part_as_well():
    empty = delimited(1, b"") * (MAX_MESSAGES_PER_NODE * 10 + 1)
    assert refused(delimited(7, empty), max_nodes=10) is ModelRule.TOO_MANY_PARTS


def test_numbers_that_are_no_parts_are_passed_over():
    # In tags and numbers of more bytes than are needed, and of kinds that there are not.
    odd = varint(1999 << 3) + b"\xff\xff\x03" + b"\x88\x80\x00\x08" + b"\x3d1234" + b"\x4112345678"
    data = delimited(7, odd + delimited(1, odd)) + odd
    ModelProto().ParseFromString(data)
    check_parts(data, max_nodes=1)


CUT_SHORT = [
    *(b"\x0b\x0c", b"\x3a", b"\x3a\x05\x0a", b"\x3a\x02\x0a\x05"),  # the first is a group
    *(b"\xff" * 20, b"\x08" + b"\xff" * 11, b"\x0d\0\0", b"\x0f\x01"),
]


@pytest.mark.parametrize("data", CUT_SHORT)
def test_what_is_cut_short_or_of_no_kind_is_refused(data):
    assert refused(data) is ModelRule.NOT_ONNX


def test_parts_in_parts_are_refused_before_the_parser_gives_up():
    data = b""
    for _ in range(25):  # a graph in an attribute of a node of a graph
        data = delimited(1, delimited(5, delimited(6, data)))
    assert refused(delimited(7, data)) is ModelRule.TOO_DEEP
    check_parts(delimited(7, delimited(1, delimited(5, delimited(6, b"")))), max_nodes=MANY)
