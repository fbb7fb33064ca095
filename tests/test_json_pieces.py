"""JSON text in pieces equals that of one call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.json_pieces import CHUNK_CHARACTERS, json_chunks, json_pieces

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts) | st.tuples(parts, parts),
)


@given(value=VALUES, depth=st.integers(0, 9), sort_keys=st.booleans())
def test_pieces_are_the_whole(value, depth: int, *, sort_keys: bool) -> None:
    found = "".join(json_pieces(value, depth=depth, sort_keys=sort_keys))
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    assert found == whole


@pytest.mark.parametrize("n", [0, 1, 50_000])
def test_chunks_are_the_whole(n: int) -> None:
    value = [{"name": "ä", "n": i} for i in range(n)]
    chunks = list(json_chunks(value))
    assert json.loads(b"".join(chunks)) == value
    assert max(map(len, chunks)) < 2 * CHUNK_CHARACTERS


def test_no_piece_is_large() -> None:
    report = {
        "calibrations": [{"events": {"1": {"measures": {"m": {"bins": [{"n": 1}] * 9}}}}}] * 20
    }
    assert max(map(len, json_pieces(report))) < len('"calibrations":') + 2


@pytest.mark.parametrize("depth", [0, 1, 9])
def test_numbers_are_finite(depth: int) -> None:
    with pytest.raises(ValueError, match="JSON"):
        "".join(json_pieces({"a": [float("nan")]}, depth=depth))
