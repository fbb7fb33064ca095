"""Operating points are activated by name while the name changes its version."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
from databases import BOTH_DIALECTS
from running_service import calibrated, npz, refit, service_on
from sample_strategies import calibrated as calibrated_outputs

pytestmark = [pytest.mark.process, pytest.mark.slow]

NAME = "changing"
SETS, VERSIONS, THREADS = 4, 8, 3
COVERAGES = (0.5, 0.7, 0.9)
REFUSED = {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}
SIGNED = {"name": "automatic", "author": "somebody", "reason": "to see"}


class Versions:
    """The versions of a name: the set of each, and what each choice has on a set."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._set_of: dict[str, int] = {}
        self._effects: list[dict[float, tuple[float, dict[str, Any]]]] = []
        self._first: list[str] = []
        for seed in range(SETS):
            logits, labels = calibrated_outputs(120 + 10 * seed, n_classes=4, seed=seed)
            made = calibrated(client, {"name": NAME}, calibration=npz(logits=logits, labels=labels))
            self._set_of[made["id"]] = seed
            self._first.append(made["id"])
            points = {c: self.activate(made["id"], c).json() for c in COVERAGES}
            self._effects.append({c: effect_of(point) for c, point in points.items()})
        self.live = list(self._first)

    def activate(self, reference: str, coverage: float) -> httpx.Response:
        body = SIGNED | {"coverage": coverage}
        return self.client.post(f"/calibrations/{reference}/operating-points", json=body)

    def add(self, number: int) -> None:
        """Add a version of any set."""
        made = refit(self.client, self._first[number % SETS], bins=5).json()
        assert made["status"] == "succeeded", made
        self._set_of[made["id"]] = number % SETS
        self.live.append(made["id"])

    def check(self, version: str) -> int:
        """Check the decisions of a version, and return how many there are."""
        address = f"/calibrations/{version}/operating-points"
        page = self.client.get(address, params={"limit": 200}).raise_for_status().json()
        assert page["next_cursor"] is None
        for point in page["operating_points"]:
            effect = self._effects[self._set_of[version]][point["chosen_by"]["coverage"]]
            assert effect_of(point) == effect, (version, point)
        return len(page["operating_points"])


def effect_of(point: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    return point["threshold"], point["consequences"]


def change(versions: Versions, rng: np.random.Generator, is_over: Callable[[], bool]) -> int:
    """Promote, delete and add versions until all are activated; return how many are deleted."""
    n_deleted = 0
    while not is_over():
        for version in rng.choice(versions.live, 5):
            versions.client.post(f"/calibrations/{version}/promote").raise_for_status()
        # The first version of each set stays: the others are fitted to its records.
        gone = versions.live.pop(int(rng.integers(SETS, len(versions.live))))
        versions.client.post(f"/calibrations/{gone}/promote").raise_for_status()
        versions.check(gone)
        versions.client.delete(f"/calibrations/{gone}").raise_for_status()
        n_deleted += 1
        versions.add(n_deleted)
    return n_deleted


@BOTH_DIALECTS
@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.further)])
def test_a_point_is_of_the_version_that_has_it(database_url, tmp_path, n) -> None:
    turns, over = iter(range(n)), threading.Event()
    with service_on(tmp_path, database_url=database_url) as client:
        versions = Versions(client)
        for number in range(VERSIONS - SETS):
            versions.add(number)

        def activate_all(_: int) -> Counter[int]:
            return Counter(
                versions.activate(NAME, COVERAGES[turn % len(COVERAGES)]).status_code
                for turn in turns
            )

        with ThreadPoolExecutor(THREADS + 1) as pool:
            changes = pool.submit(change, versions, np.random.default_rng(n), over.is_set)
            statuses = sum(pool.map(activate_all, range(THREADS)), Counter[int]())
            over.set()
            assert changes.result() > 0
        assert statuses.keys() <= {httpx.codes.CREATED, *REFUSED}, statuses
        assert statuses.total() == n
        assert statuses[httpx.codes.CREATED] > n / 2
        assert sum(versions.check(version) for version in versions.live) > SETS * len(COVERAGES)
