"""Calls are retried while the service is overloaded."""

from types import SimpleNamespace

import pytest

from service.errors import InvalidInput, Overloaded, StorageFull
from service.jobs import recording


def failing(*errors):
    """Return a call that raises these, one at a time, and then succeeds."""
    left = list(errors)

    def call(argument):
        if left:
            raise left.pop(0)
        return argument

    return call


def test_it_is_tried_again_after_pauses_in_which_the_caller_may_give_up(monkeypatch) -> None:
    now, beats = [0.0], []
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds)
    )
    monkeypatch.setattr(recording, "time", clock)
    call = failing(Overloaded("busy"), Overloaded("busy"))
    retried = recording.retry_while_overloaded(call, lambda: beats.append(now[0]))
    assert retried("argument") == "argument"
    assert now == [pytest.approx(0.25 + 0.5)]
    assert len(beats) >= 4

    def give_up():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        recording.retry_while_overloaded(failing(Overloaded("busy")), give_up)("argument")


@pytest.mark.parametrize("error", [StorageFull("full"), InvalidInput("wrong")])
def test_what_time_does_not_mend_is_raised_at_once(error) -> None:
    with pytest.raises(type(error)):
        recording.retry_while_overloaded(failing(error), lambda: None)("argument")
