"""Killing a model's process costs a request at most one refusal, and no wrong answer."""

import asyncio

import pytest
from serve.deaths import deaths

pytestmark = pytest.mark.slow


KILLS = 5


def test_every_answer_is_right_or_says_when_to_come_back(served, perceptron) -> None:
    found = asyncio.run(deaths(served, perceptron, kills=KILLS))
    tally = found.tally

    assert len(found.outages) == KILLS
    assert tally.wrong == 0, tally.examples
    assert set(tally.statuses) <= {200, 503}, tally.examples
    assert tally.without_retry_after == 0
