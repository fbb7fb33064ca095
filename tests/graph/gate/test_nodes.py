"""Nodes with those of functions: the number that ONNX's own inliner makes of them."""

import pytest
from graph_models import constant, node
from hostile_models import branch, calling, classifier, function, in_branch
from onnx import ModelProto, helper, inliner
from runner_models import function_bomb

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.gate.functions import MAX_CALL_DEPTH, check_nodes
from service.graph.inline import all_nodes

IDENTITY = function("f", node("Identity", ["a"], ["b"]))
LOOP = ModelRule.FUNCTION_CALLS_ITSELF


def refused(model, *, max_nodes=10**6):
    with pytest.raises(InvalidOnnxModel) as caught:
        check_nodes(model, max_nodes=max_nodes)
    return caught.value.violations[0].rule


def calls(callee, times, *, name):
    nodes = [node(callee, ["a"], [f"m{i}"], domain="own") for i in range(times)]
    return function(name, *nodes, node("Identity", ["m0"], ["b"]))


def chain(depth):
    levels = [calls(f"f{level - 1}", 1, name=f"f{level}") for level in range(depth, 0, -1)]
    return calling(*levels, function("f0", node("Identity", ["a"], ["b"])), name=f"f{depth}")


def called_in_a_branch() -> ModelProto:
    model = in_branch(branch(node("g", ["z"], ["b"], domain="own")))
    model.functions.extend([calls("f", 3, name="g"), IDENTITY])
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


# Models, and how often functions are called in them.
MODELS = [
    (calling(IDENTITY), 1),
    # Callers before those that they call, and more than one way to a function.
    (calling(calls("g", 7, name="h"), calls("f", 5, name="g"), IDENTITY, name="h"), 1 + 7 + 7 * 5),
    (calling(IDENTITY, calls("f", 2, name="unused")), 1),
    (called_in_a_branch(), 1 + 3),
    (function_bomb(8), 2**8 - 1),
    (chain(MAX_CALL_DEPTH), MAX_CALL_DEPTH + 1),
]


@pytest.mark.parametrize(("model", "n_calls"), MODELS)
def test_exactly_as_many_nodes_as_the_calls_make_may_be_there(model, n_calls):
    inlined = inliner.inline_local_functions(model)
    n_nodes = sum(1 for _ in all_nodes(inlined.graph.node)) + n_calls
    check_nodes(model, max_nodes=n_nodes)
    assert refused(model, max_nodes=n_nodes - 1) is ModelRule.TOO_MANY_NODES


GRAPH = branch(node("Add", ["z", "c"], ["b"]), initializers=[constant("c", 1.0)])
WITH_DEFAULT = function("f", node("Identity", ["a"], ["b"]))
WITH_DEFAULT.attribute_proto.append(helper.make_attribute("given", GRAPH))
REFUSED = [
    (calling(calls("f", 1, name="f")), LOOP),
    (calling(IDENTITY, calls("g", 1, name="g")), LOOP),
    (calling(*(calls(on, 1, name=of) for of, on in ("fg", "gh", "hf"))), LOOP),
    (chain(MAX_CALL_DEPTH + 1), ModelRule.TOO_DEEP),
    (calling(IDENTITY, IDENTITY), ModelRule.FUNCTION_TWICE),
    (calling(IDENTITY, given=GRAPH), ModelRule.FUNCTION_TAKES_GRAPH),
    (calling(WITH_DEFAULT), ModelRule.FUNCTION_TAKES_GRAPH),
]


@pytest.mark.parametrize(("model", "rule"), REFUSED)
def test_functions_that_do_not_end_are_refused(model, rule):
    assert refused(model) is rule


def test_the_default_domain_has_two_names():
    own = function("f", node("f", ["a"], ["b"], domain="ai.onnx"), domain="")
    model = classifier(node("f", ["z"], ["y"]), functions=[own])
    assert refused(model) is LOOP
