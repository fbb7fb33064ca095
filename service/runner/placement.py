"""On which device the next ONNX model goes."""

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from service.runner.device import Device


@dataclass
class _Placed:
    device: int
    n_bytes: int


class Placement:
    """Spreads models over devices by the memory they take; safe to use from many threads.

    A model is known by its key, and is in one place.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        if not devices:
            raise ValueError("devices must hold at least one device")
        self._devices = tuple(devices)
        self._lock = threading.Lock()
        self._placed: dict[Hashable, _Placed] = {}

    def place(self, key: Hashable, n_bytes: int) -> Device:
        """Return the device for a model that takes so many bytes, and count it there.

        It is the device whose models take the least memory; of such, the one with the fewest
        models; of such, the first. A model that has a place keeps it.
        """
        with self._lock:
            placed = self._placed.get(key)
            if placed is None:
                placed = self._placed[key] = _Placed(self._emptiest(), n_bytes)
            placed.n_bytes = n_bytes
            return self._devices[placed.device]

    def moved(self, key: Hashable, n_bytes: int) -> None:
        """Say that a model takes another number of bytes where it is.

        Of a model without a place nothing is kept: it may have left meanwhile.
        """
        with self._lock:
            placed = self._placed.get(key)
            if placed is not None:
                placed.n_bytes = n_bytes

    def left(self, key: Hashable) -> None:
        """Say that a model is unloaded; nothing happens if it has no place."""
        with self._lock:
            self._placed.pop(key, None)

    def _emptiest(self) -> int:
        taken = [[0, 0] for _ in self._devices]
        for placed in self._placed.values():
            taken[placed.device][0] += placed.n_bytes
            taken[placed.device][1] += 1
        return min(range(len(taken)), key=taken.__getitem__)


class LatePlacement:
    """A placement on devices that are found out when the first model is to be placed.

    Parameters
    ----------
    devices
        May take its time, and raise what `place` then raises; each call returns the same.
    """

    def __init__(self, devices: Callable[[], Sequence[Device]]) -> None:
        self._devices = devices
        self._lock = threading.Lock()
        self._placement: Placement | None = None

    def place(self, key: Hashable, n_bytes: int) -> Device:
        """As `Placement.place`."""
        devices = self._devices()
        with self._lock:
            if self._placement is None:
                self._placement = Placement(devices)
        return self._placement.place(key, n_bytes)

    def moved(self, key: Hashable, n_bytes: int) -> None:
        """As `Placement.moved`."""
        if self._placement is not None:
            self._placement.moved(key, n_bytes)

    def left(self, key: Hashable) -> None:
        """As `Placement.left`."""
        if self._placement is not None:
            self._placement.left(key)
