"""Calls are retried while the service is overloaded."""

import time
from collections.abc import Callable

import pytest

from service.errors import InvalidInput, Overloaded, StorageFull
from service.jobs.recording import retry_while_overloaded


def failing(*errors: Exception) -> Callable[[str], str]:
    """Return a call that raises these, one at a time, and then succeeds."""
    left = list(errors)

    def call(given: str) -> str:
        if left:
            raise left.pop(0)
        return given

    return call


def test_it_is_tried_again_after_a_pause_in_which_who_waits_is_asked() -> None:
    asked: list[float] = []
    call = failing(Overloaded("busy"), Overloaded("busy"))
    began = time.monotonic()
    assert retry_while_overloaded(call, lambda: asked.append(time.monotonic()))("given") == "given"
    assert time.monotonic() - began >= 0.25 + 0.5
    assert len(asked) >= 4


@pytest.mark.parametrize("error", [StorageFull("full"), InvalidInput("wrong")])
def test_what_time_does_not_mend_is_raised_at_once(error) -> None:
    with pytest.raises(type(error)):
        retry_while_overloaded(failing(error), lambda: None)("given")
