"""Models that take more time than they may, when they are loaded, tried or asked."""

import httpx
import numpy as np
import pytest
from graph_models import constant, node
from hostile_case import HostileCase
from hostile_models import (
    N_CLASSES,
    UNPROCESSABLE,
    ModelCase,
    assert_told,
    classifier,
    loop,
    served,
)
from onnx import TensorProto
from runner_models import N_FEATURES, endless_above, undefined_below_zero, weights

CASES = [
    ModelCase("loop_that_never_ends", lambda: loop("z", node("Neg", ["s"], ["t"])), "too-slow"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_stopped(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)


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
