"""Labelled uncertainties held ready, for who looks at many thresholds of the same samples."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from service.core.judged_table import LabelledUncertainty

MOST_BYTES = 64 * 2**20


class LabelledCache:
    """Samples of finished calibrations by id, the most recently used: they never change.

    They are kept in the order of their uncertainty, in which they are soon sorted again.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[uuid.UUID, LabelledUncertainty] = OrderedDict()
        self._bytes = 0

    def get(
        self, calibration_id: uuid.UUID, load: Callable[[], LabelledUncertainty | None]
    ) -> LabelledUncertainty | None:
        """Return the samples of a calibration, loaded if they are not held; None has none."""
        with self._lock:
            held = self._kept.get(calibration_id)
            if held is not None:
                self._kept.move_to_end(calibration_id)
                return held
        loaded = load()
        if loaded is None:
            return None
        order = np.argsort(loaded.uncertainty, kind="stable")
        ranked = LabelledUncertainty(loaded.uncertainty[order], loaded.hits[order])
        self._keep(calibration_id, ranked)
        return ranked

    def _keep(self, calibration_id: uuid.UUID, samples: LabelledUncertainty) -> None:
        with self._lock:
            if calibration_id not in self._kept:
                self._kept[calibration_id] = samples
                self._bytes += _size(samples)
            while self._bytes > self._most_bytes:
                self._bytes -= _size(self._kept.popitem(last=False)[1])


def _size(samples: LabelledUncertainty) -> int:
    return int(samples.uncertainty.nbytes + samples.hits.nbytes)
