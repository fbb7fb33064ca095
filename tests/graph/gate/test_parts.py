"""Parts counted in the bytes are those that protocol buffers find in them."""

from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import Message
from graph_models import make_model, node, passthrough
from hostile_models import calling, delimited, function, good, in_branch, varint
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


def forest(n_nodes=1000):
    lists = {
        "nodes_values": [0.5] * n_nodes,
        "nodes_featureids": [3 * index for index in range(n_nodes)],
        "nodes_modes": ["BRANCH_LEQ"] * n_nodes,
        "class_ids": [-1] * n_nodes,
    }
    return make_model([node("TreeEnsembleClassifier", ["x"], ["y"], domain="ai.onnx.ml", **lists)])


def nodes_of(model: ModelProto) -> int:
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    return sum(1 for body in bodies for _ in all_nodes(body))


@pytest.mark.parametrize(
    "data",
    [
        *(path.read_bytes() for path in FILES),
        in_branch(passthrough().graph).SerializeToString(),
        forest().SerializeToString(),
        calling(function("f", *[node("Neg", ["a"], ["b"], alpha=1.0)] * 9)).SerializeToString(),
    ],
)
def test_as_many_parts_as_there_are_may_be_there(data):
    model = ModelProto.FromString(data)
    least = max(nodes_of(model), -(-parts_of(model) // MAX_MESSAGES_PER_NODE))
    check_parts(data, max_nodes=least)
    if least > 1:
        assert refused(data, max_nodes=least - 1) in (
            ModelRule.TOO_MANY_PARTS,
            ModelRule.TOO_MANY_NODES,
        )


@pytest.mark.parametrize("kind", ["graph", "function", "branch"])
def test_nodes_are_counted_wherever_they_are(kind):
    nodes = [node("Neg", ["a"], ["b"]) for _ in range(9)]
    made = {
        "graph": make_model(nodes),
        "function": calling(function("f", *nodes)),
        "branch": in_branch(make_model(nodes).graph, make_model([nodes[0]]).graph),
    }[kind].SerializeToString()
    assert refused(made, max_nodes=8) is ModelRule.TOO_MANY_NODES


def test_what_says_nothing_is_a_part_as_well():
    empty = delimited(1, b"") * (MAX_MESSAGES_PER_NODE * 10 + 1)
    assert refused(delimited(7, empty), max_nodes=10) is ModelRule.TOO_MANY_PARTS


def test_numbers_that_are_no_parts_are_passed_over():
    # In tags and numbers of more bytes than are needed, and of kinds that there are not.
    odd = varint(1999 << 3) + b"\xff\xff\x03" + b"\x88\x80\x00\x08" + b"\x3d1234" + b"\x4112345678"
    data = delimited(7, odd + delimited(1, odd)) + odd
    ModelProto().ParseFromString(data)
    check_parts(data, max_nodes=1)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0b\x0c",  # a group
        b"\x3a",
        b"\x3a\x05\x0a",
        b"\x3a\x02\x0a\x05",
        b"\xff" * 20,
        b"\x08" + b"\xff" * 11,
        b"\x0d\0\0",
        b"\x0f\x01",
    ],
)
def test_what_is_cut_short_or_of_no_kind_is_refused(data):
    assert refused(data) is ModelRule.NOT_ONNX


def test_damage_is_refused_or_counted_alike():
    rng = np.random.default_rng(0)
    data = good().SerializeToString()
    n_refused = 0
    for _ in range(500):
        damaged = bytearray(data)
        damaged[rng.integers(60)] = rng.integers(256)
        try:
            check_parts(bytes(damaged), max_nodes=MANY)
        except InvalidOnnxModel:
            n_refused += 1
    assert 0 < n_refused < 500


def test_parts_in_parts_are_refused_before_the_parser_gives_up():
    data = b""
    for _ in range(25):  # a graph in an attribute of a node of a graph
        data = delimited(1, delimited(5, delimited(6, data)))
    assert refused(delimited(7, data)) is ModelRule.TOO_DEEP
    check_parts(delimited(7, delimited(1, delimited(5, delimited(6, b"")))), max_nodes=MANY)
