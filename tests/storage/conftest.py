"""Storage is tested on each database and on each artifact store, a real S3 server among them."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from databases import DIALECTS
from object_stores import BUCKET, S3Server, s3_variables
from stored_rows import InTransactions

from service.storage.artifact_store import ArtifactStore, open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.evaluations import EvaluationRepository

LeadToS3 = Callable[..., None]


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the name of each supported database."""
    return request.param


@pytest.fixture
def calibrations(database: Database) -> InTransactions:
    """The calibrations of the default tenant."""
    return InTransactions(database, CalibrationRepository)


@pytest.fixture
def evaluations(database: Database) -> InTransactions:
    """The evaluations of the default tenant."""
    return InTransactions(database, EvaluationRepository)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server of this test process."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_folder() -> str:
    """A folder of the bucket that is one test's."""
    return uuid.uuid4().hex


@pytest.fixture
def lead_to_s3(monkeypatch: pytest.MonkeyPatch) -> LeadToS3:
    """Return what has the environment lead to the S3 server on a port."""

    def lead(port: int, **changes: str) -> None:
        for name, value in (s3_variables(port) | changes).items():
            monkeypatch.setenv(name, value)

    return lead


@pytest.fixture
def s3_location(s3_server: S3Server, s3_folder: str, lead_to_s3: LeadToS3) -> str:
    """The URL of that folder; the environment leads to the server."""
    lead_to_s3(s3_server.port)
    return f"s3://{BUCKET}/{s3_folder}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store in a folder has its files."""
    return tmp_path / "artifacts"


@pytest.fixture(params=["folder", "memory", "s3"])
def store(request: pytest.FixtureRequest, folder: Path) -> ArtifactStore:
    """Each kind of store: all keep one contract."""
    if request.param == "s3":
        return open_artifact_store(request.getfixturevalue("s3_location"))
    return open_artifact_store("memory://" if request.param == "memory" else str(folder))
