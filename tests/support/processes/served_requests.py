"""Requests to served models, and a batch queue in this process."""

import asyncio
import gc
import json
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from request_formats import in_bytes
from runner_models import rows
from tritonclient.utils import np_to_triton_dtype

from howsure.events import HeadOutputs
from service.child.onnx.loading import load, read_files
from service.child.onnx.predict_queue import BatchQueue
from service.child.onnx.watchdog import Watchdog
from service.child.requests.body_decoder import BodyDecoder
from service.child.requests.media_types import NPY
from service.runner.child_requests import ChildRequests
from service.runner.devices import Device, Placement
from service.runner.messages.frames import HEADER, parse_header
from service.runner.messages.onnx_models import serving
from service.runner.messages.predict_batches import (
    Batch,
    SentBodies,
    decode_batch,
    encode_batch,
    encode_result,
)
from service.runner.model_output import output_spec
from service.runner.model_to_serve import ModelToServe
from service.runner.predict_requests import BatchLimits, BatchRequest, body_kind, read_response
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.spawner import Spawner

PATIENT_SECONDS = 600.0
LIMITS = BatchLimits(max_rows=1000, max_bytes=2**22, run_rows=8, run_seconds=PATIENT_SECONDS)
REFERENCE = "demo"


def infer_body(arrays, *, id="one"):  # noqa: A002 - the protocol's word
    inputs = [in_bytes(name, a, np_to_triton_dtype(a.dtype)) for name, a in arrays.items()]
    head = json.dumps({"id": id, "inputs": inputs}).encode()
    return head + b"".join(array.tobytes() for array in arrays.values()), str(len(head))


def json_body(array, *, calibration=REFERENCE, **more):
    return json.dumps({"calibration": calibration, "inputs": array.tolist(), **more}).encode()


@dataclass(frozen=True)
class Answered:
    outputs: HeadOutputs
    order: int


class FutureRequest(BatchRequest, eq=False, kw_only=True):
    answered: asyncio.Future


class Futures:
    """Receives answers as futures; a second answer to a request is an error."""

    def __init__(self):
        self.count = 0

    def answered(self, answers):
        for answer in answers:
            self.count += 1
            outputs = answer.matrix.rows(answer.start, answer.stop).outputs
            answered = Answered(outputs, self.count)
            answer.request.answered.set_result(answered)

    def failed(self, request, error):
        self.count += 1
        request.answered.set_exception(error)

    def request(self, body, media_type=NPY, *, header_length=None, n_rows=1):
        loop = asyncio.get_running_loop()
        kind = body_kind(media_type, REFERENCE, header_length)
        options = {"kind": kind, "body": body, "arrived": loop.time(), "n_rows": n_rows}
        return FutureRequest(asker=self, answered=loop.create_future(), **options)


async def outcome(request, *, seconds=60):
    """Wait for the answer or the error of a request, and return it."""
    async with asyncio.timeout(seconds):
        await asyncio.wait([request.answered])
    return request.answered.exception() or request.answered.result()


async def outcomes(requests):
    return [await outcome(request) for request in requests]


async def until(condition, *, seconds=60):
    """Let the loop turn until a condition comes true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.002)


class AtWork:
    """Sends requests to models that ``serve`` serves, as `RunnerPool.serve`."""

    def __init__(self, serve, *, limits=LIMITS, max_models=3, max_memory=0, bounds=None):
        self.asker = Futures()
        self._queues = {}
        self.bounds = bounds or QueueBounds(max_rows=10_000, max_bytes=2**26)
        self.models = serve(
            limits=limits,
            room=ServingRoom(max_models=max_models, max_memory_bytes=max_memory),
            bounds=self.bounds,
        )

    def ask(self, model, array=None, *, timeout=PATIENT_SECONDS):
        """Send rows as raw tensors after their JSON."""
        array = rows(1) if array is None else array
        body, header_length = infer_body({"x": array})
        options = {"header_length": header_length, "n_rows": len(array)}
        request = self.asker.request(body, "oip", **options)
        self.put(model, request, timeout=timeout)
        return request

    def put(self, model, request, *, timeout=PATIENT_SECONDS):
        now = asyncio.get_running_loop().time()
        self._queues[request] = self.models.submit(model, request, timeout=timeout, now=now)

    def drop(self, request):
        self._queues.pop(request).drop(request)

    async def load(self, *models):
        """Answer one request with each model, one after the other; return the answers."""
        return [await outcome(self.ask(model)) for model in models]

    async def hold(self, model):
        """Stop the process of a model in the middle of a request; return both."""
        await self.load(model)
        pid = self.state(model).pid
        os.kill(pid, signal.SIGSTOP)
        request = self.ask(model)
        await until(lambda: self.models.running)
        return pid, request

    def take_errors(self):
        """Take the errors of requests whose end a test does not look at; all have one."""
        for request in self._queues:
            if not request.answered.cancelled():
                request.answered.exception()

    def state(self, model):
        """Return the reported state of a model, or None."""
        named = [state for state in self.models.states() if state.name == model.name]
        return named[0] if named else None

    def loaded(self):
        return {state.name for state in self.models.states() if state.status == "loaded"}

    def held(self):
        """Return the rows and bytes that count in the bounds of the queue."""
        return self.bounds.rows.taken, self.bounds.bytes.taken


@asynccontextmanager
async def at_work(serve, **options):
    serving = AtWork(serve, **options)
    try:
        yield serving
    finally:
        await serving.models.close()
        serving.take_errors()


CPU = Device("cpu", "CPUExecutionProvider", "said")


@asynccontextmanager
async def with_children(start_child, *, placement=None, has_spare=True, **options):
    """Serve models from children of one's own."""
    spawner = Spawner(start_child)
    if not has_spare:
        spawner.prepare = lambda: None
    serve = partial(
        ServedModels,
        spawner,
        ChildRequests(load_timeout=60.0, run_timeout=60.0, max_classes=1000, threads=1),
        placement=placement or Placement(lambda: [CPU]),
        answered=lambda *_: None,
    )
    try:
        async with at_work(serve, **options) as work:
            yield work
    finally:
        await asyncio.to_thread(spawner.close)


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time a test may advance."""

    moved = 0.0

    def time(self):
        return super().time() + self.moved

    def advance(self, seconds):
        self.moved += seconds


def run_loop(body):
    """Run a test's coroutine on a `MovedLoop`; what the loop reports is a failure."""
    complaints = []

    async def listening():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        await body()
        gc.collect()
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        runner.run(listening())
    assert complaints == []


