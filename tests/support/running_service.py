"""A running service of its own for tests: real HTTP, real ONNX Runtime, a real database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from service.cli.connection import connect
from service.settings import Settings

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@contextmanager
def service_on(folder: Path, **settings: Any) -> Iterator[httpx.Client]:
    """Run the service on ``folder`` in this process and yield a client of it."""
    options = {"data_dir": folder, "device": "cpu", "_env_file": None, **settings}
    with connect(None, settings=Settings(**options)) as client:
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
