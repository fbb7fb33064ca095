"""A running service of its own for tests: real HTTP, real ONNX Runtime, a real database."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from databases import put_sqlite_file
from forked_children import SERVER

from service.cli.connection import running
from service.runner.spawner import StartChild
from service.settings import Settings
from service.startup import configure_logging

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@contextmanager
def service_on(
    folder: Path, *, start_child: StartChild = SERVER.start_child, **settings: Any
) -> Iterator[httpx.Client]:
    """Run the service on ``folder`` in this process and yield a client of it."""
    options = Settings(**{"data_dir": folder, "device": "cpu", "_env_file": None, **settings})
    put_sqlite_file(options.resolved_database_url())
    configure_logging(options.log_format, level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="howsure-") as socket_folder:
        address = f"{socket_folder}/http.sock"
        with (
            running(options, uds=address, start_child=start_child),
            httpx.Client(
                transport=httpx.HTTPTransport(uds=address), base_url="http://howsure", timeout=60
            ) as client,
        ):
            yield client


def calibrate(
    client: httpx.Client,
    *,
    model: bytes | Sequence[bytes] | None = None,
    calibration: bytes | None = None,
    evaluation: bytes | None = None,
    config: str = "{}",
    wait: int = 120,
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
    return client.post("/calibrate", files=parts, headers={"Prefer": f"wait={wait}"})


def digits(name: str) -> bytes:
    """Return a file of the digits example."""
    return (DIGITS / name).read_bytes()


def kept_files(folder: Path) -> list[str]:
    """Return every file below the artifacts and the spool."""
    roots = [folder / "artifacts", folder / "spool"]
    return sorted(
        str(path.relative_to(folder))
        for root in roots
        for path in root.rglob("*")
        if path.is_file() and path.name != ".lock"
    )
