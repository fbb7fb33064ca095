"""Calls are retried while the service is overloaded."""

import time

import pytest

from service.errors import InvalidInput, Overloaded, StorageFull
from service.jobs.recording import retry_while_overloaded


class Failing:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self, given: str) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return given


def test_it_is_tried_again_after_a_pause_in_which_who_waits_is_asked() -> None:
    asked: list[float] = []
    call = Failing(Overloaded("busy"), Overloaded("busy"))
    began = time.monotonic()
    assert retry_while_overloaded(call, lambda: asked.append(time.monotonic()))("given") == "given"
    assert call.calls == 3
    assert time.monotonic() - began >= 0.25 + 0.5
    assert len(asked) >= 4


@pytest.mark.parametrize("error", [StorageFull("full"), InvalidInput("wrong")])
def test_what_time_does_not_mend_is_raised_at_once(error) -> None:
    call = Failing(error)
    with pytest.raises(type(error)):
        retry_while_overloaded(call, lambda: None)("given")
    assert call.calls == 1


def test_who_waits_may_give_up() -> None:
    def give_up() -> None:
        raise InterruptedError

    call = Failing(*[Overloaded("busy")] * 9)
    with pytest.raises(InterruptedError):
        retry_while_overloaded(call, give_up)("given")
    assert call.calls == 1
