"""Rows of JSON by name: read as Python reads them, or refused, whatever the names are."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.child.requests.limits import BodyLimits
from service.child.requests.named_rows import NamedRows
from service.errors import InvalidInput, TooLarge

LIMITS = BodyLimits(max_bytes=2**20, max_rows=10)
NAMES = st.lists(
    st.text(min_size=1) | st.sampled_from(['"', '\\"', ",", ":", "\\"]), min_size=1, unique=True
)


NUMBERS = [0.1, -0.0, 1 / 3, 1e300, -5e-324, 2**53, -(2**53), 7]


def written(pairs, *, is_ascii) -> str:
    keys = [json.dumps(name, ensure_ascii=is_ascii) for name, _ in pairs]
    return "{" + ", ".join(f"{key}: {n!r}" for key, (_, n) in zip(keys, pairs, strict=True)) + "}"


@given(names=NAMES, random=st.randoms(), n_rows=st.integers(1, 10), is_ascii=st.booleans())
def test_names_may_be_in_any_order_and_of_any_text(names, random, n_rows, is_ascii) -> None:
    numbers = [random.choices(NUMBERS, k=len(names)) for _ in range(n_rows)]
    rows = []
    for row in numbers:
        pairs = random.sample(list(zip(names, row, strict=True)), len(names))
        rows.append(written(pairs, is_ascii=is_ascii))
    arrays = NamedRows({"x": names}).read(f"[{', '.join(rows)}]".encode(), LIMITS)
    np.testing.assert_array_equal(arrays["x"], np.array(numbers, np.float64))


@given(names=NAMES, data=st.data(), is_ascii=st.booleans())
def test_a_name_more_or_less_is_refused(names, data, is_ascii) -> None:
    pairs = [(name, 1) for name in names]
    one = data.draw(st.sampled_from(pairs))
    other = (data.draw(st.text(min_size=1).filter(lambda name: name not in names)), 1)
    without = [pair for pair in pairs if pair != one]
    cases = ([*pairs, one], "twice"), (without, "missing"), ([*pairs, other], "unknown")
    for wrong, word in (*cases, ([*without, other], "missing.*unknown")):
        rows = [written(row, is_ascii=is_ascii) for row in (pairs, wrong)]
        with pytest.raises(InvalidInput, match=word) as refused:
            NamedRows({"x": names}).read(f"[{', '.join(rows)}]".encode(), LIMITS)
        assert refused.value.violations[0].location == "inputs[1]"


def test_several_inputs_share_the_names() -> None:
    reader = NamedRows({"x": ["a", "b"], "y": ["c", "a"]})
    arrays = reader.read(b'[{"a": 1, "b": 2, "c": 3}, {"c": 6, "b": 5, "a": 4}]', LIMITS)
    assert arrays["x"].tolist() == [[1, 2], [4, 5]]
    assert arrays["y"].tolist() == [[3, 1], [6, 4]]


def test_more_rows_or_numbers_than_a_request_may_have() -> None:
    reader = NamedRows({"x": ["a"]})
    assert len(reader.read(b"[" + b",".join([b'{"a":1}'] * 10) + b"]", LIMITS)["x"]) == 10
    for rows in ([b'{"a":1}'] * 11, [b"{" + b",".join([b'"a":1'] * 10_000) + b"}"]):
        with pytest.raises(TooLarge, match="10 rows"):
            reader.read(b"[" + b",".join(rows) + b"]", LIMITS)
