"""The whole service with its artifacts on a real S3 server, which fails for a while."""

from datetime import timedelta

import httpx
from databases import opened_database
from object_stores import BUCKET, Answer, FaultyS3
from runner_children import wait_until
from running_service import DIGITS_PARTS, calibrate, calibrated, service_on

from service.storage.artifact_store import open_artifact_store
from service.storage.orphans import remove_orphans


def test_a_store_that_is_away_stops_no_model(s3_server, s3_folder, tmp_path, lead_to_s3) -> None:
    with FaultyS3(s3_server.port) as faulty:
        lead_to_s3(faulty.port)
        url = f"s3://{BUCKET}/{s3_folder}"
        with service_on(tmp_path, artifacts_url=url) as client:
            made = calibrated(client, **DIGITS_PARTS)
            assert predict(client).status_code == httpx.codes.OK

            faulty.fault = lambda _: Answer(503, "SlowDown")
            answer = calibrate(client, **DIGITS_PARTS)
            assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
            assert int(answer.headers["retry-after"]) > 0
            assert answer.json()["type"] == "urn:howsure:problem:overloaded"
            ready = client.get("/readyz")
            assert ready.status_code == httpx.codes.SERVICE_UNAVAILABLE
            assert "SlowDown" in ready.json()["checks"]["artifacts"]
            assert predict(client).status_code == httpx.codes.OK

            faulty.fault = lambda _: None
            assert wait_until(lambda: client.get("/readyz").status_code == httpx.codes.OK)
            assert client.delete(f"/calibrations/{made['id']}").is_success
        with opened_database(f"sqlite:///{tmp_path / 'howsure.sqlite3'}") as database:
            remove_orphans(database, open_artifact_store(url), older_than=timedelta(hours=-1))
        assert not [name for name in s3_server.objects() if name.startswith(s3_folder)]


def predict(client: httpx.Client) -> httpx.Response:
    return client.post("/predict", json={"calibration": "calibration", "inputs": [[0.0] * 64]})
