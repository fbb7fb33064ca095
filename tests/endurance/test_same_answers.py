"""A row gets the same class, bins, probabilities and intervals alone and in a batch."""

import asyncio

import pytest
from serve.same_answers import same_answers

pytestmark = pytest.mark.slow


ROWS = 400
MANY_BINS = 10


def test_alone_and_among_others(served, perceptron) -> None:
    found = asyncio.run(same_answers(served.address, perceptron, rows=ROWS))
    tally = found.tally

    assert found.bins >= MANY_BINS, "all rows lie in few bins: this run proves little"
    assert tally.right > ROWS
    assert (tally.wrong, set(tally.statuses)) == (0, {200}), tally.examples
