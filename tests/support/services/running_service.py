"""The service in this process: uploads, calibrated digits, metrics."""

import base64
import io
import json
import logging
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from databases import opened_database, put_sqlite_file
from forked_children import SERVER
from prometheus_client.parser import text_string_to_metric_families

from service.cli.connection import running
from service.runner.spawner import StartChild
from service.settings import Settings
from service.startup import configure_logging
from service.storage.artifact_store import open_artifact_store
from service.storage.orphans import remove_orphans

DIGITS = Path(__file__).parents[3] / "examples" / "digits"


@contextmanager
def service_on(
    folder: Path,
    *,
    start_child: StartChild = SERVER.start_child,
    on_port: bool = False,
    **settings: Any,
) -> Iterator[httpx.Client]:
    """Run the service on ``folder`` in this process and yield a client of it.

    It listens on a socket file, or with ``on_port`` on a free port of this machine.
    """
    options = Settings(**{"data_dir": folder, "device": "cpu", "_env_file": None, **settings})
    put_sqlite_file(options.resolved_database_url())
    configure_logging(options.log_format, level=logging.WARNING)
    with ExitStack() as stack:
        base_url, uds, sockets = "http://howsure", None, None
        if on_port:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            base_url = "http://127.0.0.1:{1}".format(*listening.getsockname())
            sockets = [listening]
        else:
            socket_folder = tempfile.TemporaryDirectory(prefix="howsure-")
            uds = f"{stack.enter_context(socket_folder)}/http.sock"
        stack.enter_context(running(options, uds=uds, sockets=sockets, start_child=start_child))
        transport = httpx.HTTPTransport(uds=uds)
        with httpx.Client(transport=transport, base_url=base_url, timeout=60) as client:
            yield client


def calibrate(
    client: httpx.Client,
    *,
    model: bytes | Sequence[bytes] | None = None,
    calibration: bytes | None = None,
    evaluation: bytes | None = None,
    config: str = "{}",
    wait: int = 120,
    headers: Mapping[str, str] = {},
    **companions: bytes,
) -> httpx.Response:
    """POST /calibrate with these parts, several models being an ensemble.

    File names of companions are given as keywords.
    """
    models = [model] if isinstance(model, bytes) else model or []
    parts: list[tuple[str, Any]] = [("model", ("model.onnx", content)) for content in models]
    parts += [("model_data", (name, data)) for name, data in companions.items()]
    if calibration is not None:
        parts.append(("calibration", ("calibration.npz", calibration)))
    if evaluation is not None:
        parts.append(("evaluation", ("evaluation.npz", evaluation)))
    parts.append(("config", (None, config)))
    return client.post(
        "/calibrate", files=parts, headers={"Prefer": f"wait={wait}", **headers}, timeout=wait + 60
    )


def digits(name: str) -> bytes:
    """Return a file of the digits example."""
    return (DIGITS / name).read_bytes()


DIGITS_PARTS = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}


def kept_files(folder: Path) -> list[str]:
    """Return every file below the artifacts and the spool, but locks and the sweeper's clock."""
    roots = [folder / "artifacts", folder / "spool"]
    return sorted(
        str(path.relative_to(folder))
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and path.name != ".lock" and not path.name.startswith("time")
    )


def swept_files(folder: Path, database_url: str = "") -> list[str]:
    """Return the files that rows name still, and the spool, after the sweep of an hour later."""
    url = database_url or f"sqlite:///{folder / 'howsure.sqlite3'}"
    with opened_database(url) as database:
        artifacts = open_artifact_store(str(folder / "artifacts"))
        remove_orphans(database, artifacts, older_than=timedelta(hours=-1))
    return kept_files(folder)


JSON = {"Content-Type": "application/json"}
NPY = {"Content-Type": "application/x-npy"}
NPZ = {"Content-Type": "application/x-npz"}


def npy(array: np.ndarray) -> bytes:
    """Return what numpy.save writes."""
    packed = io.BytesIO()
    np.save(packed, array)
    return packed.getvalue()


def npz(*, compressed: bool = False, **arrays: np.ndarray) -> bytes:
    """Return what numpy.savez writes."""
    packed = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(packed, **arrays)
    return packed.getvalue()


