"""A child that lies about a batch is killed; who was in the batch is told once, and nobody else."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import lying_batches
import pytest
from batch_requests import LIMITS, PATIENT_SECONDS, ChangedLimits, Futures, outcome, outcomes, until
from lying_children import start_lying
from runner_children import descriptors, is_gone, wait_until
from runner_models import rows, save
from slow_cases import quick

from service.errors import DeadlineExceeded, InferenceFailed, OnnxModelCrashed
from service.graph.description import OnnxModelDescription, OutputChoice, TensorSpec
from service.runner.batcher import Batcher
from service.runner.child_connection import LoadedChild
from service.runner.child_requests import ChildRequests
from service.runner.devices import Device, Placement
from service.runner.messages.convert import to_fields
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.model_output import output_spec
from service.runner.model_to_serve import ModelToServe
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.spawner import Spawner

ROWS = rows(1)
LOADED = LoadedOnnxModel(
    description=OnnxModelDescription(
        inputs=(TensorSpec("x", "float32", (None, 6)),),
        outputs=(TensorSpec("y", "float32", None),),
        opset=17,
        ir_version=8,
        class_labels=None,
        external_files=(),
        fixed_batch=None,
    ),
    output=OutputChoice("y", "logits", "y", "said", 10),
    top_k=(1, 5),
    provider="CPUExecutionProvider",
    versions={},
)
EXPECTED = output_spec(LOADED.resolved)


class Children:
    """Opens one child after the other for a batcher, each of which behaves in its own way."""

    def __init__(self, *ways, limits=LIMITS):
        self.ways = list(ways)
        self.pids, self.idle = [], []
        self.threads = ThreadPoolExecutor(2)
        self.asker = Futures()
        self.bounds = QueueBounds(max_rows=100, max_bytes=2**24)
        self.batcher = Batcher(
            EXPECTED,
            limits=limits,
            bounds=self.bounds,
            open_child=lambda _: asyncio.ensure_future(self._open()),
            idle=lambda _: self.idle.append(1),
            ended=lambda _: None,
            ran=lambda *_: None,
        )

    async def _open(self):
        process = await asyncio.to_thread(self._start, self.ways.pop(0))
        self.pids.append(process.pid)
        self.batcher.opened(
            LoadedChild(
                process, LOADED, EXPECTED, device="cpu", memory_bytes=1, threads=self.threads
            )
        )

    def _start(self, how):
        process = start_lying(lying_batches.__file__, how, EXPECTED.n_top, len(EXPECTED.columns))
        process.wait_ready(60)
        return process

    def ask(self, *, timeout=PATIENT_SECONDS, array=ROWS):
        request = self.asker.of_rows(array)
        self.batcher.submit(request, timeout=timeout, now=request.arrived)
        return request


@asynccontextmanager
async def children(*ways, **options):
    before = descriptors()
    opened = Children(*ways, **options)
    try:
        yield opened
        last = opened.batcher.close(InferenceFailed("over"))
        if last is not None:
            last.close()
    finally:
        await asyncio.to_thread(opened.threads.shutdown)
    assert wait_until(lambda: all(is_gone(pid) for pid in opened.pids))
    assert descriptors() == before


# The header, the frame, its fields, its rows, what is refused, the numbers and what is left out.
ONE_OF_A_KIND = (
    "another sequence",
    "no frame",
    "an enormous matrix",
    "fields of another layout",
    "two answers",
    "fewer rows than parts",
    "an unknown number",
    "refused at length",
    "more rows than it began with",
    "a class too high",
    "an uncertainty that is no number",
    "a request forgotten",
    "wanted at length",
    "failed without a reason",
)


@pytest.mark.parametrize("how", quick({how: how for how in lying_batches.LIES}, *ONE_OF_A_KIND))
def test_a_lie_costs_one_honest_error_and_the_child(how):
    async def body():
        async with children(how) as opened:
            requests = [opened.ask() for _ in range(3)]
            for error in await outcomes(requests):
                assert isinstance(error, OnnxModelCrashed)
                assert "invalid response" in error.message
            assert wait_until(lambda: is_gone(opened.pids[0]))
            assert opened.batcher.is_idle
            assert opened.idle  # whoever waits for room is told
            assert opened.batcher.child is None

    asyncio.run(body())


def test_the_second_answer_is_looked_at_like_the_first():
    async def body():
        async with children("lies the second time", "honest") as opened:
            assert (await outcome(opened.ask())).order == 1
            assert isinstance(await outcome(opened.ask()), OnnxModelCrashed)
            assert (await outcome(opened.ask())).order == 3

    asyncio.run(body())


@pytest.mark.parametrize("how", ["speaks unasked", "dies after its answer"])
def test_what_a_child_does_unasked_costs_nobody_anything(how):
    async def body():
        async with children(how, "honest") as opened:
            assert (await outcome(opened.ask())).order == 1
            await until(lambda: is_gone(opened.pids[0]))
            # The loop may have heard of it or not.
            assert (await outcome(opened.ask())).order == 2
            assert len(opened.pids) == 2

    asyncio.run(body())


@pytest.mark.parametrize(
    ("how", "words"),
    [("dies when asked", "exit status 3"), ("closes its socket when asked", "closed its socket")],
)
def test_a_death_fails_what_was_asked_and_the_rest_goes_to_the_next(how, words):
    async def body():
        async with children(how, "honest") as opened:
            asked = opened.ask()
            await until(opened.batcher.running)
            waiting = [opened.ask() for _ in range(3)]
            error = await outcome(asked)
            assert isinstance(error, OnnxModelCrashed)
            assert words in error.message
            assert [answer.outputs.top_scores.shape for answer in await outcomes(waiting)] == [
                (1, 5)
            ] * 3

    asyncio.run(body())


@pytest.mark.parametrize("how", ["never answers", "half an answer"])
def test_silence_ends_in_time(how):
    async def body():
        limits = ChangedLimits()
        async with children(how, "honest", limits=limits) as opened:
            with limits.impatient(0.2):
                error = await outcome(opened.ask())
            assert isinstance(error, DeadlineExceeded)
            assert "0.2 s" in error.message
            assert (await outcome(opened.ask())).order == 2

    asyncio.run(body())


def test_a_child_that_answers_before_it_has_read_is_killed():
    async def body():
        async with children("answers without reading", "honest") as opened:
            body = rows(100_000)  # more than the socket takes at once
            assert "invalid response" in (await outcome(opened.ask(array=body))).message
            assert (await outcome(opened.ask())).order == 2

    asyncio.run(body())


def test_a_failure_of_the_whole_batch_is_told_and_ends_the_child():
    async def body():
        async with children("fails as a whole", "honest") as opened:
            errors = await outcomes([opened.ask() for _ in range(2)])
            assert [type(error) for error in errors] == [InferenceFailed] * 2
            assert (await outcome(opened.ask())).order == 3

    asyncio.run(body())


def test_children_that_never_answer_anything_are_not_tried_for_ever():
    async def body():
        async with children(*["dies when asked"] * 3) as opened:
            for _ in range(3):
                assert isinstance(await outcome(opened.ask()), OnnxModelCrashed)
            assert len(opened.pids) == 3

    asyncio.run(body())


@asynccontextmanager
async def served(*ways):
    """Serve models from children that load anything, each of which behaves in its own way."""
    left, started = list(ways), []

    def start():
        how = left.pop(0) if left else "honest"
        found = json.dumps(to_fields(LOADED))
        arguments = (how, EXPECTED.n_top, len(EXPECTED.columns), found)
        started.append(start_lying(lying_batches.__file__, *arguments))
        return started[-1]

    spawner = Spawner(start)
    models = ServedModels(
        spawner,
        ChildRequests(load_timeout=60.0, run_timeout=60.0, max_classes=100, threads=1),
        placement=Placement(lambda: [Device("cpu", "CPUExecutionProvider", "said")]),
        limits=LIMITS,
        room=ServingRoom(max_models=2, max_memory_bytes=0),
        bounds=QueueBounds(max_rows=100, max_bytes=2**24),
        answered=lambda *_: None,
    )
    try:
        yield models, started
    finally:
        await models.close()
        await asyncio.to_thread(spawner.close)
    assert wait_until(lambda: all(is_gone(process.pid) for process in started))


def test_a_child_that_talks_on_when_it_has_loaded_has_not_loaded(tmp_path):
    model = ModelToServe(save(tmp_path, b"any"), LOADED.resolved, "any")

    async def body():
        asker = Futures()
        async with served("talks on when it has loaded") as (models, started):
            requests = [asker.of_rows(ROWS) for _ in range(3)]
            for request in requests:
                models.submit(model, request, timeout=PATIENT_SECONDS, now=request.arrived)
            for error in await outcomes(requests):
                assert isinstance(error, OnnxModelCrashed)
                assert "invalid response" in error.message
            # It is tried again, but not at once.
            again = asker.of_rows(ROWS)
            with pytest.raises(OnnxModelCrashed):
                models.submit(model, again, timeout=PATIENT_SECONDS, now=again.arrived)
            assert is_gone(started[0].pid)
            assert len(started) <= 2

    asyncio.run(body())


def test_a_lying_child_of_a_served_model_gives_way_to_an_honest_one(tmp_path):
    model = ModelToServe(save(tmp_path, b"any"), LOADED.resolved, "any")

    async def body():
        asker = Futures()
        async with served("a class too high") as (models, _):
            found = []
            for _ in range(2):
                request = asker.of_rows(ROWS)
                models.submit(model, request, timeout=PATIENT_SECONDS, now=request.arrived)
                found.append(await outcome(request))
            assert isinstance(found[0], OnnxModelCrashed)
            assert found[1].outputs.top_scores.shape == (1, 5)

    asyncio.run(body())
