"""Requests to models that are served in real children: together, in time, and independently."""

import asyncio
import os
import signal

import numpy as np
import pytest
from runner_children import is_gone, processor_ticks, wait_until
from runner_models import (
    endless_above,
    linear,
    rows,
    save,
)
from served_requests import (
    Resolving,
    at_work,
    outcome,
    outcomes,
    until,
)

from service.errors import DeadlineExceeded, OnnxModelCrashed


@pytest.fixture(scope="module")
def model(pool, tmp_path_factory):
    return Resolving(pool)(save(tmp_path_factory.mktemp("model"), linear()), "linear")


@pytest.fixture(scope="module")
def endless(pool, tmp_path_factory):
    files = save(tmp_path_factory.mktemp("model"), endless_above(1000.0))
    return Resolving(pool)(files, "endless")


async def test_a_request_whose_timeout_passes_fails_before_its_run_or_in_it(pool, model):
    async with at_work(pool.serve) as work:
        await work.load(model)
        pid = work.state(model).pid
        os.kill(pid, signal.SIGSTOP)
        running = work.ask(model, timeout=4.0)
        await until(lambda: work.models.running)
        waiting = [work.ask(model, timeout=timeout) for timeout in (4.0, 10.0)]
        asyncio.get_running_loop().advance(10.0)
        for request, state in [(running, "ran"), *((one, "waited") for one in waiting)]:
            error = await outcome(request)
            assert isinstance(error, DeadlineExceeded)
            assert state in error.message
        with pytest.raises(DeadlineExceeded):
            work.ask(model, timeout=0.0)
        assert work.models.pending == 0
        os.kill(pid, signal.SIGCONT)
        await work.load(model)
        assert work.state(model).pid == pid


async def test_a_killed_child_fails_only_the_request_that_it_was_running(pool, endless):
    async with at_work(pool.serve) as work:
        await work.load(endless)
        pid = work.state(endless).pid
        ticks = processor_ticks(pid)
        running = work.ask(endless, rows(1) + 2000)
        # A request that it has not read yet does not fail.
        await until(lambda: processor_ticks(pid) > ticks + 10)
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: is_gone(pid))  # the loop does not hear of it
        waiting = [work.ask(endless) for _ in range(3)]
        for answer in await outcomes(waiting):
            assert answer.outputs.top_classes.shape == (1, 10)
        error = await outcome(running)
        assert isinstance(error, OnnxModelCrashed)
        assert "SIGKILL" in error.message
        pid = work.state(endless).pid
        os.kill(pid, signal.SIGKILL)  # an idle one
        assert wait_until(lambda: is_gone(pid))
        assert (await outcome(work.ask(endless))).order


async def test_requests_that_a_killed_child_had_not_read_go_to_the_next(pool, model):
    async with at_work(pool.serve) as work:
        pid, unread = await work.hold(model)
        dropped, behind = work.ask(model), work.ask(model)
        work.drop(dropped)
        os.kill(pid, signal.SIGKILL)
        for answer in await outcomes([unread, behind]):
            assert answer.outputs.top_classes.shape == (1, 10)
        assert work.state(model).pid != pid
        assert work.held() == (0, 0)


async def test_requests_may_be_dropped_in_any_state(pool, model):
    generator = np.random.default_rng(0)
    async with at_work(pool.serve) as work:
        work.drop(work.ask(model))  # the only request, while the model loads
        await until(lambda: work.loaded() == {"linear"})
        kept, dropped = [], []
        for n in range(100):
            request = work.ask(model, rows(int(generator.integers(1, 40)), seed=n))
            (kept if n % 2 else dropped).append(request)
            if n > 20 and generator.random() < 0.5:
                await asyncio.sleep(generator.random() / 200)
            for gone in generator.choice(len(dropped), size=2) if n < 99 else range(len(dropped)):
                if not dropped[gone].answered.done():
                    work.drop(dropped[gone])
                    dropped[gone].answered.cancel()
        for answer in await outcomes(kept):
            assert len(answer.outputs.top_classes)
        await until(lambda: not work.models.running)
        assert work.models.pending == 0
        assert work.held() == (0, 0)
