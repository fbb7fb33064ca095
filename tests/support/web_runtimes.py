"""Exported files in ONNX Runtime Web: under Node, and in the example's page in Chromium."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "browser"
DRIVER = ROOT / "tests" / "web"
TIMEOUT = 120


def require_node() -> None:
    """Skip the test where Node or ONNX Runtime Web is absent; in CI it fails."""
    _require(shutil.which("node") is not None, "node is not installed")
    runtime = EXAMPLE / "node_modules" / "onnxruntime-web"
    _require(runtime.exists(), "ONNX Runtime Web is not installed: run `make web`")


def require_browser() -> None:
    """Skip the test where Chromium or what drives it is absent; in CI it fails."""
    require_node()
    _require(_chromium() is not None, "chromium is not installed: run `make web` as root")
    driver = DRIVER / "node_modules" / "playwright-core"
    _require(driver.exists(), "playwright-core is not installed: run `make web`")


def write_rows(path: Path, feeds: Mapping[str, np.ndarray]) -> Path:
    """Write the rows as the example reads them: NaN as null, which JSON has in its place."""
    rows = {name: _nested(array) for name, array in feeds.items()}
    path.write_text(json.dumps({"inputs": rows}, allow_nan=False), encoding="utf-8")
    return path


def predict_under_node(rows: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what predict.mjs answers."""
    model, *companions = files
    return json.loads(_node(EXAMPLE / "predict.mjs", model, rows, *companions))


def predict_many_under_node(folder: Path, jobs: Sequence[Sequence[Path]]) -> list[Any]:
    """Return the answers for each job, of rows and a model's files, or its error."""
    path = folder / "jobs.json"
    path.write_text(json.dumps([[str(part) for part in job] for job in jobs]), encoding="utf-8")
    return json.loads(_node(DRIVER / "predict_many.mjs", path))


def refused_under_node(rows: Path, files: Sequence[Path]) -> str:
    """Return what predict.mjs complains of."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        predict_under_node(rows, files)
    return caught.value.stderr


def use_page(address: str, rows: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Return what the page shows after these files were chosen."""
    return json.loads(_node(DRIVER / "open_page.mjs", address, rows, *files))


@contextmanager
def served_example() -> Iterator[str]:
    """Serve the folder of the example, as `python3 -m http.server` does; yield its address."""
    handler = partial(_QuietHandler, directory=EXAMPLE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _require(found: bool, reason: str) -> None:  # noqa: FBT001 -- an assertion
    if found:
        return
    if os.environ.get("CI"):
        pytest.fail(f"required in CI: {reason}")
    pytest.skip(reason)


def _chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


def _node(script: Path, *arguments: object) -> str:
    done = subprocess.run(
        ["node", script, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=os.environ | {"CHROMIUM": _chromium() or ""},
    )
    return done.stdout


def _nested(array: np.ndarray) -> list[Any]:
    if array.dtype.kind != "f":
        return array.tolist()
    return np.where(np.isnan(array), None, array.astype(object)).tolist()
