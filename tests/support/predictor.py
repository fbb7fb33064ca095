"""What answers predictions, on an event loop of its own, without HTTP."""

import asyncio
import json
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from storage_rows import tenant_of

from service.http.worker_threads import Lane
from service.predictions.oip_statistics import Statistics
from service.predictions.prediction_request import PredictionOptions, PredictionRequest
from service.predictions.service import PredictionService
from service.runner.predict_requests import BatchLimits
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.workspace import Workspace


class FuturePrediction(PredictionRequest, eq=False, kw_only=True):
    answered: Future

    def done(self, answer):
        self.answered.set_result(json.loads(answer.body))

    def failed(self, error):
        self.answered.set_exception(error)


class Predictor:
    """Asks like a client whose body names the calibration."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        predicting: PredictionService,
        models: ServedModels,
        lane: Lane,
        tenant_id: uuid.UUID,
    ) -> None:
        self._tenant_id = tenant_id
        self._loop = loop
        self._predicting = predicting
        self._lane = lane
        self.models = models

    def ask(self, reference: str, rows: Any, *, kind: str = "inputs") -> dict:
        """Return the answer; what it failed with is raised."""
        return self.begin(reference, rows, kind=kind).result(60)

    def begin(
        self, reference: str, rows: Any, *, kind: str = "inputs", timeout: float = 60.0
    ) -> "Future[dict]":
        """Ask and do not wait."""
        answered: Future[dict] = Future()
        body = json.dumps({"calibration": reference, kind: rows}).encode()

        def begin() -> None:
            asked = FuturePrediction(
                asker=self._predicting,
                body=body,
                tenant_id=self._tenant_id,
                arrived=self._loop.time(),
                options=PredictionOptions("application/json", None, "json", timeout),
                timeout=timeout,
                answered=answered,
            )
            self._predicting.begin(asked)

        self._loop.call_soon_threadsafe(begin)
        return answered

    def hold_lane(self, until: threading.Event) -> None:
        """Keep one thread busy, or one place in the queue for one."""
        asyncio.run_coroutine_threadsafe(self._lane.run(until.wait), self._loop)
        self.settle()

    def settle(self) -> None:
        """Wait until the loop has done all that it was asked to before."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._loop.call_soon, done.set)
        done.wait()


@contextmanager
def predictor_of(workspace: Workspace, *, max_models: int = 1) -> Iterator[Predictor]:
    """Answer predictions of a workspace until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def on_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), loop).result(60)

    async def opened() -> tuple[PredictionService, ServedModels, Lane]:
        lane = Lane("predictions", threads=2, queue=2)
        models = workspace.runners.serve(
            limits=BatchLimits(max_rows=1000, max_bytes=2**20, run_rows=128, run_seconds=60.0),
            room=ServingRoom(max_models=max_models, max_memory_bytes=0),
            bounds=QueueBounds(max_rows=4096, max_bytes=2**20),
        )
        predicting = PredictionService(
            workspace,
            models,
            statistics=Statistics(),
            in_thread=lane.run,
        )
        return predicting, models, lane

    try:
        predicting, models, lane = on_loop(opened)
        try:
            yield Predictor(loop, predicting, models, lane, tenant_of(workspace.database))
        finally:
            on_loop(predicting.close)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
