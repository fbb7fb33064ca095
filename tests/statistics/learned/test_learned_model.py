"""The formula of the learned measure of earlier versions."""

import numpy as np
import pytest

from howsure.statistics.learned.model import LearnedModel


def of_zeros(**changed):
    four, one = ("linear", "square", "lower", "upper"), ("offset", "slope", "second")
    values = {"k": 1, "temperature": 0, "intercept": 0.0, "saturated": 0.0}
    values |= dict.fromkeys(four, np.zeros(4)) | dict.fromkeys(one, np.zeros(1))
    return LearnedModel(**{**values, **changed})


@pytest.mark.parametrize(("changed", "message"), [
    ({"linear": [0.0]}, r"linear must hold finite numbers of shape \(4,\)"),
    ({"slope": [0.0, 0.0]}, r"slope must hold finite numbers of shape \(1,\)"),
    ({"second": [np.nan]}, "second must"), ({"temperature": -1}, "temperature must be an index"),
    ({"saturated": np.inf}, "intercept and saturated must be finite"),
])  # fmt: skip
def test_a_broken_rule_is_named(changed, message):
    assert of_zeros().n_classes == 1
    with pytest.raises(ValueError, match=message):
        of_zeros(**changed)
