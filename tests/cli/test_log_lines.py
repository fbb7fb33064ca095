"""What the service writes to standard error while it works."""

import json
import logging
import warnings

import pytest
import structlog
from howsure_command import restored_process

from service.startup import configure_logging


def write_lines(log_format: str) -> None:
    """Log in each way that the service and its libraries have."""
    logging.captureWarnings(capture=False)
    configure_logging("console")
    configure_logging(log_format)
    log = structlog.get_logger("service.test")
    log.info("ours", number=1)
    try:
        1 / 0  # noqa: B018 - it raises
    except ZeroDivisionError:
        log.exception("ours_failed")
        logging.getLogger("uvicorn.error").exception("theirs %s", "failed")
    logging.getLogger("asyncio").warning("slow\nsecond line")
    logging.getLogger("alembic.runtime.migration").info("not shown")
    logging.getLogger("python_multipart.multipart").warning("not shown")
    warnings.warn("old", stacklevel=1)
    logging.captureWarnings(capture=False)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_all_that_write_go_one_way(capfd, log_format: str) -> None:
    with restored_process(), warnings.catch_warnings():
        warnings.simplefilter("default")
        write_lines(log_format)
    text = capfd.readouterr().err

    assert "not shown" not in text
    assert "\x1b" not in text, "colours where there is no terminal"
    assert "ours_failed" in text
    assert "theirs failed" in text
    if log_format == "json":
        ours, ours_failed, *theirs, warned = [json.loads(line) for line in text.splitlines()]
        assert (ours["event"], ours["number"]) == ("ours", 1)
        assert "ZeroDivisionError" in ours_failed["exception"]
        assert [line["event"] for line in theirs] == ["theirs failed", "slow\nsecond line"]
        assert "ZeroDivisionError" in theirs[0]["exception"]
        assert "UserWarning: old" in warned["event"]
