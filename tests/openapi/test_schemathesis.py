"""The OpenAPI document, tried by schemathesis with all of its checks on a service that has keys.

``make openapi`` sends many times as many requests.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from howsure_command import ServedProcess, howsure
from keyed_service import logits_of

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sys.prefix) / "outside" / "bin" / "schemathesis"
EXAMPLES = os.environ.get("OPENAPI_EXAMPLES")
# The guard against hanging is for so many requests as the short form sends.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 if EXAMPLES is None else 0)]
SCOPES = ("predict", "read", "write", "admin")


def upload(client: httpx.Client, path: str, **parts: tuple) -> None:
    answer = client.post(path, files=parts, headers={"Prefer": "wait=60"})
    assert answer.json()["status"] == "succeeded", answer.text


def tried(address: str, key: str, folder: Path, *words: str) -> None:
    """Let schemathesis try the service, and fail with what it says if a check does."""
    assert SCHEMATHESIS.exists(), "`make test-slow` and `make openapi` put it there"
    command = [SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml", "--no-color", "run"]
    found = subprocess.run(
        [*command, f"{address}/openapi.json", "--seed", "1", *words],
        env={"PYTHONPATH": str(HERE), "HOWSURE_KEY": key},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "schemathesis.txt").write_text(found.stdout)
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_check_fails(tmp_path: Path) -> None:
    scopes = [word for scope in SCOPES for word in ("--scope", scope)]
    key = howsure("keys", "create", "test", *scopes, folder=tmp_path).stdout.strip()
    table = ("set.csv", logits_of())
    # So many keys that are none would be told that there are too many.
    with ServedProcess(tmp_path / "data") as client:
        client.headers["Authorization"] = f"Bearer {key}"
        for name in ("logits", "other"):
            upload(client, "/calibrate", calibration=table, config=(None, f'{{"name": "{name}"}}'))
        upload(client, "/calibrations/logits/evaluations", evaluation=table, name=(None, "again"))
        address = str(client.base_url).rstrip("/")
        if EXAMPLES is None:
            some = ("--phases", "examples,fuzzing,stateful", "--max-examples", "2")
            tried(address, key, tmp_path, *some)
            # Uploads and refits, a job each, are many there.
            each = ("--phases", "coverage", "--exclude-name-regex", "^POST /calibrat")
            tried(address, key, tmp_path, *each)
        else:
            tried(address, key, tmp_path, "--max-examples", EXAMPLES)
        assert client.get("/readyz").status_code == httpx.codes.OK
