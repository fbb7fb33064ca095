"""Cleanup of a process that died during an upload."""

import httpx
from howsure_command import ServedProcess
from running_service import DIGITS, calibrate, digits, kept_files


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
