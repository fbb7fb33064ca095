"""A request by name is about one version, whatever happens between two of its transactions."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from databases import before_transaction
from keyed_service import address_of, keyed_service, logits_of, whole_request
from running_service import WAIT, calibrated, evaluate

from service.access.route_table import ROUTES

pytestmark = pytest.mark.process

NAME = "one-of-two"
# Others belong to no request.
OF_REQUESTS = ("AnyIO worker thread", "names_")
BY_REFERENCE = [
    (method, path)
    for method, path in ROUTES
    if "{calibration_id}" in path or "{model_name}" in path or path in ("/report", "/predict")
]
# It says twice whether the name stands for the version.
TELLS_OF_THE_NAME = "/pages/calibrations/{calibration_id}/integrate"
SHORT = [("GET", "/report"), ("POST", "/calibrations/{calibration_id}/operating-points")]
# Ids, times and the name of what a request makes.
VARYING = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|set of \d+|"
    r'\b[0-9a-f]{20}\b|"promoted":\w+|'
    r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)"
)


@dataclass
class Versions:
    """A service with two versions of a name, of which the first is promoted."""

    client: httpx.Client
    path: Path
    ids: list[str]
    saved: sqlite3.Connection

    def outcome(self, method: str, path: str, reference: str) -> tuple[int, str]:
        """Return what a request answers, and which decisions there are then."""
        options = {"headers": WAIT} | whole_request(method, path, reference)
        response = self.client.request(method, address_of(path, reference), **options)
        text = response.text
        if method != "GET":
            lists = [f"/calibrations/{version}/operating-points" for version in self.ids]
            text += "".join(self.client.get(address).text for address in lists)
        for number, version in enumerate(self.ids):
            text = text.replace(version, f"version {number}")
        return response.status_code, VARYING.sub("", text)

    def promote_other(self) -> None:
        self.client.post(f"/calibrations/{self.ids[1]}/promote").raise_for_status()

    def delete(self) -> None:
        self.client.delete(f"/calibrations/{self.ids[0]}")

    def save(self) -> None:
        with closing(sqlite3.connect(self.path)) as live:
            live.backup(self.saved)

    def put_back(self) -> None:
        with closing(sqlite3.connect(self.path, timeout=30)) as live:
            self.saved.backup(live)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versions]:
    folder = tmp_path_factory.mktemp("versions")
    with keyed_service(folder) as service:
        client = service.client(service.make_known().text)
        client.headers["Connection"] = "close"
        sets = (logits_of(n=60), logits_of(n=90))
        ids = [calibrated(client, {"name": NAME}, calibration=one)["id"] for one in sets]
        client.post(f"/calibrations/{ids[0]}/promote").raise_for_status()
        saved = sqlite3.connect(":memory:", check_same_thread=False)
        made = Versions(client, folder / "howsure.sqlite3", ids, saved)
        made.save()
        yield made
        saved.close()


@pytest.fixture(scope="module")
def with_further_sets(versions: Versions) -> Versions:
    for version in versions.ids:
        evaluate(versions.client, version, "again", logits_of()).raise_for_status()
    versions.save()
    return versions


def outcomes_while(versions: Versions, method: str, path: str, happen: Callable[[], None]) -> set:
    """Return the outcomes of a request for the name, as something happens in each transaction."""
    outcomes, number, begun = set(), 0, [0]
    while len(begun) > number:
        number += 1
        with before_transaction(number, happen, threads=OF_REQUESTS) as begun:
            outcomes.add(versions.outcome(method, path, NAME))
        versions.put_back()
    return outcomes


def check_route(versions: Versions, method: str, path: str) -> None:
    """Each outcome is one that a request for one of the versions has."""
    expected = set()
    for change in (lambda: None, versions.promote_other):
        for reference in (NAME, *versions.ids):
            change()
            expected.add(versions.outcome(method, path, reference))
            versions.put_back()
    assert not outcomes_while(versions, method, path, versions.promote_other) - expected


@pytest.mark.parametrize(("method", "path"), SHORT)
def test_a_request_is_of_one_version_while_names_move(versions, method: str, path: str) -> None:
    check_route(versions, method, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"), [route for route in BY_REFERENCE if route[1] != TELLS_OF_THE_NAME]
)
def test_each_route_is_of_one_version_while_names_move(
    with_further_sets, method: str, path: str
) -> None:
    check_route(with_further_sets, method, path)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), BY_REFERENCE)
def test_no_route_fails_while_versions_go(with_further_sets, method: str, path: str) -> None:
    outcomes = outcomes_while(with_further_sets, method, path, with_further_sets.delete)
    assert max(status for status, _ in outcomes) < httpx.codes.INTERNAL_SERVER_ERROR
