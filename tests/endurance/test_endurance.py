"""A short form of `benchmarks/serve_endurance.py`: a served model's process dies under load."""

import asyncio

import pytest
from serve.deaths import deaths
from serve.networks import network
from serve.server_process import calibrate, service

pytestmark = pytest.mark.slow

KILLS = 3


def test_every_answer_beside_a_death_is_right_or_says_when_to_come_back() -> None:
    """A killed process of a model costs a request at most one refusal, and no wrong answer."""
    perceptron = network("mlp")
    with service(threads="1") as server:
        calibrate(server, perceptron)
        result = asyncio.run(deaths(server, perceptron, kills=KILLS))
    tally = result.tally
    assert len(result.outages) == KILLS
    assert tally.wrong == 0, tally.examples
    assert set(tally.statuses) <= {200, 503}, tally.examples
    assert tally.without_retry_after == 0