def encoded(array: np.ndarray) -> dict[str, Any]:
    """Return an array as an object of JSON that holds its bytes."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {
        "b64": base64.b64encode(little.tobytes()).decode("ascii"),
        "dtype": array.dtype.name,
        "shape": list(array.shape),
    }


def send(
    client: httpx.Client, calibration: str, body: bytes | dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    """POST a body to /predict; JSON names its calibration itself."""
    params = {} if headers["Content-Type"] == JSON["Content-Type"] else {"calibration": calibration}
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    return client.post("/predict", params=params, content=content, headers=headers)


__all__ = ["QUICK", "calibrated", "evaluate", "npz", "quick_config", "refit"]

WAIT = {"Prefer": "wait=60"}
QUICK: dict[str, Any] = {"top_k": [1], "measures": ["margin"], "folds": 2, "bins": 5}


def quick_config(**config: Any) -> str:
    """Return a configuration that takes little time, with these changes."""
    return json.dumps(QUICK | config)


def calibrated(
    client: httpx.Client,
    config: Mapping[str, Any] | str = "{}",
    *,
    full: bool = False,
    **parts: Any,
) -> dict[str, Any]:
    """Calibrate and return the resource, which has succeeded.

    It takes little time: what ``config`` leaves open is as in `QUICK`. With ``full`` it is the
    default of the service, for tests whose subject that is.
    """
    options = dict(json.loads(config) if isinstance(config, str) else config)
    response = calibrate(client, config=json.dumps(options if full else QUICK | options), **parts)
    assert response.status_code == httpx.codes.CREATED, response.text
    resource: dict[str, Any] = response.json()
    assert resource["status"] == "succeeded", resource["error"]
    return resource


def report_of(client: httpx.Client, *references: str) -> dict[str, Any]:
    """Return the report about calibrations."""
    response = client.get("/report", params={"calibration": references})
    assert response.status_code == httpx.codes.OK, response.text
    report: dict[str, Any] = response.json()
    return report


def codes(resource: Mapping[str, Any]) -> list[str]:
    """Return the codes of the findings of a calibration, an evaluation or a report."""
    return [finding["code"] for finding in resource["findings"]]


def refit(client: httpx.Client, reference: str, **changes: Any) -> httpx.Response:
    """Refit a calibration and wait."""
    return client.post(f"/calibrations/{reference}/refit", json=changes, headers=WAIT)


def dry_run(
    client: httpx.Client, content: bytes, headers: Mapping[str, str] = {}, **options: Any
) -> httpx.Response:
    """Ask for a dry run. Bytes are parts; other options belong to the configuration."""
    merged = {name: value for name, value in (QUICK | options).items() if value is not None}
    files: list[tuple[str, Any]] = [("calibration", ("a.bin", content))]
    parts = [name for name, value in merged.items() if isinstance(value, bytes)]
    files += [(name, ("a.bin", merged.pop(name))) for name in parts]
    files.append(("config", (None, json.dumps(merged))))
    return client.post("/calibrate", params={"dry_run": True}, files=files, headers=headers)


def evaluate(
    client: httpx.Client, reference: str, name: str | None, data: bytes | None, **parts: bytes | str
) -> httpx.Response:
    """Send a further set and wait; texts are no files."""
    files: list[tuple[str, Any]] = [
        (part, (None if isinstance(content, str) else part, content))
        for part, content in parts.items()
    ]
    if data is not None:
        files.append(("evaluation", ("evaluation.npz", data)))
    if name is not None:
        files.append(("name", (None, name)))
    return client.post(f"/calibrations/{reference}/evaluations", files=files, headers=WAIT)


@dataclass(frozen=True)
class Service:
    client: httpx.Client
    folder: Path

    @property
    def url(self) -> str:
        """The address that commands and other clients are given."""
        return str(self.client.base_url)


@dataclass(frozen=True)
class Calibrated:
    """The data folder of a service that ended, and what it said of its calibration."""

    folder: Path
    resource: dict[str, Any]


@pytest.fixture(scope="session")
def calibrated_digits(tmp_path_factory: pytest.TempPathFactory) -> Calibrated:
    """The digits with everything that is measured by default, for services of a test's own."""
    folder = tmp_path_factory.mktemp("digits")
    with service_on(folder) as client:
        resource = calibrated(
            client,
            {"name": "digits", "bins": 10},
            full=True,
            model=digits("model.onnx"),
            calibration=digits("calibration.npz"),
            evaluation=digits("evaluation.npz"),
        )
    return Calibrated(folder, resource)


@pytest.fixture(scope="session")
def service(
    calibrated_digits: Calibrated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service of this worker, on a port, without keys: all tests that only use one share it.

    It holds the calibration ``digits``, which nobody changes. A test that makes something gives
    it a name of its own; one that lists everything, or that needs settings, starts its own.
    """
    folder = tmp_path_factory.mktemp("service")
    shutil.copytree(calibrated_digits.folder, folder, dirs_exist_ok=True)
    with service_on(folder, on_port=True) as client:
        yield Service(client, folder)


@pytest.fixture(scope="session")
def client(service: Service) -> httpx.Client:
    return service.client


@pytest.fixture(scope="session")
def digits_calibration(service: Service, calibrated_digits: Calibrated) -> dict[str, Any]:
    return calibrated_digits.resource


class Scraped:
    """One scrape; samples are found by name and labels."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """Return one sample, 0 if there is none."""
        return self._samples.get((f"howsure_{name}", frozenset(labels.items())), 0.0)

    def labels(self, name: str) -> list[dict[str, str]]:
        """Return the labels of every sample of this name."""
        return [dict(labels) for found, labels in self._samples if found == f"howsure_{name}"]


def scrape(client: httpx.Client) -> Scraped:
    answer = client.get("/metrics")
    assert answer.status_code == httpx.codes.OK
    return Scraped(answer.text)


class Growth:
    """What the metrics of a service have grown by since the beginning."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._before = scrape(client)

    def __call__(self, name: str, **labels: str) -> float:
        return scrape(self._client)(name, **labels) - self._before(name, **labels)

    def of_each(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels of each sample that has grown, and by how much."""
        after = scrape(self._client)
        grown = [
            (labels, after(name, **labels) - self._before(name, **labels))
            for labels in after.labels(name)
        ]
        return [(labels, more) for labels, more in grown if more]
