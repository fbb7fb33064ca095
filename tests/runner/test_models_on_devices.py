"""Models that are served go to the device where there is room, and leave it."""

import asyncio
import json
import os
import signal

import pytest
from forked_children import SERVER
from runner_children import wait_until
from runner_models import linear, rows, save, weights

from service.runner.child_requests import ChildRequests
from service.runner.devices import Device, Placement
from service.runner.model_to_serve import ModelToServe
from service.runner.pool import RunnerPool
from service.runner.predict_requests import BatchLimits, BatchRequest, body_kind
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.spawner import Spawner

CPU = "CPUExecutionProvider"
# Both load on the CPU; what tells them apart is their reason.
FIRST, SECOND = (Device("cpu", CPU, reason) for reason in ("first", "second"))


class Asker:
    """Waits for the answer to one request."""

    def __init__(self) -> None:
        self.done = asyncio.get_running_loop().create_future()

    def answered(self, answers) -> None:
        self.done.set_result(len(answers))

    def failed(self, _, error) -> None:
        self.done.set_exception(error)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> list[ModelToServe]:
    folder = tmp_path_factory.mktemp("models")
    made = []
    with RunnerPool(device="cpu", threads=1, start_child=SERVER.start_child) as pool:
        for seed in range(3):
            files = save(folder, linear(weights(seed=seed)), name=f"{seed}.onnx")
            found = pool.inspect(files, top_k=(1,), trial={"x": rows(20)})
            made.append(ModelToServe(files, found.resolved, f"model {seed}"))
    return made


def run(test, *, max_models: int = 4, devices=(FIRST, SECOND)) -> None:
    """Run a test on models that are served on two devices, at most so many of them."""

    async def with_models() -> None:
        spawner = Spawner(SERVER.start_child)
        placement = Placement(lambda: devices)
        served = ServedModels(
            spawner,
            ChildRequests(load_timeout=60.0, run_timeout=30.0, max_classes=1000, threads=1),
            placement=placement,
            limits=BatchLimits(max_rows=100, max_bytes=2**20, run_rows=32, run_seconds=30.0),
            room=ServingRoom(max_models=max_models, max_memory_bytes=0),
            bounds=QueueBounds(max_rows=100, max_bytes=2**20),
            answered=lambda *_: None,
        )
        try:
            await test(served, placement)
        finally:
            await served.close()
            spawner.close()

    asyncio.run(with_models())


async def ask(served: ServedModels, model: ModelToServe) -> None:
    asker = Asker()
    body = json.dumps({"calibration": "c", "inputs": rows(2).tolist()}).encode()
    now = asyncio.get_running_loop().time()
    kind = body_kind("application/json", "c")
    request = BatchRequest(asker=asker, kind=kind, body=body, arrived=now)
    served.submit(model, request, timeout=60.0, now=now)
    assert await asker.done == 1


def emptiest(placement: Placement) -> Device:
    found = placement.place("probe", 0)
    placement.remove("probe")
    return found


def test_they_are_spread_and_what_they_take_counts(models) -> None:
    async def test(served, placement) -> None:
        assert emptiest(placement) == FIRST
        await ask(served, models[0])
        assert emptiest(placement) == SECOND
        # One byte there beside it is less than a loaded model takes here.
        placement.place("small", 1)
        assert emptiest(placement) == SECOND
        placement.remove("small")
        await ask(served, models[1])
        placement.resize(models[0].key, 2**40)
        assert emptiest(placement) == SECOND
        placement.resize(models[1].key, 2**41)
        assert emptiest(placement) == FIRST

    run(test)


def test_one_that_gives_way_leaves_its_device(models) -> None:
    async def test(served, placement) -> None:
        await ask(served, models[0])
        await ask(served, models[1])
        await ask(served, models[2])
        # The first model is gone and the third is where it was: the second is alone there.
        placement.resize(models[2].key, 2**40)
        assert emptiest(placement) == SECOND
        placement.remove(models[2].key)
        assert emptiest(placement) == FIRST

    run(test, max_models=2)


def test_one_that_dies_leaves_its_device(models) -> None:
    async def test(served, placement) -> None:
        await ask(served, models[0])
        assert emptiest(placement) == SECOND
        (state,) = served.states()
        os.kill(state.pid, signal.SIGKILL)
        gone = await asyncio.to_thread(wait_until, lambda: emptiest(placement) == FIRST)
        assert gone
        await ask(served, models[0])
        assert emptiest(placement) == SECOND

    run(test)


def test_one_that_does_not_load_leaves_its_device(models) -> None:
    missing = Device("cuda:99", "CUDAExecutionProvider", "it is not there")

    async def test(served, placement) -> None:
        with pytest.raises(Exception, match="cuda:99"):
            await ask(served, models[0])
        assert served.states()[0].status == "failed"
        assert emptiest(placement) == missing

    run(test, devices=(missing, SECOND))
