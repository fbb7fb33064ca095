"""A client that disconnects during its upload is no failure of the service."""

import socket

import httpx
import pytest
from howsure_command import ServedProcess
from runner_children import wait_until
from running_service import kept_files

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


@pytest.mark.parametrize("path", REQUESTS)
def test_a_client_that_leaves_is_one_line_in_the_log(tmp_path, path) -> None:
    content_type, begun = REQUESTS[path]
    served = ServedProcess(tmp_path, workers="0")
    with served as client:
        with socket.create_connection((client.base_url.host, client.base_url.port)) as leaving:
            leaving.sendall(HEAD.format(path=path, content_type=content_type).encode() + begun)
            if path == "/calibrate":
                assert wait_until(lambda: kept_files(tmp_path))

        assert wait_until(lambda: "client_left" in served.log.read_text())
        assert wait_until(lambda: not kept_files(tmp_path))
        assert client.get("/readyz").status_code == httpx.codes.OK
    text = served.log.read_text()
    assert "Traceback" not in text
    assert "[error" not in text
