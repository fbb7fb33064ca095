"""A child that lies about a batch is killed; only the requests of that batch fail, each once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
import scripted_child
from runner_children import is_gone, sockets_and_pipes, wait_until
from runner_models import rows, save
from scripted_child import loaded_model, start_scripted
from served_requests import (
    LIMITS,
    PATIENT_SECONDS,
    Futures,
    outcome,
    outcomes,
    until,
    with_children,
)

from service.errors import DeadlineExceeded, InferenceFailed, OnnxModelCrashed
from service.runner.batcher import Batcher
from service.runner.child_connection import LoadedChild
from service.runner.model_output import output_spec
from service.runner.model_to_serve import ModelToServe
from service.runner.queue_bounds import QueueBounds

LOADED = loaded_model()
EXPECTED = output_spec(LOADED.resolved)


class Children:
    """Opens one child after the other for a batcher, each with its own script."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.pids, self.idle = [], []
        self.threads = ThreadPoolExecutor(2)
        self.asker = Futures()
        self.batcher = Batcher(
            EXPECTED,
            limits=LIMITS,
            bounds=QueueBounds(max_rows=100, max_bytes=2**24),
            open_child=lambda _: asyncio.ensure_future(self._open()),
            idle=lambda _: self.idle.append(1),
            ended=lambda _: None,
            ran=lambda *_: None,
        )

    async def _open(self):
        process = start_scripted(self.scripts.pop(0))
        self.pids.append(process.pid)
        await asyncio.to_thread(process.wait_ready, 60)
        child = LoadedChild(
            process, LOADED, EXPECTED, device="cpu", memory_bytes=1, threads=self.threads
        )
        self.batcher.opened(child)

    def ask(self, n_rows=1):
        request = self.asker.depends_on_rows(rows(n_rows))
        self.batcher.submit(request, timeout=PATIENT_SECONDS, now=request.arrived)
        return request

    async def advance_past_the_run(self):
        await until(self.batcher.running)
        asyncio.get_running_loop().advance(2 * LIMITS.run_seconds)


@asynccontextmanager
async def children(*scripts):
    before = sockets_and_pipes()
    opened = Children(*scripts)
    try:
        yield opened
        last = opened.batcher.close(InferenceFailed("over"))
        if last is not None:
            last.close()
    finally:
        await asyncio.to_thread(opened.threads.shutdown)
    assert wait_until(lambda: all(is_gone(pid) for pid in opened.pids))
    assert sockets_and_pipes() <= before  # those of earlier tests may end meanwhile


@pytest.mark.parametrize("lie", scripted_child.LIES)
async def test_a_lie_fails_the_batch_and_kills_the_child(lie):
    async with children(lie) as opened:
        for error in await outcomes([opened.ask() for _ in range(3)]):
            assert isinstance(error, OnnxModelCrashed)
            assert "invalid response" in error.message
        assert wait_until(lambda: is_gone(opened.pids[0]))
        assert opened.batcher.is_idle
        assert opened.idle
        assert opened.batcher.child is None


async def test_the_second_answer_is_checked_like_the_first():
    async with children("lie the second time", "honest") as opened:
        assert (await outcome(opened.ask())).order == 1
        assert isinstance(await outcome(opened.ask()), OnnxModelCrashed)
        assert (await outcome(opened.ask())).order == 3


@pytest.mark.parametrize("script", ["speak unasked", "answer and die"])
async def test_a_child_that_fails_between_requests_fails_none(script):
    async with children(script, "honest") as opened:
        assert (await outcome(opened.ask())).order == 1
        await until(lambda: is_gone(opened.pids[0]))
        # The loop may have heard of it or not.
        assert (await outcome(opened.ask())).order == 2
        assert len(opened.pids) == 2


@pytest.mark.parametrize(
    ("script", "words"),
    [("die when asked", "exit status 3"), ("close the socket when asked", "closed its socket")],
)
async def test_a_death_fails_the_batch_and_the_waiting_requests_go_to_the_next_child(script, words):
    async with children(script, "honest") as opened:
        asked = opened.ask()
        await until(opened.batcher.running)
        waiting = [opened.ask() for _ in range(3)]
        error = await outcome(asked)
        assert isinstance(error, OnnxModelCrashed)
        assert words in error.message
        shapes = {answer.outputs.top_scores.shape for answer in await outcomes(waiting)}
        assert shapes == {(1, 5)}


@pytest.mark.parametrize("script", ["never answer", "half an answer"])
async def test_a_child_that_does_not_finish_its_answer_is_killed_in_time(script):
    async with children(script, "honest") as opened:
        request = opened.ask()
        await opened.advance_past_the_run()
        assert isinstance(await outcome(request), DeadlineExceeded)
        assert (await outcome(opened.ask())).order == 2


async def test_a_child_that_answers_before_it_has_read_is_killed():
    async with children("answer unread", "honest") as opened:
        large = opened.ask(n_rows=100_000)  # more than the socket takes at once
        assert "invalid response" in (await outcome(large)).message
        assert (await outcome(opened.ask())).order == 2


async def test_a_failure_of_the_whole_batch_is_reported_and_ends_the_child():
    async with children("fail", "honest") as opened:
        errors = await outcomes([opened.ask() for _ in range(2)])
        assert [type(error) for error in errors] == [InferenceFailed] * 2
        assert (await outcome(opened.ask())).order == 3


async def test_each_request_opens_one_child_at_most():
    async with children(*["die when asked"] * 3) as opened:
        for _ in range(3):
            assert isinstance(await outcome(opened.ask()), OnnxModelCrashed)
        assert len(opened.pids) == 3


@asynccontextmanager
async def served(folder, *scripts):
    """Serve a model from children that load anything, honest ones after those with scripts."""
    left, started = list(scripts), []

    def start():
        started.append(start_scripted(left.pop(0) if left else "honest"))
        return started[-1]

    async with with_children(start) as work:
        yield work, ModelToServe(save(folder, b"any"), LOADED.resolved, "any")
    assert wait_until(lambda: all(is_gone(process.pid) for process in started))


async def test_a_child_that_talks_on_after_loading_has_not_loaded(tmp_path):
    async with served(tmp_path, "talk on after loading") as (work, model):
        for error in await outcomes([work.ask(model) for _ in range(3)]):
            assert isinstance(error, OnnxModelCrashed)
            assert "invalid response" in error.message
        with pytest.raises(OnnxModelCrashed):  # it is tried again, but not at once
            work.ask(model)


async def test_the_next_request_of_a_served_model_goes_to_another_child(tmp_path):
    async with served(tmp_path, "nonsense") as (work, model):
        first, second = await work.load(model, model)
        assert isinstance(first, OnnxModelCrashed)
        assert second.outputs.top_scores.shape == (1, 5)
