"""Changes of a name are seen at once or soon; cached names serve while the database is away."""

import dataclasses
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from databases import listening, scratch_schema
from job_workspaces import calibrate as queued
from job_workspaces import inputs_set, logits_set, predictor_of, succeed, workspace_on
from object_stores import WrappedStore
from runner_children import wait_until
from runner_models import linear, rows, weights
from running_service import calibrated, refit, service_on
from severed_address import SeveredAddress
from sqlalchemy import make_url
from stored_rows import tenant_of

from service.calibrations.manage import promote_calibration
from service.jobs.acceptance import CallContext
from service.lru_cache import LruCache
from service.predictions.name_cache import FRESH_SECONDS
from service.storage.artifact_store import ArtifactStore
from service.storage.calibrations import CalibrationRepository
from service.storage.database import open_database
from service.storage.tenants import ALL_TENANTS
from service.workspace import Workspace

pytestmark = pytest.mark.process
ROW = [0.5, 0.25, 0.125]
OIP_BODY = {"inputs": [{"name": "logits", "shape": [1, 3], "datatype": "FP32", "data": ROW}]}
NOT_FOUND, UNAVAILABLE = httpx.codes.NOT_FOUND, httpx.codes.SERVICE_UNAVAILABLE


def make(client: httpx.Client, *names: str) -> None:
    for name in names:
        calibrated(client, {"name": name}, calibration=logits_set())


def ask(client: httpx.Client, reference: str, **headers: str) -> httpx.Response:
    body = {"calibration": reference, "logits": [ROW]}
    return client.post("/predict", json=body, headers=headers)


def version_of(answer: httpx.Response) -> int:
    return answer.json()["calibration"]["version"]


def answering(client: httpx.Client, reference: str) -> int | None:
    """Return the version that answers, by both interfaces; None if there is none."""
    answer = ask(client, reference)
    name, _, version = reference.partition("@")
    path = f"/v2/models/{name}" + (f"/versions/{version}" if version else "")
    other = client.post(f"{path}/infer", json=OIP_BODY)
    assert other.status_code == answer.status_code, (answer.text, other.text)
    if answer.status_code == NOT_FOUND:
        return None
    assert other.json()["model_version"] == str(version_of(answer))
    return version_of(answer)


def test_what_this_process_writes_is_seen_by_the_next_request(client) -> None:
    name = "written-here"
    make(client, name)
    assert (answering(client, name), answering(client, f"{name}@2")) == (1, None)
    refit(client, f"{name}@1", bins=4).raise_for_status()
    assert (answering(client, name), answering(client, f"{name}@2")) == (2, 2)
    make(client, name)
    assert answering(client, name) == 3
    for version in (1, 2):
        client.post(f"/calibrations/{name}@{version}/promote").raise_for_status()
        assert answering(client, name) == version
        listed = client.get("/calibrations", params={"name": name}).json()["calibrations"]
        read = [client.get(f"/calibrations/{row['id']}").json() for row in listed]
        for rows_read in (listed, read):
            assert [row["version"] for row in rows_read if row["promoted"]] == [version]
    client.delete(f"/calibrations/{name}@2").raise_for_status()
    assert (answering(client, name), answering(client, f"{name}@2")) == (3, None)
    document = client.get(f"/calibrations/{name}@1/bins").json()
    client.post("/calibrations/import", json=document).raise_for_status()
    assert answering(client, name) == 4
    for version in (1, 3, 4):
        client.delete(f"/calibrations/{name}@{version}").raise_for_status()
    assert answering(client, name) is None
    make(client, name)
    assert answering(client, name) is not None


