"""Models that take more time than they may, when they are loaded, tried or asked."""

import httpx
import numpy as np
import pytest
from graph_models import node, steps
from hostile_case import Attacker, HostileCase
from hostile_models import UNPROCESSABLE, loop, model_case, served
from runner_models import N_FEATURES, classifier, undefined_below_zero, weights

pytestmark = pytest.mark.process


def test_a_model_that_never_ends_is_stopped(hostile) -> None:
    endless = model_case("endless", lambda: loop("z", node("Neg", ["s"], ["t"])), "too-slow")
    hostile(endless)


def zero_below(limit):
    """Return a classifier that divides by zero if a row has a value below a limit."""
    text = "m = ReduceMin<keepdims = 0>(x); above = Greater(m, limit); d = Cast<to = 6>(above); "
    text += "q = Div(seven, d); seventh = Cast<to = 1>(q); y = Add(z, seventh)"
    return classifier(*steps(text), constants={"limit": limit, "seven": np.int32(7)})


INVALID = (UNPROCESSABLE, "invalid-input")
PREDICTED = {
    "divides_by_zero": (zero_below(0.0), -1.0, INVALID, "run-failed"),
    "has_no_answer": (undefined_below_zero(weights()), -1.0, INVALID, "not-finite"),
}


# Of a prediction that hangs see tests/predictions/test_prediction_deadlines.py.
@pytest.mark.parametrize("case", PREDICTED.values(), ids=PREDICTED)
def test_it_is_stopped_when_it_is_asked(hostile, case) -> None:
    """For one row, and no other."""
    model, feature, expected, says = case

    def send(attacker: Attacker) -> httpx.Response:
        return served(attacker, model, [feature] * N_FEATURES)

    hostile(HostileCase("asked", send, *expected, says=says, seconds=20))
