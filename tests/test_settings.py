"""What a setting may be."""

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from service.settings import Settings, read_settings

REFUSED = ["", "gpu", "CPU", "auto,cuda:0", "cpu\n", "cuda:0,cuda:0", "cuda:1,cuda:0,cuda:1"]
REFUSED += [f"cuda:{rest}" for rest in ("", "01", "10000", "x", "-1", "٣", "0,", "0, cuda:1")]
REFUSED += ["cuda:0,cpu", ",cuda:0"]
TAKEN = ["auto", "cpu", "cuda", "cuda:0", "cuda:10", "cuda:9999"]
TAKEN += ["cuda:0,cuda:1", "cuda:3,cuda:0,cuda:12"]


@pytest.mark.parametrize("device", TAKEN)
def test_devices_that_may_be_asked_for(device):
    assert Settings(_env_file=None, device=device).device == device


@pytest.mark.parametrize("device", REFUSED)
def test_devices_that_may_not(device):
    with pytest.raises(ValidationError, match="device"):
        Settings(_env_file=None, device=device)


def test_lines_of_the_file_are_variables_too(tmp_path, monkeypatch):
    lines = "HOWSURE_PORT=1234\nHOWSURE_HOST=::1\nAWS_ACCESS_KEY_ID=own\n"
    (tmp_path / ".env").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # Unset again at the end of the test.
    for name in ("HOWSURE_PORT", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOWSURE_HOST", "localhost")
    found = read_settings(max_processes=3)
    assert (found.port, found.host, found.max_processes) == (1234, "localhost", 3)
    assert os.environ["AWS_ACCESS_KEY_ID"] == "own"


@pytest.mark.process
def test_one_thread_computes_fits(monkeypatch) -> None:
    """OpenBLAS starts a thread for each further processor when it is loaded."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    code = "import service.cli, numpy; print(open('/proc/self/status').read())"
    status = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert b"\nThreads:\t1\n" in status
