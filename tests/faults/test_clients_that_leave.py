"""A client that disconnects during its upload is no failure of the service."""

import logging

import httpx
import pytest
import structlog
from hot_fronts import Connection, request
from runner_children import wait_until
from running_service import kept_files, service_on

PART = b'--B\r\nContent-Disposition: form-data; name="model"; filename="m"\r\n\r\n' + bytes(
    3_000_000
)
REQUESTS = {
    "/calibrate": ("multipart/form-data; boundary=B", PART),
    "/predict": ("application/json", b'{"calibration": "digits", "inputs": [['),
}


@pytest.mark.process
def test_a_client_that_leaves_is_one_line_in_the_log(tmp_path) -> None:
    with service_on(tmp_path, on_port=True, workers=0) as client:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
        with structlog.testing.capture_logs() as lines:
            for path, (content_type, begun) in REQUESTS.items():
                address = client.base_url.host, client.base_url.port
                with Connection(address) as leaving:
                    headers = {"Content-Length": "10000000", "Content-Type": content_type}
                    leaving.send(request("POST", path, begun, **headers))
                    if path == "/calibrate":
                        assert wait_until(lambda: kept_files(tmp_path))
                assert wait_until(
                    lambda path=path: (
                        (path, 499)
                        in [(line.get("route"), line.get("status")) for line in list(lines)]
                    )
                )
                assert wait_until(lambda: not kept_files(tmp_path))
            assert client.get("/readyz").status_code == httpx.codes.OK
    assert {line["log_level"] for line in lines} == {"info"}
