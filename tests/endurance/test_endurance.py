"""Short forms of `benchmarks/serve_endurance.py`: a served model while clients leave or it dies."""

import asyncio
from collections.abc import Iterator

import pytest
from serve.cancellations import cancellations
from serve.deaths import deaths
from serve.networks import Network, network
from serve.same_answers import same_answers
from serve.server_process import ServerProcess, calibrate, service

pytestmark = pytest.mark.slow

LEAVERS, KILLS = 50, 5
ROWS, MANY_BINS = 400, 10


@pytest.fixture(scope="module")
def perceptron() -> Network:
    return network("mlp")


@pytest.fixture(scope="module")
def served(perceptron: Network) -> Iterator[ServerProcess]:
    """A service in its own process, with a seeded model."""
    with service(threads="1") as server:
        calibrate(server, perceptron)
        yield server


def test_clients_that_stay_are_answered_correctly(served, perceptron) -> None:
    result = asyncio.run(cancellations(served.address, perceptron, leavers=LEAVERS))
    assert result.left.total() >= LEAVERS
    assert set(result.left) == {"close", "reset", "half"}
    assert result.beside.right >= LEAVERS
    assert result.after.right > 0
    for tally in (result.beside, result.after):
        assert (tally.wrong, set(tally.statuses)) == (0, {200}), tally.examples


def test_every_answer_beside_a_death_is_right_or_says_when_to_come_back(served, perceptron) -> None:
    """A killed process of a model costs a request at most one refusal, and no wrong answer."""
    result = asyncio.run(deaths(served, perceptron, kills=KILLS))
    tally = result.tally
    assert len(result.outages) == KILLS
    assert tally.wrong == 0, tally.examples
    assert set(tally.statuses) <= {200, 503}, tally.examples
    assert tally.without_retry_after == 0


def test_a_row_is_answered_alike_alone_and_among_others(served, perceptron) -> None:
    """The same class, bins, probabilities and intervals."""
    result = asyncio.run(same_answers(served.address, perceptron, rows=ROWS))
    tally = result.tally
    assert result.bins >= MANY_BINS, "all rows lie in few bins: this run proves little"
    assert tally.right > ROWS
    assert (tally.wrong, set(tally.statuses)) == (0, {200}), tally.examples
