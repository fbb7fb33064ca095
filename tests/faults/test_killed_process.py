"""A process that is killed while it calibrates loses nothing and leaves nothing half done.

HOWSURE_TEST_KILLS sets how often it is killed, HOWSURE_TEST_COPIES how many times the digits it
calibrates on; the short form is for every run of the suite.
"""

import io
import os
import random
import time
from datetime import datetime

import httpx
import numpy as np
from running_service import DIGITS, calibrate, digits, kept_files
from served_process import ServedProcess

KILLS = int(os.environ.get("HOWSURE_TEST_KILLS", "4"))
COPIES = int(os.environ.get("HOWSURE_TEST_COPIES", "40"))
WAIT_SECONDS = 120


def large_set() -> bytes:
    found = np.load(io.BytesIO(digits("calibration.npz")))
    text = io.BytesIO()
    np.savez(
        text,
        inputs=np.tile(found["inputs"], (COPIES, 1)),
        labels=np.tile(found["labels"], COPIES),
    )
    return text.getvalue()


def wait_until_finished(client: httpx.Client, calibration_id: str) -> dict:
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        found = client.get(f"/calibrations/{calibration_id}").json()
        if found["status"] not in ("queued", "running"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"still {found['status']} after {WAIT_SECONDS} s: {found['progress']}")


def running_seconds(finished: dict) -> float:
    created, ended = (datetime.fromisoformat(finished[f]) for f in ("created_at", "finished_at"))
    return (ended - created).total_seconds()


def test_killed_while_calibrating(tmp_path) -> None:
    generator = random.Random(5)
    config = '{"bins": 10, "name": "large"}'
    upload = {"model": digits("model.onnx"), "calibration": large_set(), "config": config}
    with ServedProcess(tmp_path) as client:
        undisturbed = calibrate(client, **upload).json()
        assert undisturbed["status"] == "succeeded", undisturbed["error"]
        seconds = running_seconds(undisturbed)
        expected = client.get(f"/calibrations/{undisturbed['id']}/bins").json()["tables"]

    accepted, interrupted = [], 0
    for part in range(KILLS):
        with ServedProcess(tmp_path) as client:
            accepted.append(calibrate(client, **upload, wait=0).json()["id"])
            # At any moment of each part of the time that it takes, the first as well as the last.
            time.sleep(generator.uniform(part, part + 1) * seconds / KILLS)
            states = [client.get(f"/calibrations/{found}").json()["status"] for found in accepted]
            interrupted += "running" in states

    with ServedProcess(tmp_path) as client:
        for calibration_id in accepted:
            found = wait_until_finished(client, calibration_id)
            if found["status"] == "failed":  # died with it three times
                assert "worker-died" in found["error"]["type"]
                continue
            assert found["status"] == "succeeded"
            tables = client.get(f"/calibrations/{calibration_id}/bins").json()["tables"]
            assert tables == expected
        listed = client.get("/calibrations", params={"limit": 200}).json()["calibrations"]
    assert {found["id"] for found in listed} == {undisturbed["id"], *accepted}
    assert interrupted > 0, "no kill came while a calibration ran: this run proves nothing"


def test_uploads_of_a_dead_process_are_swept(tmp_path) -> None:
    with ServedProcess(tmp_path) as client:
        made = calibrate(client, model=digits("model.onnx"), calibration=digits("calibration.npz"))
        assert made.status_code == httpx.codes.CREATED
    stale = tmp_path / "spool" / "other-host-1" / "upload"
    stale.mkdir(parents=True)
    (stale / "part").write_bytes((DIGITS / "model.onnx").read_bytes())

    with ServedProcess(tmp_path) as client:
        assert client.get("/readyz").status_code == httpx.codes.OK
        assert not any(path.startswith("spool") for path in kept_files(tmp_path))
