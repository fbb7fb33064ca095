"""The order that samples are fitted in, and how they come back from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import in_canonical_order, moved_to_canonical_order


def records_of(seed: int, n_samples: int):
    drawn = np.random.default_rng(seed)
    return build_records(
        drawn.normal(0, 2, (n_samples, 4)),
        drawn.integers(0, 4, n_samples),
        tie_keys=drawn.integers(0, 5, n_samples).astype(np.uint32),
        top_k=(1, 2),
    )


def copied(records):
    return {name: array.copy() for name, array in records.to_arrays().items()}


def same(first, second) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


@given(seed=st.integers(0, 2**32 - 1), n_samples=st.integers(1, 40))
def test_samples_are_moved_there_and_back(seed, n_samples) -> None:
    records = records_of(seed, n_samples)
    before, ordered = copied(records), copied(in_canonical_order(records))
    with moved_to_canonical_order(records):
        assert same(copied(records), ordered)
        assert in_canonical_order(records) is records
    assert same(copied(records), before)


def test_nothing_moves_where_one_array_is_read_only():
    records = records_of(1, 20)
    before = {name: array.copy() for name, array in records.to_arrays().items()}
    *_, last = records.to_arrays().values()
    last.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"), moved_to_canonical_order(records):
        raise AssertionError
    for name, array in records.to_arrays().items():
        np.testing.assert_array_equal(array, before[name])
