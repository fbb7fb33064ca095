"""Statistics of the Open Inference Protocol: requests of this process since it started."""

import threading
import time
import uuid
from dataclasses import dataclass, field

from service.lru_cache import LruCache
from service.predictions.oip_schemas import OipModelStatistics
from service.storage.calibration_queries import CalibrationRef

NANOSECONDS = 1e9
DURATIONS = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")
CACHE = ("cache_hit", "cache_miss")  # there is no cache: always zero


@dataclass
class _Counts:
    last_ms: int = 0
    rows: int = 0
    durations: dict[str, dict[str, int]] = field(
        default_factory=lambda: {name: {"count": 0, "ns": 0} for name in (*DURATIONS, *CACHE)}
    )

    def add(self, name: str, count: int, ns: int) -> None:
        duration = self.durations[name]
        duration["count"] += count
        duration["ns"] += ns


class Statistics:
    """Counts by calibration; beyond ``size`` of them the least recently used are forgotten."""

    def __init__(self, size: int = 1024) -> None:
        self._lock = threading.Lock()
        self._counts: LruCache[uuid.UUID, _Counts] = LruCache(size)

    def succeeded(
        self, ref: CalibrationRef, *, requests: int, rows: int, waited: float, ran: float
    ) -> None:
        """Count answered requests, with the seconds that they waited and ran in total."""
        queue, infer = int(waited * NANOSECONDS), int(ran * NANOSECONDS)
        with self._lock:
            counts = self._counts.get_or_load(ref.id, _Counts)
            counts.last_ms = time.time_ns() // 1_000_000
            counts.rows += rows
            counts.add("success", requests, queue + infer)
            counts.add("queue", requests, queue)
            counts.add("compute_infer", requests, infer)
            # Reading bodies and writing answers is part of the times above.
            counts.add("compute_input", requests, 0)
            counts.add("compute_output", requests, 0)

    def failed(self, ref: CalibrationRef, *, seconds: float) -> None:
        """Count a request that failed so long after its arrival."""
        with self._lock:
            counts = self._counts.get_or_load(ref.id, _Counts)
            counts.add("fail", 1, int(seconds * NANOSECONDS))

    def of(self, ref: CalibrationRef) -> OipModelStatistics:
        """Return the counts of a calibration."""
        with self._lock:
            counts = self._counts.get(ref.id) or _Counts()
            return OipModelStatistics(
                name=ref.name,
                version=str(ref.version),
                last_inference=counts.last_ms,
                inference_count=counts.rows,
                execution_count=counts.durations["success"]["count"],
                inference_stats={name: dict(found) for name, found in counts.durations.items()},
                batch_stats=[],
            )
