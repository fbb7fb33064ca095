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

pytestmark = pytest.mark.process

LOADED = loaded_model()
EXPECTED = output_spec(LOADED.resolved)


@pytest.fixture(scope="module", autouse=True)
def fork_server():
    """Start the server of forks, which keeps a socket open, before sockets are counted."""
    start_scripted("honest").close()


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


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        *((lie, OnnxModelCrashed, "invalid response") for lie in scripted_child.LIES),
        ("die when asked", OnnxModelCrashed, "exit status 3"),
        ("close the socket when asked", OnnxModelCrashed, "closed its socket"),
        ("fail", InferenceFailed, "m"),
    ],
)
async def test_the_requests_of_a_batch_fail_and_end_the_child(script, kind, words):
    async with children(script, "honest") as opened:
        for error in await outcomes([opened.ask() for _ in range(3)]):
            assert type(error) is kind
            assert words in error.message
        assert opened.batcher.is_idle
        assert opened.idle
        assert opened.batcher.child is None
        assert wait_until(lambda: is_gone(opened.pids[0]))
        assert (await outcome(opened.ask())).order == 4
        assert len(opened.pids) == 2


async def test_waiting_requests_go_to_the_next_child_and_each_opens_one_at_most():
    async with children("die when asked", "lie the second time", "honest") as opened:
        failed = opened.ask()
        await until(opened.batcher.running)
        waiting = [opened.ask() for _ in range(3)]
        assert isinstance(await outcome(failed), OnnxModelCrashed)
        for answer in await outcomes(waiting):
            assert answer.outputs.top_scores.shape == (1, 5)
        # The second answer is checked like the first.
        assert isinstance(await outcome(opened.ask()), OnnxModelCrashed)
        assert (await outcome(opened.ask())).order == 6
        assert len(opened.pids) == 3


@pytest.mark.parametrize("script", ["speak unasked", "answer and die"])
async def test_a_child_that_fails_between_requests_fails_none(script):
    async with children(script, "honest") as opened:
        assert (await outcome(opened.ask())).order == 1
        await until(lambda: is_gone(opened.pids[0]))
        # The loop may have heard of it or not.
        assert (await outcome(opened.ask())).order == 2
        assert len(opened.pids) == 2


@pytest.mark.parametrize("script", ["never answer", "half an answer"])
async def test_a_child_that_does_not_finish_its_answer_is_killed_in_time(script):
    async with children(script, "honest") as opened:
        request = opened.ask()
        await until(opened.batcher.running)
        asyncio.get_running_loop().advance(2 * LIMITS.run_seconds)
        assert isinstance(await outcome(request), DeadlineExceeded)
        assert (await outcome(opened.ask())).order == 2


async def test_a_child_that_answers_before_it_has_read_is_killed():
    async with children("answer unread", "honest") as opened:
        large = opened.ask(n_rows=100_000)  # more than the socket takes at once
        assert "invalid response" in (await outcome(large)).message
        assert (await outcome(opened.ask())).order == 2


@pytest.mark.parametrize("script", ["talk on after loading", "nonsense"])
async def test_a_served_model_outlives_a_lying_child(tmp_path, script):
    """One that talks on has not loaded the model; one that lies later is replaced."""
    scripts, started = [script], []

    def start():
        started.append(start_scripted(scripts.pop() if scripts else "honest"))
        return started[-1]

    async with with_children(start) as work:
        model = ModelToServe(save(tmp_path, b"any"), LOADED.resolved, "any")
        for error in await outcomes([work.ask(model) for _ in range(3)]):
            assert isinstance(error, OnnxModelCrashed)
        if script == "nonsense":
            (answer,) = await work.load(model)
            assert answer.outputs.top_scores.shape == (1, 5)
        else:
            with pytest.raises(OnnxModelCrashed):  # it is tried again, but not at once
                work.ask(model)
    assert wait_until(lambda: all(is_gone(process.pid) for process in started))
