"""Too many wrong keys from an address are refused; valid keys from it still pass."""

from contextlib import nullcontext

import pytest

from service.access import failed_attempts
from service.access.failed_attempts import FailedAttempts
from service.errors import TooManyBadKeys


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def sent(
    found: FailedAttempts, times: int, peer: str = "10.0.0.1", key_id: str | None = None
) -> int:
    """Send keys that are none; return how many were only said to be none."""
    passed = 0
    for _ in range(times):
        try:
            found.require_room(peer, key_id)
            found.note(peer, key_id)
        except TooManyBadKeys as error:
            assert 1 <= error.retry_after <= 60  # noqa: PT017 - to be refused is one of two ways
        else:
            passed += 1
    return passed


def test_an_address_may_send_a_limited_number_a_minute() -> None:
    clock = Clock()
    found = FailedAttempts(5, clock=clock)
    assert sent(found, 9) == 5
    assert sent(found, 9, peer="10.0.0.2") == 5
    clock.now += 59
    assert sent(found, 1) == 0
    clock.now += 1
    assert sent(found, 9) == 5


def test_wrong_secrets_of_one_key_are_limited_by_address_and_key() -> None:
    found = FailedAttempts(5, clock=Clock())
    looked_at = 0
    for _ in range(50):
        try:
            found.require_room("10.0.0.1", "theirs")
        except TooManyBadKeys:
            continue
        looked_at += 1
        with pytest.raises(TooManyBadKeys) if looked_at > 5 else nullcontext():
            found.note("10.0.0.1", "theirs")
    assert looked_at == 6
    found.require_room("10.0.0.1", "another")
    found.require_room("10.0.0.2", "theirs")


def test_known_and_unknown_ids_are_refused_alike() -> None:
    """A key that there is and one that there is not are refused at the same attempt."""
    answers = []
    for key_id in (None, "there"):
        found = FailedAttempts(5, clock=Clock())
        sent(found, 4)
        answers.append(sent(found, 9, key_id=key_id))
    assert answers == [1, 1]


def test_an_ipv6_network_counts_as_one_address() -> None:
    found = FailedAttempts(5, clock=Clock())
    assert sum(sent(found, 1, peer=f"2001:db8::{n:x}") for n in range(20)) == 5
    assert sent(found, 1, peer="2001:db8:0:1::1") == 1
    assert sent(found, 1, peer="fe80::1%eth0") == 1
    assert sent(found, 1, peer="no:address") == 1


def test_a_limited_number_of_addresses_is_remembered(monkeypatch) -> None:
    monkeypatch.setattr(failed_attempts, "MOST_REMEMBERED", 10)
    found = FailedAttempts(1, clock=Clock())
    for n in range(100):
        sent(found, 1, peer=str(n), key_id=str(n))
    assert len(found._tried) == 10


def test_without_a_limit_nothing_is_counted() -> None:
    found = FailedAttempts(0)
    assert sent(found, 1000) == 1000
    assert not found._tried
