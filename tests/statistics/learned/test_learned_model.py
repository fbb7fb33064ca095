"""The formula of the learned measure: the same in any batch, in Python floats and after JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from howsure.statistics.learned.model import LearnedModel
from howsure.statistics.plain import to_plain

N_CLASSES = 5
COEFFICIENTS = st.floats(-20.0, 20.0)


def lists(size):
    return st.lists(COEFFICIENTS, min_size=size, max_size=size).map(np.array)


@st.composite
def models(draw):
    numbers = {name: draw(COEFFICIENTS) for name in ("intercept", "saturated")}
    numbers |= {name: draw(lists(4)) for name in ("linear", "square", "lower")}
    numbers |= {name: draw(lists(N_CLASSES)) for name in ("offset", "slope", "second")}
    upper = numbers["lower"] + np.abs(draw(lists(4)))
    k, temperature = draw(st.sampled_from([1, 3])), draw(st.integers(0, 3))
    return LearnedModel(k=k, temperature=temperature, upper=upper, **numbers)


@st.composite
def samples(draw):
    """Inputs as float32, some saturated, and the two classes."""
    n = draw(st.integers(1, 20))
    value = st.one_of(st.floats(-90.0, 20.0, width=32), st.just(-85.25))
    classes = npst.arrays(np.int64, n, elements=st.integers(0, N_CLASSES - 1))
    return draw(npst.arrays(np.float32, (n, 4), elements=value)), draw(classes), draw(classes)


@given(model=models(), inputs=samples(), data=st.data())
def test_one_sample_in_python_and_any_batch_have_the_same_bits(model, inputs, data):
    whole, measure = model.uncertainty(*inputs), model.of_one()
    rows = zip(*(part.tolist() for part in inputs), strict=True)
    assert np.array([measure(*row) for row in rows]).tobytes() == whole.tobytes()
    assert not np.signbit(whole[whole == 0.0]).any()
    cut = data.draw(st.integers(0, len(whole)))
    parts = [[part[rows] for part in inputs] for rows in (slice(cut), slice(cut, None))]
    assert np.concatenate([model.uncertainty(*part) for part in parts]).tobytes() == whole.tobytes()


@given(model=models())
def test_json_keeps_every_bit(model):
    again = LearnedModel(**json.loads(json.dumps(to_plain(model))))
    assert to_plain(again) == to_plain(model)
    assert again.columns == model.columns


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
