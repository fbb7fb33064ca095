"""Making something of one answer while the next is awaited."""

import threading

import pytest

from service.child.onnx.batches import map_ahead


def test_results_are_made_in_another_thread_and_kept_in_order():
    begun = threading.Event()
    here = threading.get_ident()

    def items():
        yield 0
        assert begun.wait(10)  # the first is being worked on while the second is awaited
        yield 1
        yield 2

    def make(item):
        begun.set()
        assert threading.get_ident() != here
        return item * 2

    assert map_ahead(items(), make) == [0, 2, 4]
    assert map_ahead([], make) == []


def test_the_failure_of_an_earlier_item_comes_first():
    def items():
        yield "bad"
        raise ValueError("the next one cannot be had")

    def make(item):
        raise KeyError(item)

    with pytest.raises(KeyError, match="bad"):
        map_ahead(items(), make)
    with pytest.raises(ValueError, match="the next one"):
        map_ahead(items(), str)


def test_no_more_items_are_taken_after_a_failure():
    asked = []

    def items():
        for item in range(10):
            asked.append(item)
            yield item

    def make(item):
        raise KeyError(item)

    with pytest.raises(KeyError, match="0"):
        map_ahead(items(), make)
    assert asked == [0, 1]
