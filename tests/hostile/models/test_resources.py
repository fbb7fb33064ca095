"""Models that take more time or memory than they may, when they are loaded, tried or asked."""

import httpx
import numpy as np
import pytest
from graph_models import constant, node, value
from hostile_case import Attacker, HostileCase
from hostile_models import (
    CREATED,
    N_CLASSES,
    UNPROCESSABLE,
    ModelCase,
    assert_told,
    classifier,
    samples,
    upload,
)
from onnx import TensorProto, helper
from runner_models import ENDLESS, N_FEATURES, endless_above, undefined_below_zero, weights

FORTY_GIGABYTES = 10**10
MEMORY = "too-much-memory"
# What a model takes at the first rows is told as one of them.
ROWS = {"code": "invalid-dataset", "says": "calibration"}


def filled(*nodes, **constants):
    """Return a classifier that adds what ``huge`` sums up to."""
    return classifier(
        *nodes,
        node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        node("Add", ["z", "sum"], ["y"]),
        initializers=[
            constant(name, values, np.int64 if name == "sizes" else np.float32)
            for name, values in constants.items()
        ],
    )


def loop(start, *nodes):
    """Return a classifier with a loop that carries ``s`` to ``t`` and never ends by itself."""
    body = helper.make_graph(
        [node("Identity", ["keep"], ["kept"]), *nodes],
        "body",
        [value("i", (), TensorProto.INT64), value("keep", (), TensorProto.BOOL), value("s", None)],
        [value("kept", (), TensorProto.BOOL), value("t", None)],
    )
    return classifier(
        node("Loop", ["most", "go", start], ["huge"], body=body),
        node("ReduceMax", ["huge"], ["top"], keepdims=0),
        node("Add", ["z", "top"], ["y"]),
        initializers=[
            constant("most", ENDLESS, np.int64),
            constant("go", True, np.bool_),
            constant("one", [[1.0]]),
        ],
    )


CASES = [
    ModelCase("loop_that_never_ends", lambda: loop("z", node("Neg", ["s"], ["t"])), "too-slow"),
    ModelCase(
        "forty_gigabytes_of_zeros",
        lambda: filled(node("ConstantOfShape", ["sizes"], ["huge"]), sizes=[FORTY_GIGABYTES]),
        MEMORY,
        **ROWS,
    ),
    ModelCase(
        "forty_gigabytes_of_ones",
        lambda: filled(
            node("Expand", ["half", "sizes"], ["huge"]), half=[0.5], sizes=[FORTY_GIGABYTES]
        ),
        MEMORY,
        **ROWS,
    ),
    ModelCase(
        "loop_that_doubles",
        lambda: loop("z", node("Concat", ["s", "s"], ["t"], axis=0)),
        MEMORY,
        **ROWS,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_stopped(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)


def served(attacker: Attacker, model, features) -> httpx.Response:
    """Calibrate on rows that do no harm, and ask about one that does."""
    made = upload(attacker, model, inputs={"x": np.abs(samples()) + 1})
    assert made.status_code == CREATED, made.text
    assert made.json()["status"] == "succeeded", made.text
    found = made.json()["id"]
    return attacker.client.post("/predict", json={"calibration": found, "inputs": [features]})


def huge_above(limit):
    """Return a classifier that fills the memory if a row's first value is above a limit."""
    return classifier(
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "limit"], ["above"]),
        node("Where", ["above", "many", "few"], ["sizes"]),
        node("Expand", ["half", "sizes"], ["huge"]),
        node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        node("Sub", ["sum", "sum"], ["nothing"]),
        node("Add", ["z", "nothing"], ["y"]),
        initializers=[
            constant("limit", limit),
            constant("many", [FORTY_GIGABYTES], np.int64),
            constant("few", [1], np.int64),
            constant("half", [0.5]),
        ],
    )


def zero_below(limit):
    """Return a classifier that divides by zero if a row has a value below a limit."""
    return classifier(
        node("ReduceMin", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "limit"], ["above"]),
        node("Cast", ["above"], ["divisor"], to=TensorProto.INT32),
        node("Div", ["seven", "divisor"], ["quotient"]),
        node("Cast", ["quotient"], ["seventh"], to=TensorProto.FLOAT),
        node("Add", ["z", "seventh"], ["y"]),
        initializers=[constant("limit", limit), constant("seven", 7, np.int32)],
    )


PREDICTED = [
    HostileCase(
        "hangs_at_one_row",
        lambda attacker: served(attacker, endless_above(100.0), [1000.0] * N_FEATURES),
        httpx.codes.GATEWAY_TIMEOUT,
        "deadline-exceeded",
        seconds=20,
    ),
    HostileCase(
        "fills_the_memory_at_one_row",
        lambda attacker: served(attacker, huge_above(100.0), [1000.0] * N_FEATURES),
        UNPROCESSABLE,
        "invalid-input",
        says=MEMORY,
        seconds=20,
    ),
    HostileCase(
        "divides_by_zero_at_one_row",
        lambda attacker: served(attacker, zero_below(0.0), [-1.0] * N_FEATURES),
        UNPROCESSABLE,
        "invalid-input",
        says="run-failed",
        seconds=20,
    ),
    HostileCase(
        "has_no_answer_to_one_row",
        lambda attacker: served(
            attacker, undefined_below_zero(weights(N_CLASSES)), [-1.0] * N_FEATURES
        ),
        UNPROCESSABLE,
        "invalid-input",
        says="not-finite",
        seconds=20,
    ),
]


@pytest.mark.parametrize("case", PREDICTED, ids=str)
def test_it_is_stopped_when_it_is_asked(hostile, case: HostileCase) -> None:
    hostile(case)
