"""The main job on each database the service is offered with."""

import io

import httpx
import numpy as np
from running_service import calibrate, digits, kept_files, service_on

CREATED, NO_CONTENT = httpx.codes.CREATED, httpx.codes.NO_CONTENT
WAIT = {"Prefer": "wait=60"}


def test_a_calibration_from_upload_to_deletion(database_url, tmp_path) -> None:
    rows = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:3].tolist()
    with service_on(tmp_path, database_url=database_url) as client:
        made = calibrate(
            client,
            model=digits("model.onnx"),
            calibration=digits("calibration.npz"),
            config='{"name": "digits"}',
        )
        assert made.status_code == CREATED, made.text
        assert made.json()["status"] == "succeeded", made.json()["error"]
        body = {"calibration": "digits", "inputs": rows}
        first = client.post("/predict", json=body).json()
        assert len(first["predictions"]) == 3

        refit = client.post("/calibrations/digits@1/refit", json={"bins": 5}, headers=WAIT)
        assert refit.json()["status"] == "succeeded", refit.text
        assert client.post("/predict", json=body).json()["calibration"]["version"] == 2
        client.post("/calibrations/digits@1/promote")
        assert client.post("/predict", json=body).json() == first

        parts = {"evaluation": ("e.npz", digits("evaluation.npz")), "name": (None, "other half")}
        judged = client.post("/calibrations/digits@1/evaluations", files=parts, headers=WAIT)
        assert judged.json()["status"] == "succeeded", judged.text
        report = client.get("/report", params={"calibration": "digits@1"}).json()
        assert [found["name"] for found in report["evaluations"]] == ["other half"]

    with service_on(tmp_path, database_url=database_url) as client:  # what was kept is all there
        assert client.post("/predict", json=body).json() == first
        for version in (1, 2):
            assert client.delete(f"/calibrations/digits@{version}").status_code == NO_CONTENT
        assert client.get("/calibrations").json()["calibrations"] == []
        assert kept_files(tmp_path) == []
