"""Clients that disconnect cost no other client an answer."""

import asyncio

import pytest
from serve.cancellations import cancellations

pytestmark = pytest.mark.slow


LEAVERS = 50


def test_clients_that_stay_are_answered_correctly(served, perceptron) -> None:
    found = asyncio.run(cancellations(served.address, perceptron, leavers=LEAVERS))

    assert found.left.total() >= LEAVERS
    assert set(found.left) == {"close", "reset", "half"}
    assert found.beside.right >= LEAVERS
    assert found.after.right > 0
    for tally in (found.beside, found.after):
        assert (tally.wrong, set(tally.statuses)) == (0, {200}), tally.examples
