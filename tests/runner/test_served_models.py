"""Models that are served: loaded when asked for, evicted for others, never tried in vain."""

import asyncio
import os
import signal
import threading
import traceback
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from forked_children import SERVER
from runner_children import StartedChildren, is_gone, wait_until
from runner_models import linear, rows, save, weights
from served_requests import (
    CPU,
    PATIENT_SECONDS,
    Resolving,
    assert_alike,
    at_work,
    outcome,
    outcomes,
    until,
    with_children,
)

from service.errors import (
    InferenceFailed,
    InvalidInput,
    InvalidOnnxModel,
    OnnxModelCrashed,
    OnnxModelQuarantined,
    Overloaded,
)
from service.runner import model_admission
from service.runner import served_models as module
from service.runner.devices import Device, Placement
from service.runner.model_to_serve import NOT_NEEDED


@pytest.fixture(scope="module")
def make(pool, tmp_path_factory):
    """Models of their own weights, by number."""
    folder, resolve = tmp_path_factory.mktemp("models"), Resolving(pool)

    def made(number, *, tenant=None, **options):
        files = save(folder, linear(weights(seed=number)), name=f"{number}.onnx")
        model = resolve(files, str(number), **options)
        return model if tenant is None else replace(model, files=replace(files, tenant=tenant))

    return made


@pytest.fixture
def broken(make, tmp_path):
    """Return a model whose file is none, by number."""

    def made(number):
        files = save(tmp_path, b"no model", name=f"{number}.onnx")
        return replace(make(0), files=files, name=f"broken {number}")

    return made


def advance(seconds):
    asyncio.get_running_loop().advance(seconds)


@asynccontextmanager
async def own_children(**options):
    """Serve models from children that nothing else uses; yield them too."""
    started = StartedChildren()
    async with with_children(started.start_child, **options) as work:
        yield work, started
    assert wait_until(lambda: not started.pids())


async def test_a_model_is_loaded_once_for_all_waiting_requests(pool, make):
    loads = []

    def rehearse(run, provider):
        loads.append((run({"x": rows(3)}), provider))
        return NOT_NEEDED

    async with at_work(pool.serve) as work:
        model = make(0, rehearse=rehearse)
        arrays = [rows(n % 5 + 1, seed=n) for n in range(20)]
        requests = [work.ask(model, array) for array in arrays]
        assert work.state(model).status == "loading"
        for array, answer in zip(arrays, await outcomes(requests), strict=True):
            assert_alike(answer.outputs, pool.predict(model.files, model.resolved, {"x": array}))
        assert work.state(model).status == "loaded"
        ((rehearsed, provider),) = loads
        assert provider == "CPUExecutionProvider"
        assert_alike(rehearsed, pool.predict(model.files, model.resolved, {"x": rows(3)}))


async def test_the_least_recently_used_model_is_evicted_and_no_busy_one(pool, make):
    async with at_work(pool.serve, max_models=3) as work:
        _, busy = await work.hold(make(9))
        await work.load(make(0), make(1), make(0), make(2))
        assert work.loaded() == {"9", "0", "2"}
        assert not busy.answered.done()


async def test_memory_is_kept_within_bounds_except_for_the_last_and_for_busy_models(pool, make):
    async with at_work(pool.serve, max_memory=1) as work:
        await work.load(make(0))
        pid = work.state(make(0)).pid
        assert work.state(make(0)).memory_bytes > 2**20
        await work.load(make(0))
        assert work.state(make(0)).pid == pid  # it is not loaded for each request
        await work.hold(make(9))
        assert work.loaded() == {"9"}
        await until(lambda: is_gone(pid))
        await work.load(make(1))
        await until(lambda: work.loaded() == {"9"})


