"""A thread-safe cache of the most recently used values, and locks by key."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Key = TypeVar("Key")
Value = TypeVar("Value")


class KeyedLocks(Generic[Key]):
    """A lock for each key, which lives as long as a thread holds it or waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()

    def of(self, key: Key) -> threading.Lock:
        """Return the lock of a key, to be used as a context manager."""
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


class LruCache(Generic[Key, Value]):
    """Caches values by key, at most ``most`` in number or in total ``size``."""

    def __init__(self, most: int, size: Callable[[Value], int] = lambda _: 1) -> None:
        self._most = most
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._total = 0
        self._loading = KeyedLocks[Key]()

    def get(self, key: Key) -> Value | None:
        """Return the value, or None if it is not cached."""
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def put(self, key: Key, value: Value) -> None:
        """Cache the value, and drop the least recently used ones."""
        with self._lock:
            self._remove(key)
            self._values[key] = value
            self._total += self._size(value)
            while self._total > self._most:
                self._remove(next(iter(self._values)))

    def pop(self, key: Key) -> None:
        """Drop the value, if it is cached."""
        with self._lock:
            self._remove(key)

    def get_or_load(self, key: Key, load: Callable[[], Value]) -> Value:
        """Return the value, and load it if necessary: once, even if several threads need it."""
        value = self.get(key)
        if value is not None:
            return value
        with self._loading.of(key):
            value = self.get(key)
            if value is None:
                value = load()
                self.put(key, value)
            return value

    def _remove(self, key: Key) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._total -= self._size(found)
