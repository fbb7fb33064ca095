"""Costly requests of one tenant do not stop the answers to another."""

import httpx
import pytest
from worst_delay import measured

pytestmark = pytest.mark.slow

# Far more than a busy machine adds; a parser that stops the event loop took seconds.
WATCHDOG_SECONDS = 1.0


FEW = {"measures": ["neg_log_pmax", "entropy", "margin"], "folds": 2, "lookup": "step"}


def test_costly_documents(tmp_path) -> None:
    options = {"samples": 2000, "sets": False, "idle_seconds": 1.0}
    found = measured(tmp_path, only="^import|&…", **options, **FEW)
    assert found.wrong == 0
    assert {delay.status for delay in found.found} == {
        httpx.codes.OK,
        httpx.codes.CREATED,
        httpx.codes.UNPROCESSABLE_ENTITY,
    }
    late = {d.name: d.worst for d in found.found if d.worst > WATCHDOG_SECONDS}
    assert not late
