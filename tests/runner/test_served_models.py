"""Models that are served: loaded when asked for, given up for others, never tried in vain."""

import asyncio
import os
import signal
import threading

import pytest
from batch_requests import outcome, outcomes, until
from models_at_work import Resolving, assert_alike, at_work, run_loop
from runner_children import children, descriptors, is_gone, wait_until
from runner_models import endless_above, linear, rows, save, weights

from service.errors import (
    InferenceFailed,
    InvalidInput,
    InvalidOnnxModel,
    OnnxModelCrashed,
    OnnxModelQuarantined,
    Overloaded,
    TooManyRequests,
)
from service.runner import served_models as module
from service.runner.model_to_serve import NOT_NEEDED
from service.runner.queue_bounds import QueueBounds

LONG = 60.0


@pytest.fixture(scope="module")
def resolve(pool):
    return Resolving(pool)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def make(resolve, folder):
    """Models of their own weights, by number."""

    def made(number, **options):
        path = folder / f"{number}.onnx"
        files = save(folder, linear(weights(seed=number)), name=path.name)
        return resolve(files, str(number), **options)

    return made


def test_a_model_is_loaded_once_however_many_wait(pool, make):
    loads = []

    def rehearse(*_):
        loads.append(1)
        return NOT_NEEDED

    async def body():
        async with at_work(pool) as work:
            model = make(0, rehearse=rehearse)
            requests = [work.ask(model, rows(n % 5 + 1, seed=n)) for n in range(50)]
            assert work.state(model).status == "loading"
            expected = [
                pool.predict(model.files, model.resolved, {"x": rows(n % 5 + 1, seed=n)})
                for n in range(50)
            ]
            for answer, alone in zip(await outcomes(requests), expected, strict=True):
                assert_alike(answer.outputs, alone)
            assert work.state(model).status == "loaded"
            assert len(loads) == 1

    run_loop(body)


def test_the_longest_unused_gives_way_and_none_in_use_does(pool, make, resolve, folder):
    endless = resolve(save(folder, endless_above(1000.0), name="endless.onnx"), "endless")

    async def body():
        async with at_work(pool, max_models=3) as work:
            busy = work.ask(endless, rows(1) + 2000)
            await until(work.models.running)
            for number in (0, 1, 0, 2):
                await outcome(work.ask(make(number)))
            assert set(work.loaded()) == {"endless", "0", "2"}
            await outcome(work.ask(make(0)))
            await outcome(work.ask(make(1)))
            assert set(work.loaded()) == {"endless", "0", "1"}
            assert not busy.answered.done()

    run_loop(body)


def test_who_finds_no_room_waits_for_a_while(pool, make, resolve, folder, monkeypatch):
    monkeypatch.setattr(module, "ROOM_WAIT_SECONDS", 0.2)
    endless = resolve(save(folder, endless_above(1000.0), name="endless.onnx"), "endless")

    async def body():
        async with at_work(pool, max_models=1) as work:
            busy = work.ask(endless, rows(1) + 2000)
            await until(work.models.running)
            error = await outcome(work.ask(make(0)))
            assert type(error) is Overloaded
            assert "busy" in error.message
            waiting = work.ask(make(0))
            work.drop(busy)
            assert not waiting.answered.done()
            assert isinstance(await outcome(waiting), Overloaded)  # its child is still at it

    run_loop(body)


def test_memory_is_kept_within_bounds_but_for_the_last_model(pool, make):
    async def body():
        async with at_work(pool, max_memory=1) as work:
            await outcome(work.ask(make(0)))
            pid = work.state(make(0)).pid
            assert work.state(make(0)).memory_bytes > 2**20
            await outcome(work.ask(make(0)))
            assert work.state(make(0)).pid == pid  # it is not loaded for each request
            await outcome(work.ask(make(1)))
            assert work.loaded() == ["1"]
            await until(lambda: is_gone(pid))

    run_loop(body)


def test_memory_is_given_back_once_a_model_falls_idle(pool, make, resolve, folder):
    endless = resolve(save(folder, endless_above(1000.0), name="endless.onnx"), "endless")

    async def body():
        async with at_work(pool, max_memory=1) as work:
            work.ask(endless, rows(1) + 2000)
            await until(work.models.running)
            await outcome(work.ask(make(0)))
            await until(lambda: work.loaded() == ["endless"])

    run_loop(body)


