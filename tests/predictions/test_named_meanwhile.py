"""What a name means is seen when it changes, and remembered while the database is away."""

import time
from collections.abc import Iterator

import httpx
import pytest
from databases import scratch_schema
from job_workspaces import logits_set
from running_service import calibrate, service_on
from severed_address import SeveredAddress
from sqlalchemy import make_url
from storage_rows import tenant_of

from service.predictions.name_cache import FRESH_SECONDS
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database, open_database

WAIT = {"Prefer": "wait=60"}
NAME = "named"
ROW = [0.5, 0.25, 0.125]
OIP_BODY = {"inputs": [{"name": "logits", "shape": [1, 3], "datatype": "FP32", "data": ROW}]}
NOT_FOUND, UNAVAILABLE = httpx.codes.NOT_FOUND, httpx.codes.SERVICE_UNAVAILABLE


@pytest.fixture
def client(database_url, tmp_path) -> Iterator[httpx.Client]:
    with service_on(tmp_path, database_url=database_url) as client:
        made = make(client)
        assert made.json()["status"] == "succeeded", made.text
        yield client


def make(client: httpx.Client) -> httpx.Response:
    return calibrate(client, calibration=logits_set(), config=f'{{"name": "{NAME}", "bins": 5}}')


def ask(client: httpx.Client, reference: str = NAME) -> httpx.Response:
    return client.post("/predict", json={"calibration": reference, "logits": [ROW]})


def version_of(answer: httpx.Response) -> int:
    found: int = answer.json()["calibration"]["version"]
    return found


def answering(client: httpx.Client, reference: str = NAME) -> int | None:
    """Return the version that answers, by both interfaces; None if there is none."""
    answer = ask(client, reference)
    name, _, version = reference.partition("@")
    path = f"/v2/models/{name}" + (f"/versions/{version}" if version else "")
    other = client.post(f"{path}/infer", json=OIP_BODY)
    assert other.status_code == answer.status_code, (answer.text, other.text)
    if answer.status_code == NOT_FOUND:
        return None
    found = version_of(answer)
    assert other.json()["model_version"] == str(found)
    return found


def test_what_this_process_writes_is_seen_by_the_next_request(client) -> None:
    assert answering(client) == 1
    assert answering(client, f"{NAME}@2") is None
    client.post(f"/calibrations/{NAME}@1/refit", json={"bins": 4}, headers=WAIT)
    assert (answering(client), answering(client, f"{NAME}@2")) == (2, 2)
    make(client)
    assert answering(client) == 3
    client.post(f"/calibrations/{NAME}@1/promote")
    assert answering(client) == 1
    client.post(f"/calibrations/{NAME}@2/promote")
    assert answering(client) == 2
    client.delete(f"/calibrations/{NAME}@2")
    assert (answering(client), answering(client, f"{NAME}@2")) == (3, None)
    document = client.get(f"/calibrations/{NAME}@1/bins").json()
    imported = client.post("/calibrations/import", json=document)
    assert imported.status_code == httpx.codes.CREATED, imported.text
    assert answering(client) == 4
    for version in (1, 3, 4):
        client.delete(f"/calibrations/{NAME}@{version}")
    assert answering(client) is None
    make(client)
    assert answering(client) is not None


@pytest.fixture
def elsewhere(database_url) -> Iterator[Database]:
    """What another process has of the same database."""
    opened = open_database(database_url)
    yield opened
    opened.dispose()


def promote(database: Database, version: int) -> None:
    tenant_id = tenant_of(database)
    with database.session() as session:
        repository = CalibrationRepository(session, tenant_id)
        repository.promote(repository.find(f"{NAME}@{version}").id)


def test_what_another_process_writes_is_seen_soon_by_who_comes_back(client, elsewhere) -> None:
    make(client)
    assert answering(client) == 2
    promote(elsewhere, 1)
    time.sleep(FRESH_SECONDS)  # the time is what is promised
    assert answering(client) == 1


def test_what_another_process_writes_is_seen_soon_by_who_keeps_asking(client, elsewhere) -> None:
    make(client)
    assert answering(client) == 2
    promote(elsewhere, 1)
    until = time.monotonic() + FRESH_SECONDS
    while (began := time.monotonic()) < until and version_of(ask(client)) == 2:
        pass
    assert began < until or answering(client) == 1


@pytest.fixture
def severed(postgresql_database_url, tmp_path) -> Iterator[tuple[SeveredAddress, httpx.Client]]:
    """A service whose database can be cut off."""
    with scratch_schema(postgresql_database_url) as schema_url:
        url = make_url(schema_url)
        with SeveredAddress(url.host or "127.0.0.1", url.port or 5432) as address:
            through = url.set(host="127.0.0.1", port=address.port)
            database_url = through.render_as_string(hide_password=False)
            with service_on(tmp_path, database_url=database_url) as client:
                try:
                    yield address, client
                finally:
                    address.restore()


@pytest.mark.parametrize("how", ["cut", "silence"])
def test_known_names_go_on_answering_while_the_database_is_away(severed, how) -> None:
    address, client = severed
    make(client)
    make(client)
    assert answering(client) == 2
    getattr(address, how)()
    until = time.monotonic() + 3 * FRESH_SECONDS  # long enough to be asked again and again
    while time.monotonic() < until:
        assert answering(client) == 2
    unknown = client.post(
        "/predict",
        json={"calibration": f"{NAME}@1", "logits": [ROW]},
        headers={"Timeout": "1"},
    )
    # One that is refused says so; one that says nothing is waited for as long as there is time.
    assert unknown.status_code == (UNAVAILABLE if how == "cut" else httpx.codes.GATEWAY_TIMEOUT)
    if how == "cut":
        assert unknown.json()["type"] == "urn:howsure:problem:overloaded"
        assert int(unknown.headers["Retry-After"]) > 0
    address.restore()
    client.delete(f"/calibrations/{NAME}@2")
    assert answering(client) == 1
