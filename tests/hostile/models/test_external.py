"""Weights that are said to lie in files: of this machine, of others, or beyond the end of one."""

import pytest
from graph_models import external, make_model, node, value
from hostile_models import (
    CREATED,
    N_CLASSES,
    ModelCase,
    assert_told,
    calling,
    function,
)
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


def constant_of(**attribute):
    return node("Constant", [], ["bias"], **attribute)


def small(location=OUTSIDE, offset=None):
    return external("bias", [1, N_CLASSES], offset, location=location)


PATH, BOUNDS, WRONG = "external-path", "external-bounds", "external-reference"
SENT = {"w.data": WEIGHTS}
CASES = [
    ModelCase("up_and_out", at(OUTSIDE), PATH),
    ModelCase("backslash", at("..\\w.data"), PATH, companions=SENT),
    ModelCase("memory_of_the_process", at("*/_ORT_MEM_ADDR_/*", 4096, 240), PATH),
    # What a link beside the model would be called: only what is sent is looked at.
    ModelCase("link", at("link"), "external-missing", says="model_data"),
    ModelCase("beyond_the_end", at(offset=8), BOUNDS, companions=SENT),
    ModelCase(
        "in_a_function",
        lambda: calling(
            function("f", constant_of(value=small()), node("Add", ["a", "bias"], ["b"]))
        ),
        PATH,
    ),
    # That companions are read at all: otherwise no case above would tell anything.
    ModelCase("as_it_should_be", at(), companions=SENT, status=CREATED, code="", says=""),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_uploaded_weights_are_read(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)