def test_a_model_that_does_not_load_is_not_tried_in_a_hot_loop(pool, make, folder, monkeypatch):
    monkeypatch.setattr(module, "FIRST_BACK_OFF_SECONDS", LONG)
    broken = make(0).__class__(
        files=save(folder, b"no model", name="broken.onnx"),
        resolved=make(0).resolved,
        name="broken",
    )

    async def body():
        async with at_work(pool) as work:
            first = [work.ask(broken) for _ in range(3)]
            errors = await outcomes(first)
            assert [type(error) for error in errors] == [InvalidOnnxModel] * 3
            for _ in range(50):
                with pytest.raises(InvalidOnnxModel):
                    work.ask(broken)
                await asyncio.sleep(0)
                assert work.state(broken).status == "failed"
            # The same error is raised again and again: it must not keep all who were told.
            depth, trace = 0, errors[0].__traceback__
            while trace is not None:
                depth, trace = depth + 1, trace.tb_next
            assert depth < 10
            asyncio.get_running_loop().advance(LONG)
            assert isinstance(await outcome(work.ask(broken)), InvalidOnnxModel)
            assert isinstance(await outcome(work.ask(make(0))), object)
            assert work.bounds._bytes == 0

    run_loop(body)


@pytest.mark.parametrize(
    ("error", "told"),
    [(InvalidInput("unlike before"), InvalidInput), (ZeroDivisionError("bug"), InferenceFailed)],
)
def test_what_a_rehearsal_raises_is_told_and_the_child_is_closed(pool, make, error, told):
    errors = [error]

    def rehearse(*_):
        if errors:
            raise errors.pop()
        return NOT_NEEDED

    async def body():
        before = set(children())
        async with at_work(pool) as work:
            model = make(0, rehearse=rehearse)
            assert type(await outcome(work.ask(model))) is told
            # One that waits for the next model, and none that was loaded in vain.
            await until(lambda: len(set(children()) - before) <= 1)
            asyncio.get_running_loop().advance(module.FIRST_BACK_OFF_SECONDS)
            assert (await outcome(work.ask(model))).order
            assert work.state(model).error is None

    run_loop(body)


def test_a_rehearsal_runs_rows(pool, make):
    found = []

    def rehearse(run, provider):
        found.append((run({"x": rows(3)}), provider))
        return NOT_NEEDED

    async def body():
        async with at_work(pool) as work:
            model = make(0, rehearse=rehearse)
            await outcome(work.ask(model))
            ((outputs, provider),) = found
            assert provider == "CPUExecutionProvider"
            assert_alike(outputs, pool.predict(model.files, model.resolved, {"x": rows(3)}))

    run_loop(body)


def test_a_child_killed_while_it_loads_costs_an_honest_error(pool, make):
    held, go_on = threading.Event(), threading.Event()

    def rehearse(run, _):
        held.set()
        go_on.wait(20)
        run({"x": rows(1)})
        return NOT_NEEDED

    async def body():
        # One, for to make it writes its file, which is to be read; and it leaves children.
        model = make(0, rehearse=rehearse)
        before = set(children())
        async with at_work(pool) as work:
            waiting = [work.ask(model) for _ in range(3)]
            await asyncio.to_thread(held.wait, 20)
            for process in list(work.models._opener._loading):
                process.kill()
            go_on.set()
            for error in await outcomes(waiting):
                assert type(error) is OnnxModelCrashed
            assert work.models.count_loaded() == 0
        assert wait_until(lambda: len(set(children()) - before) <= 1)

    run_loop(body)


def test_close_lets_everybody_know(pool, make, resolve, folder):
    endless = resolve(save(folder, endless_above(1000.0), name="endless.onnx"), "endless")
    held = threading.Event()

    def rehearse(run, _):
        held.set()
        run({"x": rows(1) + 2000})  # until it is killed
        return NOT_NEEDED

    async def body():
        before = set(children())
        async with at_work(pool, max_models=2) as work:
            running = work.ask(endless, rows(1) + 2000)
            await until(work.models.running)
            behind = work.ask(endless)
            loading = work.ask(
                resolve(endless.files, "loading", rehearse=rehearse, apart="loading")
            )
            await asyncio.to_thread(held.wait, 20)
            no_room = work.ask(make(0))
            await work.models.close()
            for error in await outcomes([running, behind, loading, no_room]):
                assert type(error) is Overloaded
                assert "shutting down" in error.message
            with pytest.raises(Overloaded):
                work.ask(make(0))
            assert len(set(children()) - before) <= 1
            assert work.asker.told == 4

    run_loop(body)


