"""Samples are loaded once, held in order, and not more of them than fit."""

import uuid

import numpy as np

from service.core.judged_table import LabelledUncertainty
from service.operations.labelled_cache import LabelledCache

BYTES = 5  # of a sample: a float32 and a boolean


def samples(n: int) -> LabelledUncertainty:
    uncertainty = np.linspace(1, 0, n, dtype=np.float32)
    return LabelledUncertainty(uncertainty, uncertainty > 0.5)


def loaded(cache: LabelledCache, found: uuid.UUID, n: int) -> bool:
    """Tell whether samples had to be loaded."""
    calls: list[int] = []

    def load() -> LabelledUncertainty:
        calls.append(n)
        return samples(n)

    seen = cache.get(found, load)
    assert seen is not None
    assert seen.uncertainty.tolist() == sorted(samples(n).uncertainty.tolist())
    assert seen.hits.tolist() == (seen.uncertainty > 0.5).tolist()
    return bool(calls)


def test_the_most_recently_used_are_held() -> None:
    cache = LabelledCache(most_bytes=25 * BYTES)
    first, second, third = (uuid.uuid4() for _ in range(3))
    assert loaded(cache, first, 10)
    assert loaded(cache, second, 10)
    assert not loaded(cache, first, 10)
    assert loaded(cache, third, 10)
    assert not loaded(cache, first, 10)
    assert not loaded(cache, third, 10)
    assert loaded(cache, second, 10)


def test_what_is_larger_than_all_is_given_and_not_held() -> None:
    cache = LabelledCache(most_bytes=25 * BYTES)
    small, large = uuid.uuid4(), uuid.uuid4()
    loaded(cache, small, 5)
    assert loaded(cache, large, 30)
    assert loaded(cache, large, 30)


def test_where_there_are_none_there_are_none() -> None:
    cache = LabelledCache()
    found = uuid.uuid4()
    assert cache.get(found, lambda: None) is None
    assert loaded(cache, found, 3)
