"""Counts of requests by the Open Inference Protocol."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from service.predictions.oip_statistics import Statistics
from service.storage.calibration_queries import CalibrationRef


def ref(version: int) -> CalibrationRef:
    return CalibrationRef(uuid.uuid5(uuid.NAMESPACE_OID, str(version)), "digits", version)


def test_nothing_is_lost_between_threads() -> None:
    statistics = Statistics()

    def count(number: int) -> None:
        statistics.succeeded(ref(number % 2), requests=1, rows=3, waited=2e-6, ran=3e-6)
        statistics.failed(ref(1), seconds=5e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(2000)))

    found = statistics.of(ref(1))
    assert (found.inference_count, found.execution_count) == (3000, 1000)
    assert found.inference_stats["success"] == {"count": 1000, "ns": 5_000_000}
    assert found.inference_stats["queue"] == {"count": 1000, "ns": 2_000_000}
    assert found.inference_stats["compute_infer"] == {"count": 1000, "ns": 3_000_000}
    assert found.inference_stats["fail"] == {"count": 2000, "ns": 10_000_000}
    assert found.last_inference > 0


def test_the_least_recently_used_statistics_are_dropped() -> None:
    statistics = Statistics(size=2)
    for version in (1, 2, 1, 3):
        statistics.succeeded(ref(version), requests=1, rows=1, waited=0.0, ran=0.0)

    counts = [statistics.of(ref(version)).inference_count for version in (1, 2, 3, 4)]
    assert counts == [2, 0, 1, 0]
    assert statistics.of(ref(4)).last_inference == 0