def test_what_another_process_writes_is_seen_soon(service) -> None:
    client, name = service.client, "written-elsewhere"
    make(client, name, name)
    assert answering(client, name) == 2
    elsewhere = open_database(f"sqlite:///{service.folder / 'howsure.sqlite3'}")

    def promote(version: int) -> None:
        with elsewhere.session(ALL_TENANTS) as session:
            repository = CalibrationRepository(session, tenant_of(elsewhere))
            repository.promote(repository.find(f"{name}@{version}").id)

    try:
        promote(1)
        # Seen by who keeps asking.
        assert wait_until(lambda: version_of(ask(client, name)) == 1)
        promote(2)
        time.sleep(FRESH_SECONDS)  # the time is what is promised
        # Seen at once by who comes back.
        assert answering(client, name) == 2
    finally:
        elsewhere.dispose()


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
    name = "known"
    make(client, name, name)
    assert answering(client, name) == 2
    getattr(address, how)()
    until = time.monotonic() + 2 * FRESH_SECONDS  # long enough to be asked again and again
    while time.monotonic() < until:
        assert answering(client, name) == 2
        time.sleep(0.05)  # spares the processor
    unknown = ask(client, f"{name}@1", Timeout="1")
    # One that is refused says so; one that says nothing is waited for as long as there is time.
    assert unknown.status_code == (UNAVAILABLE if how == "cut" else httpx.codes.GATEWAY_TIMEOUT)
    assert ("Retry-After" in unknown.headers) == (how == "cut")
    address.restore()
    client.delete(f"/calibrations/{name}@2").raise_for_status()
    assert answering(client, name) == 1


JOB_NAME = "calibration"
ROWS = rows(2).tolist()
WAIT_SECONDS = 30.0


@pytest.fixture
def workspace(database, tmp_path) -> Iterator[Workspace]:
    """A workspace whose name has two versions."""
    with workspace_on(database, tmp_path) as made:
        for seed in (0, 1):
            onnx_model = linear(weights(seed=seed)).SerializeToString()
            succeed(made, queued(made, inputs_set(300), onnx_model=onnx_model))
        yield made


def test_simultaneous_requests_share_a_query(workspace) -> None:
    begun, may_go_on = [], threading.Event()

    def begin(connection) -> None:
        begun.append(connection)
        if len(begun) == 1:
            assert may_go_on.wait(WAIT_SECONDS)

    listen = listening(workspace.database.engine, "begin", begin)
    with predictor_of(workspace, max_models=2) as predictor, listen:
        try:
            pending = [predictor.begin(JOB_NAME, ROWS) for _ in range(100)]
            predictor.settle()
        finally:
            may_go_on.set()
        answers = [answer.result(WAIT_SECONDS) for answer in pending]
    # A query is several transactions.
    assert len(begun) < len(pending) / 5
    assert answers == answers[:1] * len(pending)
    assert answers[0]["calibration"]["version"] == 2


class InterruptedStore(WrappedStore):
    """A store whose first read of a file waits."""

    def __init__(self, store: ArtifactStore) -> None:
        super().__init__(store)
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def local_path(self, key, sha256):
        if not self.reached.is_set():
            self.reached.set()
            assert self.may_go_on.wait(WAIT_SECONDS)
        return super().local_path(key, sha256)


def test_requests_after_a_write_do_not_join_earlier_queries(workspace) -> None:
    store = InterruptedStore(workspace.artifacts)
    # Nor does it know what an earlier test has read.
    interrupted = dataclasses.replace(workspace, artifacts=store, served=LruCache(256))
    context = CallContext(workspace, tenant_of(workspace.database))
    with predictor_of(interrupted, max_models=2) as predictor:
        early = predictor.begin(JOB_NAME, ROWS)
        assert store.reached.wait(WAIT_SECONDS)
        promote_calibration(context, f"{JOB_NAME}@1")
        late = predictor.begin(JOB_NAME, ROWS)
        assert late.result(WAIT_SECONDS)["calibration"]["version"] == 1
        store.may_go_on.set()
        assert early.result(WAIT_SECONDS)["calibration"]["version"] == 2
        assert predictor.ask(JOB_NAME, ROWS)["calibration"]["version"] == 1
