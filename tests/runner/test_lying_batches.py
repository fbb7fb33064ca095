"""A child that lies about a batch is killed; only the requests of that batch fail, each once."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from runner_children import is_gone, sockets_and_pipes, wait_until
from runner_models import rows, save
from scripted_child import loaded_model, start_scripted
from served_requests import LIMITS, outcome, outcomes, until, with_children

from service.errors import (
    DeadlineExceeded,
    InferenceFailed,
    OnnxModelCrashed,
    OnnxModelQuarantined,
)
from service.runner.model_to_serve import ModelToServe

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # The server of forks keeps a socket open: it starts before sockets are counted.
    start_scripted("honest").close()
    files = save(tmp_path_factory.mktemp("models"), b"any")
    return ModelToServe(files, loaded_model().resolved, "any")


@asynccontextmanager
async def served(*scripts):
    """Serve from one child after the other, each with its own script; the last are honest."""
    left, started, before = list(scripts), [], sockets_and_pipes()

    def start():
        started.append(start_scripted(left.pop(0) if left else "honest"))
        return started[-1]

    async with with_children(start, has_spare=False) as work:
        work.n_started = lambda: len(started)
        yield work
    assert wait_until(lambda: all(is_gone(process.pid) for process in started))
    assert sockets_and_pipes() <= before  # those of earlier tests may end meanwhile


LIES = ["another sequence", "another kind", "enormous fields", "enormous arrays", "two answers"]
LIES += ["an unknown request", "an unknown failure", "a failure of many lists", "nested fields"]
FAILURES = [(lie, OnnxModelCrashed, "invalid response") for lie in LIES]
FAILURES += [("die when asked", OnnxModelCrashed, "exit status 3"), ("fail", InferenceFailed, "m")]
FAILURES += [("many bytes printed", OnnxModelCrashed, "printed more than")]
FAILURES += [("close the socket when asked", OnnxModelCrashed, "closed its socket")]


@pytest.mark.parametrize(("script", "kind", "words"), FAILURES)
async def test_the_requests_of_a_batch_fail_and_end_the_child(model, script, kind, words):
    async with served(*[script] * 3) as work:
        for n_children in (1, 2, 3):
            for error in await outcomes([work.ask(model) for _ in range(3)]):
                assert type(error) is kind
                assert words in error.message
            assert work.n_started() == n_children
        with pytest.raises(OnnxModelQuarantined):
            work.ask(model)


async def test_waiting_requests_go_to_the_next_child_and_each_opens_one_at_most(model):
    async with served("die when asked", "lie the second time") as work:
        failed = work.ask(model)
        # It may be running for less than a turn of the loop.
        await until(lambda: work.models.running or failed.answered.done())
        waiting = [work.ask(model) for _ in range(3)]
        assert isinstance(await outcome(failed), OnnxModelCrashed)
        for answer in await outcomes(waiting):
            assert answer.outputs.top_scores.shape == (1, 10)
        # The second answer is checked like the first.
        assert isinstance(await outcome(work.ask(model)), OnnxModelCrashed)
        assert (await outcome(work.ask(model))).order == 6
        assert work.n_started() == 3


@pytest.mark.parametrize("script", ["speak unasked", "answer and die"])
async def test_a_child_that_fails_between_requests_fails_none(model, script):
    async with served(script) as work:
        assert (await outcome(work.ask(model))).order == 1
        pid = work.state(model).pid
        await until(lambda: is_gone(pid))
        # The loop may have heard of it or not.
        assert (await outcome(work.ask(model))).order == 2


@pytest.mark.parametrize("script", ["never answer", "half an answer"])
async def test_a_child_that_does_not_finish_its_answer_is_killed_in_time(model, script):
    async with served(script) as work:
        request = work.ask(model)
        await until(lambda: work.models.running)
        asyncio.get_running_loop().advance(2 * LIMITS.run_seconds)
        assert isinstance(await outcome(request), DeadlineExceeded)
        assert (await outcome(work.ask(model))).order == 2


async def test_a_child_that_answers_before_it_has_read_is_killed(model):
    async with served("answer unread") as work:
        large = work.ask(model, rows(100_000))  # more than the socket takes at once
        assert "invalid response" in (await outcome(large)).message
        assert (await outcome(work.ask(model))).order == 2


async def test_a_child_that_talks_on_after_it_has_loaded_a_model_has_not_loaded_it(model):
    async with served("talk on after loading") as work:
        for error in await outcomes([work.ask(model) for _ in range(3)]):
            assert isinstance(error, OnnxModelCrashed)
        with pytest.raises(OnnxModelCrashed):  # it is tried again, but not at once
            work.ask(model)
