"""Batches of rows: how many are timed, and work on one answer while the next is awaited."""

import threading

import numpy as np
import pytest

from service.child.onnx.batches import MAX_BATCH_NUMBERS, map_ahead
from service.child.onnx.trial import timed_rows

INPUTS = {"x": np.zeros((256, 3), dtype=np.float32)}


@pytest.mark.parametrize("passes", [1, 20, 1000])
@pytest.mark.parametrize("n_classes", [2, 1000, 100_000])
def test_the_timed_rows_fit_into_a_batch(passes, n_classes):
    numbers = passes * n_classes
    rows = timed_rows(INPUTS, None, [passes], numbers=numbers)["x"]
    assert len(rows) == 1 or len(rows) * numbers <= MAX_BATCH_NUMBERS
    assert 1 <= len(rows) <= 32


def test_a_fixed_batch_is_timed_whole():
    assert len(timed_rows(INPUTS, 8, [1000], numbers=10**8)["x"]) == 8


def test_results_are_made_in_another_thread_and_kept_in_order():
    begun = threading.Event()
    here = threading.get_ident()

    def items():
        yield 0
        assert begun.wait(10)  # the first is being worked on while the second is awaited
        yield from (1, 2)

    def make(item):
        begun.set()
        assert threading.get_ident() != here
        return item * 2

    assert map_ahead(items(), make) == [0, 2, 4]
    assert map_ahead([], make) == []


def test_the_failure_of_an_earlier_item_comes_first_and_no_more_are_taken():
    taken = []

    def items(last):
        for item in range(last):
            taken.append(item)
            yield item
        raise ValueError("the next one cannot be had")

    def make(item):
        raise KeyError(item)

    for last in (1, 10):
        taken.clear()
        with pytest.raises(KeyError, match="0"):
            map_ahead(items(last), make)
        assert taken == [0, 1][:last]
    with pytest.raises(ValueError, match="the next one"):
        map_ahead(items(1), str)
