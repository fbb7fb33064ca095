"""Weights that are said to lie in files: of this machine, of others, or beyond the end of one."""

import numpy as np
import pytest
from graph_external import external
from graph_models import constant, make_model, node, value
from hostile_models import (
    CREATED,
    N_CLASSES,
    ModelCase,
    assert_told,
    branch,
    calling,
    classifier,
    function,
    in_branch,
)
from onnx import SparseTensorProto, helper
from runner_models import N_FEATURES, weights

WEIGHTS = weights().tobytes()
OUTSIDE = "../../../../etc/passwd"


def reference(location="w.data", offset=None, length=None, **others):
    return external("w", [N_FEATURES, N_CLASSES], offset, length, location=location, **others)


def linear(tensor):
    return make_model(
        [node("MatMul", ["x", "w"], ["y"])],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", N_CLASSES))],
        initializers=[tensor],
    )


def at(location="w.data", offset=None, length=None, **others):
    return lambda: linear(reference(location, offset, length, **others))


def said_twice():
    tensor = reference()
    tensor.external_data.add(key="location", value=OUTSIDE)
    return linear(tensor)


def sparse(location):
    values = external("bias", [1], None, location=location)
    return SparseTensorProto(
        values=values, indices=constant("at", [0], np.int64), dims=[1, N_CLASSES]
    )


def in_sparse_initializer():
    model = classifier(node("Add", ["z", "bias"], ["y"]))
    model.graph.sparse_initializer.append(sparse(OUTSIDE))
    return model


def constant_of(**attribute):
    return node("Constant", [], ["bias"], **attribute)


def in_constant(**attribute):
    return lambda: classifier(constant_of(**attribute), node("Add", ["z", "bias"], ["y"]))


def small(location=OUTSIDE, offset=None):
    return external("bias", [1, N_CLASSES], offset, location=location)


def in_list():
    """Return a node with an attribute of several tensors, which no operator takes."""
    listed = helper.make_attribute("listed", [small("w.data"), small()])
    model = classifier(node("Neg", ["z"], ["y"]))
    model.graph.node[1].attribute.append(listed)
    return model


def in_default_of_a_function():
    given = function("f", node("Identity", ["a"], ["b"]))
    given.attribute_proto.append(helper.make_attribute("bias", small()))
    return calling(given)


def in_training_information():
    model = classifier(node("Neg", ["z"], ["y"]))
    model.training_info.add().algorithm.initializer.append(small())
    return model


def biased(location, offset=None):
    return branch(node("Add", ["z", "bias"], ["b"]), initializers=[small(location, offset)])


PATH, BOUNDS, WRONG = "external-path", "external-bounds", "external-reference"
SENT = {"w.data": WEIGHTS}
CASES = [
    ModelCase("absolute", at("/etc/passwd"), PATH, says="plain name"),
    ModelCase("up_and_out", at(OUTSIDE), PATH),
    ModelCase("environment", at("/proc/self/environ"), PATH),
    ModelCase("backslash", at("..\\w.data"), PATH, companions=SENT),
    ModelCase("address", at("http://127.0.0.1/w.data"), PATH),
    ModelCase("memory_of_the_process", at("*/_ORT_MEM_ADDR_/*", 4096, 240), PATH),
    ModelCase("nowhere", at(""), PATH),
    ModelCase("place_twice", said_twice, WRONG, companions=SENT),
    # What a link beside the model would be called: only what is sent is looked at.
    ModelCase("link", at("link"), "external-missing", says="model_data"),
    ModelCase("offset_negative", at(offset=-8), WRONG, companions=SENT),
    ModelCase("offset_huge", at(offset=10**17), BOUNDS, companions=SENT),
    ModelCase("length_negative", at(length=-1), WRONG, companions=SENT),
    ModelCase("beyond_the_end", at(offset=8), BOUNDS, companions=SENT),
    ModelCase("in_a_branch", lambda: in_branch(biased(OUTSIDE)), PATH),
    ModelCase(
        "in_a_branch_beyond_the_end",
        lambda: in_branch(biased("w.data", 210)),
        BOUNDS,
        companions=SENT,
    ),
    ModelCase("in_a_constant", in_constant(value=small()), PATH),
    ModelCase("in_a_sparse_constant", in_constant(sparse_value=sparse(OUTSIDE)), PATH),
    ModelCase("in_a_sparse_initializer", in_sparse_initializer, PATH),
    ModelCase("in_a_list_of_tensors", in_list, PATH, companions=SENT),
    ModelCase(
        "in_a_function",
        lambda: calling(
            function("f", constant_of(value=small()), node("Add", ["a", "bias"], ["b"]))
        ),
        PATH,
    ),
    ModelCase("in_the_default_of_a_function", in_default_of_a_function, PATH),
    ModelCase("in_training_information", in_training_information, PATH),
    # That companions are read at all: otherwise no case above would tell anything.
    ModelCase("as_it_should_be", at(), companions=SENT, status=CREATED, code="", says=""),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_but_what_was_sent_is_read(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)
