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
NAMES = st.lists(st.text(min_size=1) | st.sampled_from(['"', '\\"', ",", ":", "\\"]), min_size=1)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


def written(pairs, *, is_ascii) -> str:
    keys = [json.dumps(name, ensure_ascii=is_ascii) for name, _ in pairs]
    return "{" + ", ".join(f"{key}: {n!r}" for key, (_, n) in zip(keys, pairs, strict=True)) + "}"


@given(names=NAMES, data=st.data(), n_rows=st.integers(1, 10), is_ascii=st.booleans())
def test_names_may_be_in_any_order_and_of_any_text(names, data, n_rows, is_ascii) -> None:
    names = list(dict.fromkeys(names))
    expected = data.draw(
        st.lists(
            st.lists(NUMBERS, min_size=len(names), max_size=len(names)),
            min_size=n_rows,
            max_size=n_rows,
        )
    )
    rows = []
    for numbers in expected:
        pairs = data.draw(st.permutations(list(zip(names, numbers, strict=True))))
        rows.append(written(pairs, is_ascii=is_ascii))
    found = NamedRows({"x": names}).read(f"[{', '.join(rows)}]".encode(), LIMITS)
    np.testing.assert_array_equal(found["x"], np.array(expected, np.float64))


@given(names=NAMES, data=st.data(), is_ascii=st.booleans())
def test_a_name_more_or_less_is_refused(names, data, is_ascii) -> None:
    names = list(dict.fromkeys(names))
    pairs = [(name, 1) for name in names]
    good = written(pairs, is_ascii=is_ascii)
    one = data.draw(st.sampled_from(pairs))
    other = data.draw(st.text(min_size=1).filter(lambda name: name not in names))
    for wrong, word in (
        ([*pairs, one], "twice"),
        ([pair for pair in pairs if pair != one], "missing"),
        ([*pairs, (other, 1)], "unknown"),
        ([(other, 1) if pair == one else pair for pair in pairs], "missing.*unknown"),
    ):
        text = f"[{good}, {written(wrong, is_ascii=is_ascii)}]".encode()
        with pytest.raises(InvalidInput, match=word) as refused:
            NamedRows({"x": names}).read(text, LIMITS)
        assert refused.value.violations[0].location == "inputs[1]"


def test_several_inputs_share_the_names() -> None:
    reader = NamedRows({"x": ["a", "b"], "y": ["c", "a"]})
    found = reader.read(b'[{"a": 1, "b": 2, "c": 3}, {"c": 6, "b": 5, "a": 4}]', LIMITS)
    assert found["x"].tolist() == [[1, 2], [4, 5]]
    assert found["y"].tolist() == [[3, 1], [6, 4]]


def test_more_rows_or_numbers_than_a_request_may_have() -> None:
    reader = NamedRows({"x": ["a"]})
    assert len(reader.read(b"[" + b",".join([b'{"a":1}'] * 10) + b"]", LIMITS)["x"]) == 10
    with pytest.raises(TooLarge, match="at most 10 rows, got 11"):
        reader.read(b"[" + b",".join([b'{"a":1}'] * 11) + b"]", LIMITS)
    with pytest.raises(TooLarge, match="at most 10 rows, in all"):
        reader.read(b"[{" + b",".join([b'"a":1'] * 10_000) + b"}]", LIMITS)
