"""Too many wrong keys from an address are refused; valid keys from it still pass."""

from contextlib import suppress
from types import SimpleNamespace

from service.access import failed_attempts
from service.access.failed_attempts import FailedAttempts
from service.errors import TooManyBadKeys


def sent(found: FailedAttempts, times: int, peer: str = "10.0.0.1") -> int:
    """Send keys that are none; return how many were only said to be none."""
    passed = 0
    for _ in range(times):
        with suppress(TooManyBadKeys):
            found.note(peer)
            passed += 1
    return passed


def test_an_address_may_send_a_limited_number_a_minute() -> None:
    clock = SimpleNamespace(now=100.0)
    found = FailedAttempts(5, clock=lambda: clock.now)
    assert sent(found, 9) == 5
    assert sent(found, 9, peer="10.0.0.2") == 5
    clock.now += 59
    assert sent(found, 1) == 0
    clock.now += 1
    assert sent(found, 9) == 5


def test_an_ipv6_network_counts_as_one_address() -> None:
    found = FailedAttempts(5, clock=lambda: 100.0)
    assert sum(sent(found, 1, peer=f"2001:db8::{n:x}") for n in range(20)) == 5
    for peer in ("2001:db8:0:1::1", "fe80::1%eth0", "no:address"):
        assert sent(found, 1, peer=peer) == 1


def test_a_limited_number_of_addresses_is_remembered_and_none_without_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(failed_attempts, "MOST_REMEMBERED", 10)
    found, unlimited = FailedAttempts(1, clock=lambda: 100.0), FailedAttempts(0)
    for n in range(100):
        sent(found, 1, peer=str(n))
    assert len(found._tried) == 10
    assert sent(unlimited, 1000) == 1000
    assert not unlimited._tried
