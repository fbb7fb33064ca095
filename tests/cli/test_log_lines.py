"""What the service writes to standard error while it works."""

import json
import subprocess
import sys

import httpx
import pytest
from howsure_command import ServedProcess

WRITER = """
import asyncio, logging, sys, warnings
import structlog
from service.startup import configure_logging
configure_logging("console")
configure_logging(sys.argv[1])
log = structlog.get_logger("service.test")
log.info("ours", number=1)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("ours_failed")
    logging.getLogger("uvicorn.error").exception("theirs %s", "failed")
logging.getLogger("asyncio").warning("slow\\nsecond line")
logging.getLogger("alembic.runtime.migration").info("not shown")
logging.getLogger("python_multipart.multipart").warning("not shown")
warnings.warn("old")
"""


def test_every_line_of_a_json_run_is_json(tmp_path) -> None:
    served = ServedProcess(tmp_path, log_format="json")
    with served as client:
        answer = client.post(
            "/calibrate",
            content=b"--x\r\nnonsense",
            headers={"Content-Type": "multipart/form-data; boundary=x"},
        )
        assert answer.status_code == httpx.codes.BAD_REQUEST
        files = [("calibration", ("c.npz", b"nothing"))]
        client.post("/calibrate", files=files)
        client.get("/readyz")
        served.process.terminate()
        served.process.wait(60)
    lines = [json.loads(line) for line in served.log.read_text().splitlines()]

    assert {line["level"] for line in lines} <= {"info", "warning", "error"}
    assert any(line["event"] == "answering" for line in lines)
    assert all({"event", "level", "logger", "timestamp"} <= set(line) for line in lines)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_all_that_write_go_one_way(tmp_path, log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER, log_format],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert "not shown" not in done.stderr
    assert "\x1b" not in done.stderr, "colours where there is no terminal"
    if log_format == "json":
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        told = [line["event"] for line in lines]
        assert told[:4] == ["ours", "ours_failed", "theirs failed", "slow\nsecond line"], (
            "once each"
        )
        events = dict(zip(told, lines, strict=True))
        assert events["ours"]["number"] == 1
        assert "ZeroDivisionError" in events["ours_failed"]["exception"]
        assert "ZeroDivisionError" in events["theirs failed"]["exception"]
        assert any("UserWarning: old" in event for event in told)
    else:
        assert "ours_failed" in done.stderr
        assert "theirs failed" in done.stderr
