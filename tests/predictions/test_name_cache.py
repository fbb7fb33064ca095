"""Changes of a name are seen at once or soon; cached names serve while the database is away."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from databases import scratch_schema
from job_workspaces import calibrate as queued
from job_workspaces import evaluate, inputs_set, logits_set, predictor_of, succeed, workspace_on
from object_stores import WrappedStore
from runner_children import wait_until
from runner_models import linear, rows, weights
from running_service import calibrate, quick_config, service_on
from severed_address import SeveredAddress
from sqlalchemy import event, make_url
from sqlalchemy.exc import OperationalError
from stored_rows import tenant_of

from service.calibrations.manage import get_calibration, promote_calibration
from service.errors import Overloaded
from service.jobs.acceptance import CallContext
from service.predictions.name_cache import FRESH_SECONDS
from service.storage.artifact_store import ArtifactStore
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database, open_database
from service.storage.tenants import ALL_TENANTS

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
    return calibrate(client, calibration=logits_set(), config=quick_config(name=NAME))


def ask(client: httpx.Client, reference: str = NAME, **headers: str) -> httpx.Response:
    body = {"calibration": reference, "logits": [ROW]}
    return client.post("/predict", json=body, headers=headers)


def version_of(answer: httpx.Response) -> int:
    return answer.json()["calibration"]["version"]


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
    with database.session(ALL_TENANTS) as session:
        repository = CalibrationRepository(session, tenant_id)
        repository.promote(repository.find(f"{NAME}@{version}").id)


def test_what_another_process_writes_is_seen_soon(client, elsewhere) -> None:
    make(client)
    assert answering(client) == 2
    promote(elsewhere, 1)
    assert wait_until(lambda: version_of(ask(client)) == 1), "seen by who keeps asking"
    promote(elsewhere, 2)
    time.sleep(FRESH_SECONDS)  # the time is what is promised
    assert answering(client) == 2, "seen at once by who comes back"


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
    unknown = ask(client, f"{NAME}@1", Timeout="1")
    # One that is refused says so; one that says nothing is waited for as long as there is time.
    assert unknown.status_code == (UNAVAILABLE if how == "cut" else httpx.codes.GATEWAY_TIMEOUT)
    if how == "cut":
        assert unknown.json()["type"] == "urn:howsure:problem:overloaded"
        assert int(unknown.headers["Retry-After"]) > 0
    address.restore()
    client.delete(f"/calibrations/{NAME}@2")
    assert answering(client) == 1


JOB_NAME = "calibration"
ROWS = rows(2).tolist()
WAIT_SECONDS = 30.0


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        for seed in (0, 1):
            onnx_model = linear(weights(seed=seed)).SerializeToString()
            job = queued(made, inputs_set(300), onnx_model=onnx_model)
            succeed(made, job)
        yield made


def test_queued_jobs_do_not_invalidate_names(workspace) -> None:
    """Names that are known need not be asked anew for it, and go on if the database goes away."""
    before = workspace.database.generation
    job = queued(workspace, inputs_set(300), onnx_model=linear(weights()).SerializeToString())
    evaluate(workspace, get_calibration(workspace, job.tenant_id, JOB_NAME), inputs_set(300))
    assert workspace.database.generation == before


@contextmanager
def transactions(database):
    """Collect the transactions of a database; the first waits until it may go on."""
    begun, may_go_on = [], threading.Event()

    def begin(connection) -> None:
        begun.append(connection)
        if len(begun) == 1:
            assert may_go_on.wait(WAIT_SECONDS)

    event.listen(database.engine, "begin", begin)
    try:
        yield begun, may_go_on
    finally:
        may_go_on.set()
        event.remove(database.engine, "begin", begin)


def test_simultaneous_requests_share_a_query(workspace) -> None:
    with predictor_of(workspace, max_models=2) as predictor:
        with transactions(workspace.database) as (begun, may_go_on):
            asked = [predictor.begin(JOB_NAME, ROWS) for _ in range(100)]
            predictor.settle()
            may_go_on.set()
            answers = [found.result(WAIT_SECONDS) for found in asked]
            assert len(begun) < len(asked)
        assert {answer["calibration"]["version"] for answer in answers} == {2}
        assert all(answer == answers[0] for answer in answers)


class InterruptedStore(WrappedStore):
    """A store that calls something before each read of a file."""

    def __init__(self, store: ArtifactStore, before_read: Callable[[], None]) -> None:
        super().__init__(store)
        self._before_read = before_read

    def local_path(self, key, sha256):
        self._before_read()
        return super().local_path(key, sha256)


def interrupted(workspace, before_read: Callable[[], None]):
    store = InterruptedStore(workspace.artifacts, before_read)
    return dataclasses.replace(workspace, artifacts=store)


def test_requests_after_a_write_do_not_join_earlier_queries(workspace) -> None:
    reached, may_go_on = threading.Event(), threading.Event()

    def hold_the_first() -> None:
        if not reached.is_set():
            reached.set()
            assert may_go_on.wait(WAIT_SECONDS)

    with predictor_of(interrupted(workspace, hold_the_first), max_models=2) as predictor:
        early = predictor.begin(JOB_NAME, ROWS)
        assert reached.wait(WAIT_SECONDS)
        promote_calibration(CallContext(workspace, tenant_of(workspace.database)), f"{JOB_NAME}@1")
        late = predictor.begin(JOB_NAME, ROWS)
        assert late.result(WAIT_SECONDS)["calibration"]["version"] == 1
        may_go_on.set()
        assert early.result(WAIT_SECONDS)["calibration"]["version"] == 2
        assert predictor.ask(JOB_NAME, ROWS)["calibration"]["version"] == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError(), ZeroDivisionError),
        (OperationalError("SELECT", {}, Exception("gone")), Overloaded),
    ],
    ids=["a bug", "a database that is away"],
)
def test_waiting_requests_get_the_error_of_their_query(workspace, error, told) -> None:
    def fail() -> None:
        raise error

    with predictor_of(interrupted(workspace, fail)) as predictor:
        asked = [predictor.begin(JOB_NAME, ROWS) for _ in range(3)]
        assert [type(found.exception(WAIT_SECONDS)) for found in asked] == [told] * 3
    with predictor_of(workspace) as predictor:
        assert predictor.ask(JOB_NAME, ROWS)["calibration"]["version"] == 2
