"""The most recently used values are kept, and loaded once for all threads that need them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.lru_cache import LruCache


def loaded(cache: LruCache[str, bytes], key: str, size: int = 1) -> bool:
    """Tell whether the value had to be loaded."""
    calls: list[str] = []

    def load() -> bytes:
        calls.append(key)
        return bytes(size)

    assert len(cache.get_or_load(key, load)) == size
    return bool(calls)


@pytest.mark.parametrize("cache", [LruCache(2), LruCache(25, len)], ids=["number", "bytes"])
def test_the_most_recently_used_are_kept(cache: LruCache[str, bytes]) -> None:
    assert loaded(cache, "first", 10)
    assert loaded(cache, "second", 10)
    assert not loaded(cache, "first", 10)
    assert loaded(cache, "third", 10)
    assert not loaded(cache, "first", 10)
    assert not loaded(cache, "third", 10)
    assert loaded(cache, "second", 10)


def test_a_value_larger_than_the_cache_is_returned_and_not_kept() -> None:
    cache: LruCache[str, bytes] = LruCache(25, len)
    loaded(cache, "small", 5)
    assert loaded(cache, "large", 30)
    assert loaded(cache, "large", 30)


def test_a_value_is_replaced_and_removed() -> None:
    cache: LruCache[str, bytes] = LruCache(25, len)
    for size in (20, 24):
        cache.put("one", bytes(size))
    assert cache.get("one") == bytes(24)
    cache.pop("one")
    cache.pop("one")
    assert cache.get("one") is None
    assert loaded(cache, "two", 25)
    assert not loaded(cache, "two", 25)


def test_threads_that_need_a_value_at_once_load_it_once() -> None:
    cache: LruCache[str, bytes] = LruCache(5)
    calls: list[int] = []
    go_on = threading.Event()

    def load() -> bytes:
        calls.append(1)
        go_on.wait(10)
        return b"value"

    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(cache.get_or_load, "key", load) for _ in range(4)]
        assert cache.get_or_load("other", lambda: b"other") == b"other"  # nobody waits for another
        go_on.set()
        assert [each.result(10) for each in found] == [b"value"] * 4
    assert calls == [1]


def test_after_a_load_that_failed_one_thread_loads_again() -> None:
    """A second one waits for the lock of the first, a third comes later: one of them loads."""
    cache: LruCache[str, bytes] = LruCache(5)
    at_once, most = [0], [0]
    has_begun, go_on = threading.Event(), threading.Event()

    def fail() -> bytes:
        has_begun.set()
        go_on.wait(10)
        raise OSError

    def load() -> bytes:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.05)
        at_once[0] -= 1
        return b"1"

    with ThreadPoolExecutor(12) as pool:
        failing = pool.submit(cache.get_or_load, "key", fail)
        assert has_begun.wait(10)
        waiting = [pool.submit(cache.get_or_load, "key", load) for _ in range(5)]
        go_on.set()
        assert isinstance(failing.exception(), OSError)
        waiting += [pool.submit(cache.get_or_load, "key", load) for _ in range(5)]
        assert {done.result() for done in waiting} == {b"1"}
    assert most == [1]
