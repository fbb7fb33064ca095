"""What the models of this process have been asked, since it started."""

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.lru_cache import LruCache
from service.storage.calibration_queries import CalibrationRef

NANOSECONDS = 1e9
STAGES = ("queue", "compute_input", "compute_infer", "compute_output")


@dataclass
class _Duration:
    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        self.count += count
        self.ns += ns

    def as_dict(self) -> dict[str, int]:
        return {"count": self.count, "ns": self.ns}


class _Counts:
    def __init__(self) -> None:
        self.last_ms = 0
        self.rows = 0
        self.durations = {name: _Duration() for name in ("success", "fail", *STAGES)}

    def as_dict(self) -> dict[str, Any]:
        nothing = _Duration().as_dict()
        durations = {name: found.as_dict() for name, found in self.durations.items()}
        return {
            "last_inference": self.last_ms,
            "inference_count": self.rows,
            "execution_count": self.durations["success"].count,
            "inference_stats": durations | {"cache_hit": nothing, "cache_miss": nothing},
            "batch_stats": [],
        }


class Statistics:
    """Counts by calibration; those asked longest ago are forgotten beyond ``size`` of them."""

    def __init__(self, size: int = 1024) -> None:
        self._lock = threading.Lock()
        self._counts: LruCache[uuid.UUID, _Counts] = LruCache(size)

    def succeeded(
        self, ref: CalibrationRef, *, requests: int, rows: int, waited: float, ran: float
    ) -> None:
        """Count requests that were answered: seconds that they waited and ran together."""
        queue, infer = int(waited * NANOSECONDS), int(ran * NANOSECONDS)
        with self._lock:
            counts = self._counts.get_or_load(ref.id, _Counts)
            counts.last_ms = time.time_ns() // 1_000_000
            counts.rows += rows
            spent = counts.durations
            spent["success"].add(queue + infer, requests)
            spent["queue"].add(queue, requests)
            spent["compute_infer"].add(infer, requests)
            # Bodies are read, and answers written, with what is timed already.
            spent["compute_input"].add(0, requests)
            spent["compute_output"].add(0, requests)

    def failed(self, ref: CalibrationRef, *, seconds: float) -> None:
        """Count a request that was not, so long after it came."""
        with self._lock:
            self._counts.get_or_load(ref.id, _Counts).durations["fail"].add(
                int(seconds * NANOSECONDS)
            )

    def of(self, ref: CalibrationRef) -> Mapping[str, Any]:
        """Return the counts of a calibration as the protocol has them."""
        with self._lock:
            counts = (self._counts.get(ref.id) or _Counts()).as_dict()
        return {"name": ref.name, "version": str(ref.version)} | counts
