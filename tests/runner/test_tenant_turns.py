"""A tenant whose models are busy without end leaves a place to others, and loses nothing by it."""

import asyncio
from dataclasses import replace

import pytest
from batch_requests import outcome, until
from models_at_work import Resolving, at_work, run_loop
from runner_models import linear, rows, save, weights

from service.errors import Overloaded

# More than a run takes, so that always some wait.
IN_FLIGHT, ROWS = 8, 4


@pytest.fixture(scope="module")
def make(pool, tmp_path_factory):
    """Models of their own weights, by tenant and number."""
    resolve, folder = Resolving(pool), tmp_path_factory.mktemp("models")

    def made(tenant, number):
        files = save(folder, linear(weights(seed=number)), name=f"{number}.onnx")
        model = resolve(files, f"{tenant}-{number}")
        return replace(model, files=replace(model.files, tenant=tenant))

    return made


class Flood:
    """Asks models without a pause."""

    def __init__(self, work, models):
        self.errors, self.answered = [], 0
        self._work = work
        self._tasks = [
            asyncio.ensure_future(self._ask(model)) for model in models for _ in range(IN_FLIGHT)
        ]

    async def _ask(self, model):
        while True:
            found = await outcome(self._work.ask(model, rows(ROWS)))
            if isinstance(found, Exception):
                self.errors.append(found)
            self.answered += 1

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def test_a_tenant_with_none_finds_a_place_beside_models_that_are_never_idle(pool, make):
    async def body():
        async with at_work(pool, max_models=2) as work:
            flood = Flood(work, [make("flooding", number) for number in (0, 1)])
            await until(lambda: len(work.loaded()) == 2)
            first = await outcome(work.ask(make("quiet", 2)))
            assert not isinstance(first, Exception), first
            again = await outcome(work.ask(make("quiet", 2)))
            assert not isinstance(again, Exception), again
            assert flood.errors == []
            await flood.end()

    run_loop(body)


def test_of_tenants_alike_nobody_gives_way(pool, make, monkeypatch):
    monkeypatch.setattr("service.runner.served_models.ROOM_WAIT_SECONDS", 0.3)

    async def body():
        async with at_work(pool, max_models=2) as work:
            flood = Flood(work, [make("first", 0), make("second", 1)])
            await until(lambda: len(work.loaded()) == 2)
            assert isinstance(await outcome(work.ask(make("third", 2))), Overloaded)
            before = flood.answered
            await until(lambda: flood.answered >= before + 10)
            await flood.end()

    run_loop(body)


def test_one_that_was_to_give_way_for_nobody_goes_on(pool, make):
    """Who wanted its place leaves before it is free."""

    async def body():
        async with at_work(pool, max_models=2) as work:
            flood = Flood(work, [make("flooding", number) for number in (0, 1)])
            await until(lambda: len(work.loaded()) == 2)
            gone = work.ask(make("quiet", 2))
            work.drop(gone)
            before = flood.answered
            await until(lambda: flood.answered >= before + 100)
            assert flood.errors == []
            await flood.end()

    run_loop(body)