class Resolving:
    """Inspects model files once, to serve them."""

    def __init__(self, pool):
        self._pool = pool
        self._known = {}

    def __call__(self, files, name, *, trial=None, **options):
        if files.path not in self._known:
            trial = rows(20) if trial is None else trial
            found = self._pool.inspect(files, top_k=(1, 5), trial={"x": trial})
            self._known[files.path] = found.resolved
        return ModelToServe(files=files, resolved=self._known[files.path], name=name, **options)


def assert_alike(found, expected):
    """Compare answers of a batch with those of a pool, which runs each request alone."""
    np.testing.assert_array_equal(found.top_classes, expected.top_classes)
    np.testing.assert_allclose(found.top_scores, expected.top_scores, rtol=1e-5)
    for name, column in found.uncertainty.items():
        np.testing.assert_allclose(
            column, expected.uncertainty[name], rtol=1e-4, atol=1e-6, err_msg=name
        )


WATCHDOG = Watchdog()


def load_here(files, trial, *, passes=(), columns=None):
    """Load a model as a child does; with ``columns`` a second time, for these alone."""
    requests = ChildRequests(load_timeout=1.0, run_timeout=1.0, max_classes=1000, threads=1)
    options = {"top_k": (1, 5), "passes": tuple(passes), "location": "inputs"}
    message = replace(requests.message(files, "cpu"), **options)
    loaded = load(read_files(message.paths, {}), message, trial, WATCHDOG)
    if columns is None:
        return loaded
    narrowed = serving(loaded.found.resolved, [plan.measure for plan in passes], columns)
    message = requests.load(files, narrowed, device="cpu").message
    return load(read_files(message.paths, {}), message, {}, WATCHDOG)


class AskedQueue:
    """Keeps what its parent would: requests, their answers and refusals, the rows of each run."""

    def __init__(self, model, *, run_rows=8, max_rows=1000, max_bytes=2**22):
        decoder = BodyDecoder(model.inputs, ranged=model.spec.inputs)
        self.queue = BatchQueue(model, decoder)
        self.expected = output_spec(model.found.resolved)
        self.limits = {"max_rows": max_rows, "max_bytes": max_bytes, "run_rows": run_rows}
        self.sent, self.answers, self.refusals, self.runs = {}, {}, {}, []
        self._numbers = count(1)
        self._new = []

    def put(self, body, media_type=NPY, *, header_length=None):
        """Let a request go with the next exchange, and return its number."""
        kind, number = body_kind(media_type, REFERENCE, header_length), next(self._numbers)
        options = {"kind": kind, "body": body, "arrived": 0.0, "number": number}
        self._new.append(BatchRequest(asker=None, **options))
        return number

    def put_rows(self, **arrays):
        body, header_length = infer_body(arrays)
        return self.put(body, "oip", header_length=header_length)

    def exchange(self, dropped=()):
        """Ask once; return the numbers of those that were answered or refused."""
        new, self._new = self._new, []
        for number in dropped:
            del self.sent[number]
        self.sent |= {request.number: request for request in new}
        batch = Batch(
            sent=[_sent(request) for request in new],
            dropped=list(dropped),
            each_run=30.0,
            **self.limits,
        )
        bodies = [request.body for request in new]
        _, fields, body = frame_parts(encode_batch(batch, bodies, sequence=1, budget_ms=30_000))
        report, words = self.queue.exchange(decode_batch(fields), body)
        self.runs.append(len(words))
        parts = frame_parts(encode_result(report, words, sequence=1))
        result = read_response(*parts, self.expected)
        answers, refused = result.assign(self.sent, max_rows=self.limits["max_rows"])
        done = {
            answer.request.number: answer.matrix.rows(answer.start, answer.stop).outputs
            for answer in answers
        }
        self.answers |= done
        self.refusals |= {request.number: error for request, error in refused}
        return {*done, *(request.number for request, _ in refused)}

    def all(self):
        """Ask until nothing is left, and return the answers."""
        self.exchange()
        while self.sent:
            self.exchange()
        return self.answers


def _sent(request):
    kind, size = request.kind, len(request.body)
    return SentBodies(
        request.number, kind.media_type, size, kind.reference, header_length=kind.header_length
    )


def frame_parts(buffers):
    """Return the header of a frame, its fields and its arrays."""
    frame = b"".join(buffers)
    header = parse_header(frame[: HEADER.size])
    end = HEADER.size + header.fields_bytes
    return header, frame[HEADER.size : end], frame[end:]