def test_only_so_much_may_wait(pool, make):
    bounds = QueueBounds(max_rows=10, max_bytes=4000)

    async def body():
        async with at_work(pool, bounds=bounds) as work:
            model = make(0)
            large = work.ask(model, rows(30))  # one may wait, however large
            with pytest.raises(TooManyRequests) as caught:
                work.ask(model)
            assert 1 <= caught.value.retry_after <= 60
            await outcome(large)
            await outcomes([work.ask(model, rows(2)) for _ in range(5)])
            requests = [work.ask(model, rows(2)) for _ in range(5)]
            with pytest.raises(TooManyRequests, match="10 rows"):
                work.ask(model)
            for request in requests:
                work.drop(request)
            body_bytes = work.ask(model, rows(120))
            await until(work.models.running)
            with pytest.raises(TooManyRequests, match="bytes"):
                work.ask(model, rows(60))  # what the child is at is held as well
            assert (await outcome(body_bytes)).outputs.top_classes.shape == (120, 5)

    run_loop(body)


def held():
    return descriptors(), threading.active_count(), len(children())


def test_nothing_is_left_of_models_that_were_loaded_and_gave_way(pool, make):
    async def body():
        async with at_work(pool, max_models=1) as work:
            for number in (0, 1):
                await outcome(work.ask(make(number)))
            before = held()
            for _ in range(10):
                for number in (0, 1):
                    await outcome(work.ask(make(number)))
            # A spare child and its threads may have come or gone; of each load something would
            # make twenty.
            await until(
                lambda: all(now < then + 10 for now, then in zip(held(), before, strict=True))
            )

    pool.prepare()
    run_loop(body)


def test_models_that_nobody_asks_for_are_forgotten(pool, make, folder, monkeypatch):
    monkeypatch.setattr(module, "MOST_UNLOADED", 2)
    kind = make(0).__class__

    async def body():
        async with at_work(pool) as work:
            for number in range(5):
                files = save(folder, b"no model", name=f"broken-{number}.onnx")
                model = kind(files=files, resolved=make(0).resolved, name=f"broken-{number}")
                assert isinstance(await outcome(work.ask(model)), InvalidOnnxModel)
            names = [state.name for state in work.models.states()]
            assert names == ["broken-4", "broken-3", "broken-2"]

    run_loop(body)


async def end(work, model, number):
    """End the process of a model that has answered, and wait until that is known."""
    await outcome(work.ask(model))
    pid = work.state(model).pid
    os.kill(pid, number)
    await until(lambda: work.state(model).pid != pid)


def test_a_model_that_ends_three_processes_is_left_alone_for_a_while(pool, make):
    async def body():
        async with at_work(pool) as work:
            for _ in range(2):
                await end(work, make(0), signal.SIGSEGV)
                assert work.state(make(0)).status == "unloaded"
            await end(work, make(0), signal.SIGSEGV)
            with pytest.raises(OnnxModelQuarantined, match="SIGSEGV") as refused:
                work.ask(make(0))
            assert refused.value.retry_after > 0
            assert work.state(make(0)).status == "failed"
            assert (await outcome(work.ask(make(1)))).order
            asyncio.get_running_loop().advance(module.COOL_DOWN_SECONDS)
            assert (await outcome(work.ask(make(0)))).order

    run_loop(body)


def test_who_waits_for_a_model_that_is_left_alone_is_told(pool, make):
    async def body():
        async with at_work(pool) as work:
            for _ in range(2):
                await end(work, make(0), signal.SIGABRT)
            await outcome(work.ask(make(0)))
            pid = work.state(make(0)).pid
            os.kill(pid, signal.SIGSTOP)
            asked = [work.ask(make(0), rows(9)) for _ in range(2)]
            await until(work.models.running)
            asked.append(work.ask(make(0), rows(9)))
            os.kill(pid, signal.SIGABRT)
            os.kill(pid, signal.SIGCONT)
            for error in await outcomes(asked):
                assert isinstance(error, OnnxModelQuarantined | OnnxModelCrashed)
            assert isinstance(await outcome(asked[-1]), OnnxModelQuarantined)
            assert (work.bounds._rows, work.bounds._bytes) == (0, 0)

    run_loop(body)


def test_a_process_that_is_killed_from_outside_is_no_fault_of_its_model(pool, make):
    async def body():
        async with at_work(pool) as work:
            for _ in range(3):
                await end(work, make(0), signal.SIGKILL)
            assert (await outcome(work.ask(make(0)))).order

    run_loop(body)