async def test_a_model_that_does_not_load_is_tried_again_only_after_a_while(pool, make, broken):
    async with at_work(pool.serve) as work:
        model = broken(1)
        errors = await outcomes([work.ask(model) for _ in range(3)])
        assert [type(error) for error in errors] == [InvalidOnnxModel] * 3
        for _ in range(50):
            with pytest.raises(InvalidOnnxModel):
                work.ask(model)
            assert work.state(model).status == "failed"
        # The same error is raised again and again: it must not keep all its callers alive.
        assert len(traceback.extract_tb(errors[0].__traceback__)) < 10
        advance(module.FIRST_BACK_OFF_SECONDS)
        again = work.ask(model)  # accepted
        assert isinstance(await outcome(again), InvalidOnnxModel)
        await work.load(make(0))
        assert work.held() == (0, 0)


async def test_models_that_do_not_load_are_forgotten(pool, broken, monkeypatch):
    monkeypatch.setattr(module, "MOST_UNLOADED", 1)
    async with at_work(pool.serve) as work:
        await work.load(*(broken(number) for number in range(3)))
        assert [state.name for state in work.models.states()] == ["broken 2", "broken 1"]


ERRORS = [(InvalidInput("unlike"), InvalidInput), (ZeroDivisionError("bug"), InferenceFailed)]


@pytest.mark.parametrize(("error", "reported"), ERRORS)
async def test_the_error_of_a_rehearsal_is_reported_and_the_child_closed(make, error, reported):
    errors = [error]

    def rehearse(*_):
        if errors:
            raise errors.pop()
        return NOT_NEEDED

    async with own_children() as (work, children):
        model = make(0, rehearse=rehearse)
        assert type(await outcome(work.ask(model))) is reported
        await until(lambda: len(children.pids()) <= 1)  # a spare one
        advance(module.FIRST_BACK_OFF_SECONDS)
        assert (await outcome(work.ask(model))).order
        assert work.state(model).error is None


async def test_closing_fails_all_requests_and_ends_all_children(make):
    began = threading.Event()

    def rehearse(run, _):
        while True:  # until the child is killed
            run({"x": rows(1)})
            began.set()

    async with own_children(max_models=2) as (work, children):
        _, running = await work.hold(make(9))
        behind = work.ask(make(9))
        model = make(0, rehearse=rehearse)
        waiting = [work.ask(model) for _ in range(3)]
        await asyncio.to_thread(began.wait, 20)
        no_room = work.ask(make(1))
        await work.models.close()
        for error in await outcomes([running, behind, *waiting, no_room]):
            assert type(error) is Overloaded
        with pytest.raises(Overloaded):
            work.ask(make(0))
        assert len(children.pids()) <= 1


async def end_process(work, model, number):
    """End the process of a model that has answered, and wait until that is known."""
    await work.load(model)
    pid = work.state(model).pid
    os.kill(pid, number)
    await until(lambda: work.state(model).pid != pid)


async def test_a_model_that_crashes_three_times_is_quarantined_for_a_while(pool, make, monkeypatch):
    """A process that is killed from outside does not count; to be forgotten does not help."""
    async with at_work(pool.serve) as work:
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGSEGV):
            await end_process(work, make(0), number)
            assert work.state(make(0)).status == "unloaded"
        pid, running = await work.hold(make(0))
        waiting = work.ask(make(0), rows(9))
        os.kill(pid, signal.SIGSEGV)
        os.kill(pid, signal.SIGCONT)
        assert isinstance(await outcome(running), OnnxModelQuarantined | OnnxModelCrashed)
        assert isinstance(await outcome(waiting), OnnxModelQuarantined)
        assert work.held() == (0, 0)
        with pytest.raises(OnnxModelQuarantined, match="SIGSEGV") as refused:
            work.ask(make(0))
        assert refused.value.retry_after > 0
        assert work.state(make(0)).status == "failed"
        monkeypatch.setattr(module, "MOST_UNLOADED", -(10**6))  # forget all at once
        assert (await outcome(work.ask(make(1)))).order
        assert work.state(make(0)) is None
        with pytest.raises(OnnxModelQuarantined):
            work.ask(make(0))
        advance(model_admission.COOL_DOWN_SECONDS)
        assert (await outcome(work.ask(make(0)))).order


