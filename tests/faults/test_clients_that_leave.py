"""A client that disconnects during its upload is no failure of the service."""

import logging
import socket

import httpx
import pytest
import structlog
from runner_children import wait_until
from running_service import kept_files, service_on

HEAD = (
    "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n"
    "Content-Type: {content_type}\r\n\r\n"
)
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
                with socket.create_connection(address) as leaving:
                    head = HEAD.format(path=path, content_type=content_type)
                    leaving.sendall(head.encode() + begun)
                    if path == "/calibrate":
                        assert wait_until(lambda: kept_files(tmp_path))
                assert wait_until(
                    lambda path=path: (
                        ("client_left", path)
                        in [(line["event"], line.get("path")) for line in list(lines)]
                    )
                )
                assert wait_until(lambda: not kept_files(tmp_path))
            assert client.get("/readyz").status_code == httpx.codes.OK
    assert {line["log_level"] for line in lines} == {"info"}
