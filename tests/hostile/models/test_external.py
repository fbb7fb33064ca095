"""Weights that are said to lie in files: of this machine, of others, or beyond the end of one."""

import pytest
from graph_models import external, node
from hostile_models import ACCEPTED, N_CLASSES, ModelCase, assert_told, calling, function, good
from runner_models import N_FEATURES, weights

WEIGHTS = weights().tobytes()
OUTSIDE = "../../../../etc/passwd"


def at(location="w.data", offset=None, length=None):
    """Return a linear model whose weights are said to lie there."""

    def build():
        model = good()
        tensor = external("w", [N_FEATURES, N_CLASSES], offset, length, location=location)
        model.graph.initializer[0].CopyFrom(tensor)
        return model

    return build


def in_a_function():
    tensor = external("bias", [1, N_CLASSES], None, location=OUTSIDE)
    bias = node("Constant", [], ["bias"], value=tensor)
    return calling(function("f", bias, node("Add", ["a", "bias"], ["b"])))


PATH, BOUNDS = "external-path", "external-bounds"
SENT = {"w.data": WEIGHTS}
CASES = [
    ModelCase("up_and_out", at(OUTSIDE), PATH),
    ModelCase("backslash", at("..\\w.data"), PATH, companions=SENT),
    ModelCase("memory_of_the_process", at("*/_ORT_MEM_ADDR_/*", 4096, 240), PATH),
    # What a link beside the model would be called: only what is sent is looked at.
    ModelCase("link", at("link"), "external-missing", says="model_data"),
    ModelCase("beyond_the_end", at(offset=8), BOUNDS, companions=SENT),
    ModelCase("in_a_function", in_a_function, PATH),
    # That companions are read at all: otherwise no case above would tell anything.
    ModelCase("as_it_should_be", at(), companions=SENT, **ACCEPTED),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_uploaded_weights_are_read(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)
