"""Models served in real children on an event loop of the test's own."""

import asyncio
import gc
from contextlib import asynccontextmanager

import numpy as np
from batch_requests import LIMITS, PATIENT_SECONDS, Futures
from runner_models import rows

from service.runner.model_to_serve import ModelToServe
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServingRoom


class AtWork:
    """Serves models from a pool, and asks them."""

    def __init__(self, pool, *, limits=LIMITS, max_models=3, max_memory=0, bounds=None):
        self.asker = Futures()
        self._queues = {}
        self.bounds = bounds or QueueBounds(max_rows=10_000, max_bytes=2**26)
        self.models = pool.serve(
            limits=limits,
            room=ServingRoom(max_models=max_models, max_memory_bytes=max_memory),
            bounds=self.bounds,
        )

    def ask(self, model, array=None, *, timeout=PATIENT_SECONDS, name="x"):
        request = self.asker.of_rows(rows(1) if array is None else array, name=name)
        self.put(model, request, timeout=timeout)
        return request

    def put(self, model, request, *, timeout=PATIENT_SECONDS):
        now = asyncio.get_running_loop().time()
        self._queues[request] = self.models.submit(model, request, timeout=timeout, now=now)

    def drop(self, request):
        self._queues.pop(request).drop(request)

    def hear(self):
        """Take the errors of those whose end a test does not look at; all have one."""
        for request in self._queues:
            if not request.answered.cancelled():
                request.answered.exception()

    def state(self, model):
        """Return what is said of a model, None if nothing is."""
        named = [state for state in self.models.states() if state.name == model.name]
        return named[0] if named else None

    def loaded(self):
        return [state.name for state in self.models.states() if state.status == "loaded"]


@asynccontextmanager
async def at_work(pool, **options):
    serving = AtWork(pool, **options)
    try:
        yield serving
    finally:
        await serving.models.close()
        serving.hear()


class MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time a test may move on."""

    moved = 0.0

    def time(self):
        return super().time() + self.moved

    def advance(self, seconds):
        self.moved += seconds


def run_loop(body):
    """Run a test's coroutine on a `MovedLoop`; what that complains of is a failure."""
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

    def __call__(self, files, name, *, trial=None, input_name="x", **options):
        key = files.path
        if key not in self._known:
            trial = rows(20) if trial is None else trial
            found = self._pool.inspect(files, top_k=(1, 5), trial={input_name: trial})
            self._known[key] = found.resolved
        return ModelToServe(files=files, resolved=self._known[key], name=name, **options)


def assert_alike(found, expected, *, start=0):
    """Compare answers of a batch with those of a pool, which runs each request alone."""
    rows_of = slice(start, start + len(found.top_classes))
    np.testing.assert_array_equal(found.top_classes, expected.top_classes[rows_of])
    np.testing.assert_allclose(found.top_scores, expected.top_scores[rows_of], rtol=1e-5)
    for name, column in found.uncertainty.items():
        np.testing.assert_allclose(
            column, expected.uncertainty[name][rows_of], rtol=1e-4, atol=1e-6, err_msg=name
        )