@asynccontextmanager
async def flooded(pool, *models):
    """Keep two models busy without a pause; yield the work and the answers to the flood."""
    answers = []

    async def flood(work, model):
        while True:
            answers.append(await outcome(work.ask(model, rows(4)), seconds=PATIENT_SECONDS))

    async with at_work(pool.serve, max_models=2) as work:
        tasks = [asyncio.ensure_future(flood(work, m)) for m in models for _ in range(8)]
        await until(lambda: len(work.loaded()) == 2)
        yield work
        n_before = len(answers)
        await until(lambda: len(answers) >= n_before + 20)
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_tenant_without_models_gets_a_place_of_one_with_two(pool, make):
    models = [make(number, tenant="flooding") for number in (0, 1)]
    async with flooded(pool, *models) as work:
        work.drop(work.ask(make(2, tenant="quiet")))  # the others go on
        for answer in await work.load(*[make(2, tenant="quiet")] * 2):
            assert answer.order


async def test_tenants_with_equally_many_models_keep_them(pool, make):
    async with flooded(pool, make(0, tenant="first"), make(1, tenant="second")) as work:
        waiting = work.ask(make(2, tenant="third"))
        advance(module.ROOM_WAIT_SECONDS)
        assert isinstance(await outcome(waiting), Overloaded)


async def test_a_tenant_with_all_places_but_one_evicts_only_its_own_models(pool, make):
    async with at_work(pool.serve, max_models=3) as work:
        await work.load(make(0, tenant="quiet"))
        for number in range(1, 5):
            await work.load(make(number, tenant="flooding"))
            assert "0" in work.loaded()
        advance(module.KEPT_SECONDS)
        await work.load(make(5, tenant="flooding"))
        assert "0" not in work.loaded()


async def test_a_long_run_ends_for_a_tenant_with_fewer_models(make):
    async with own_children(max_models=2) as (work, _):
        held = [await work.hold(make(number, tenant="slow")) for number in (0, 1)]
        waiting = work.ask(make(2, tenant="quiet"))
        advance(module.LONGEST_TURN_SECONDS)
        assert (await outcome(waiting)).order
        (stopped,) = [request for _, request in held if request.answered.done()]
        assert "another tenant waits" in (await outcome(stopped)).message
        assert len(work.loaded()) == 2


class Devices(Placement):
    """Places models on two devices, and tells which of these is the emptiest."""

    def __init__(self, first=CPU):
        # Both load on the CPU; their reasons tell them apart.
        self.first, self.second = first, replace(CPU, reason="the second")
        super().__init__(lambda: (self.first, self.second))

    def emptiest(self):
        device = self.place("probe", 0)
        self.remove("probe")
        return device


async def test_models_are_spread_by_the_memory_that_they_take(make):
    devices = Devices()
    async with with_children(SERVER.start_child, placement=devices, max_models=2) as work:
        assert devices.emptiest() == devices.first
        await work.load(make(0))
        # One byte on the other device is less than a loaded model takes on this one.
        devices.place("small", 1)
        assert devices.emptiest() == devices.second
        devices.remove("small")
        await work.load(make(1))
        devices.resize(make(1).key, 2**41)
        assert devices.emptiest() == devices.first
        # The third model comes where the first was, which is evicted.
        await work.load(make(2))
        devices.resize(make(2).key, 2**42)
        assert devices.emptiest() == devices.second
        os.kill(work.state(make(2)).pid, signal.SIGKILL)
        await until(lambda: devices.emptiest() == devices.first)


async def test_a_model_that_does_not_load_leaves_its_device(make):
    devices = Devices(Device("cuda:99", "CUDAExecutionProvider", "it is not there"))
    async with with_children(SERVER.start_child, placement=devices) as work:
        assert "cuda:99" in (await outcome(work.ask(make(0)))).message
        assert work.state(make(0)).status == "failed"
        assert devices.emptiest() == devices.first
