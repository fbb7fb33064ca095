"""The models that answer predictions: loaded on the first request, evicted for others."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from service.errors import InferenceFailed, Overloaded, ServiceError
from service.lru_cache import LruCache
from service.runner.batcher import Batcher
from service.runner.child_connection import LoadedChild
from service.runner.child_requests import ChildRequests
from service.runner.devices import Placement
from service.runner.loaded_models import ALL_BUSY
from service.runner.model_admission import (
    CrashHistory,
    leaves_one_place,
    model_to_evict,
    next_to_load,
)
from service.runner.model_loading import ModelOpener, OpenedModel
from service.runner.model_to_serve import ModelToServe, ServedModelState, Status
from service.runner.predict_requests import BatchLimits, BatchRequest
from service.runner.queue_bounds import QueueBounds
from service.runner.spawner import CLOSED, Spawner

# After a failed load the next try has to wait this long; the time doubles with each failure.
FIRST_BACK_OFF_SECONDS = 1.0
LONGEST_BACK_OFF_SECONDS = 60.0
# How long a model waits for room.
ROOM_WAIT_SECONDS = 10.0
# A tenant that has all places but one evicts no model of another that was used in this time.
KEPT_SECONDS = 600.0
# After it the run of a model ends if a tenant waits that has fewer models loaded.
LONGEST_TURN_SECONDS = 3.0
TURN_OVER = (
    f"The model's run was stopped after {LONGEST_TURN_SECONDS:g} s, because another tenant waits "
    "for a place among the loaded models. Retry later, or send fewer rows."
)
# The number of models that are not loaded whose state is kept.
MOST_UNLOADED = 64
# The number of models whose crashes are known.
MOST_CRASHED = 1000

log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Served:
    """A model, its queue, and the result of its last load."""

    model: ModelToServe
    batcher: Batcher
    used: float
    failures: int = 0
    not_before: float = 0.0
    error: ServiceError | None = None
    room_wait: asyncio.TimerHandle | None = None
    evicted_at: float = 0.0


@dataclass(frozen=True)
class ServingRoom:
    """The number of loaded models, and the memory they may take together; 0 means no limit."""

    max_models: int
    max_memory_bytes: int


class ServedModels:
    """One batcher for each model, on one event loop.

    Parameters
    ----------
    placement
        Chooses the devices of models; called in a thread.
    """

    def __init__(
        self,
        spawner: Spawner,
        requests: ChildRequests,
        *,
        placement: Placement,
        limits: BatchLimits,
        room: ServingRoom,
        bounds: QueueBounds,
        answered: Callable[[str, int, float], None],
    ) -> None:
        self._opener = ModelOpener(spawner, requests, placement=placement, answered=answered)
        self._placement = self._opener.placement
        self._limits = limits
        self._room = room
        self.bounds = bounds
        self._answered = answered
        self._loop = asyncio.get_running_loop()
        self._served: OrderedDict[Hashable, _Served] = OrderedDict()
        # They outlive the models, which may be forgotten.
        self._crashes: LruCache[Hashable, CrashHistory] = LruCache(MOST_CRASHED)
        self._waiting: list[_Served] = []
        self._is_too_large = False
        self._closed = False

    def submit(
        self, model: ModelToServe, request: BatchRequest, *, timeout: float, now: float
    ) -> Batcher:
        """Put a request in its model's queue; return the queue, which can drop the request.

        ``now`` is the event loop's time.

        Raises
        ------
        TooManyRequests
            If the queue is full.
        ServiceError
            If the model failed to load a short time ago.
        """
        if self._closed:
            raise Overloaded(CLOSED)
        served = self._served.get(model.key) or self._serve(model)
        # The files of this request exist; those of an earlier one may be deleted.
        served.model = model
        served.used = now
        self._served.move_to_end(model.key)
        if served.error is not None and now < served.not_before:
            # The traceback would keep the frames of all earlier callers alive.
            raise served.error.with_traceback(None)
        served.batcher.submit(request, timeout=timeout, now=now)
        return served.batcher

    def count_loaded(self) -> int:
        """Return the number of loaded models."""
        return sum(served.batcher.child is not None for served in list(self._served.values()))

    @property
    def pending(self) -> int:
        """Return the number of requests that wait for a run."""
        return sum(served.batcher.pending() for served in list(self._served.values()))

    @property
    def running(self) -> int:
        """Return the number of requests that the children are processing."""
        return sum(served.batcher.running() for served in list(self._served.values()))

    def states(self) -> list[ServedModelState]:
        """Return the state of each model, the most recently used first."""
        return [self._state(served) for served in reversed(self._served.values())]

    async def close(self) -> None:
        """Kill all children; requests that wait fail with `Overloaded`."""
        self._closed = True
        error = Overloaded(CLOSED)
        children = [served.batcher.close(error) for served in self._served.values()]
        self._served.clear()
        for served in self._waiting:
            _stop_waiting(served)
        self._waiting.clear()
        for child in children:
            self._close_later(child)
        await self._opener.close()

    def _serve(self, model: ModelToServe) -> _Served:
        self._forget_some()
        batcher = Batcher(
            model.spec,
            limits=self._limits,
            bounds=self.bounds,
            open_child=partial(self._request_load, model),
            idle=partial(self._became_idle, model),
            ended=partial(self._ended, model),
            ran=partial(self._answered, "predict"),
        )
        self._served[model.key] = served = _Served(model, batcher, self._loop.time())
        history = self._crashes.get(model.key)
        if history is not None:
            served.error, served.not_before = history.quarantine, history.until
        return served

    def _ended(self, model: ModelToServe, error: ServiceError) -> ServiceError | None:
        """Quarantine a model whose processes crash repeatedly."""
        history = self._crashes.get_or_load(model.key, CrashHistory)
        reason = history.add(error, self._loop.time())
        if reason is not None:
            log.warning("%s is quarantined: %s", model.name, reason)
            served = self._served[model.key]
            served.error, served.not_before = reason, history.until
        return reason

    def _request_load(self, model: ModelToServe, batcher: Batcher) -> None:
        """Load a model when there is room for it."""
        self._waiting.append(self._served[model.key])
        self._load_waiting(batcher)

    def _became_idle(self, model: ModelToServe, batcher: Batcher) -> None:
        if batcher.child is None:
            self._placement.remove(model.key)
        if self._is_too_large:
            self._fit_memory()
        self._load_waiting(batcher)
        if batcher.is_evicted:
            # The model it was evicted for has found room, or nobody waits for it any more.
            batcher.resume()

    def _forget_some(self) -> None:
        """Forget models that are not loaded and have no requests, except the last few."""
        unloaded = [
            key
            for key, served in self._served.items()
            if served.batcher.child is None and served.batcher.is_idle
        ]
        for key in unloaded[:-MOST_UNLOADED]:
            del self._served[key]

    def _load_waiting(self, _: Batcher) -> None:
        while self._waiting and self._make_room():
            served = next_to_load(self._waiting, self._served.values())
            self._waiting.remove(served)
            _stop_waiting(served)
            self._opener.open(served.model).add_done_callback(partial(self._opened, served))
        for served in self._waiting:
            if served.room_wait is None:
                served.room_wait = self._loop.call_later(ROOM_WAIT_SECONDS, self._no_room, served)

    def _make_room(self) -> bool:
        """Evict idle models, least recently used first, until there is room for one more."""
        while self._is_full(self.count_loaded() + self._opener.count() + 1, 0):
            waiting = next_to_load(self._waiting, self._served.values())
            is_alone = leaves_one_place(waiting, self._served.values(), self._room.max_models)
            if not self._evict_one(only=waiting.model.files.tenant if is_alone else None):
                self._evict_busy_one()
                return False
        return True

    def _evict_busy_one(self) -> None:
        """Evict a busy model after its run, for a tenant that has fewer models."""
        models = list(self._served.values())
        evicted = model_to_evict(next_to_load(self._waiting, models), models)
        if evicted is not None:
            log.info("evicting %s for another tenant's model", evicted.model.name)
            evicted.batcher.evict()
            evicted.evicted_at = self._loop.time()
            self._loop.call_later(LONGEST_TURN_SECONDS, self._end_turn, evicted, evicted.evicted_at)

    def _end_turn(self, served: _Served, evicted_at: float) -> None:
        """Stop the run of a model that is still being evicted since then."""
        batcher = served.batcher
        if batcher.is_evicted and served.evicted_at == evicted_at and not self._closed:
            log.info("stopping the run of %s for another tenant's model", served.model.name)
            self._close_later(batcher.stop_run(Overloaded(TURN_OVER)))
            self._placement.remove(served.model.key)
            batcher.resume()
            self._load_waiting(batcher)

    def _is_full(self, n_models: int, n_bytes: int) -> bool:
        room = self._room
        return n_models > room.max_models or bool(
            room.max_memory_bytes and n_bytes > room.max_memory_bytes
        )

    def _evict_one(self, only: str | None = None) -> bool:
        """Evict an idle model: of one tenant, or of any tenant if it was not used for long."""
        since = self._loop.time() - KEPT_SECONDS
        for key, served in self._served.items():
            batcher = served.batcher
            if only not in (None, served.model.files.tenant) and served.used > since:
                continue
            if batcher.child is not None and (batcher.is_idle or batcher.can_be_unloaded):
                log.info("evicting %s for another model", served.model.name)
                self._close_later(batcher.unload())
                self._placement.remove(key)
                if batcher.is_idle:
                    del self._served[key]
                else:
                    batcher.resume()
                return True
        return False

    def _close_later(self, child: LoadedChild | None) -> None:
        if child is not None:
            self._opener.closing.submit(child.close)

    def _no_room(self, served: _Served) -> None:
        served.room_wait = None
        if served in self._waiting:
            self._waiting.remove(served)
            served.batcher.not_opened(Overloaded(ALL_BUSY))

    def _opened(self, served: _Served, opening: "asyncio.Future[OpenedModel]") -> None:
        error = opening.exception()
        if self._closed:
            if error is None:
                self._opener.closing.submit(opening.result().process.close)
            return
        if error is None:
            self._attach(served, opening.result())
        elif isinstance(error, Overloaded):
            served.batcher.not_opened(error)  # not the fault of the model
        elif isinstance(error, ServiceError):
            self._failed(served, error)
        else:
            log.error("%s did not load", served.model.name, exc_info=error)
            self._failed(served, InferenceFailed("The ONNX model could not be loaded."))
        self._load_waiting(served.batcher)

    def _attach(self, served: _Served, opened: OpenedModel) -> None:
        served.failures, served.error = 0, None
        self._placement.resize(served.model.key, opened.memory_bytes)
        served.batcher.opened(
            LoadedChild(
                opened,
                served.model.spec,
                threads=self._opener.closing,
                readers=self._opener.reading,
            )
        )
        self._fit_memory()

    def _fit_memory(self) -> None:
        """Evict idle models while all take too much memory; the last one always stays."""
        self._is_too_large = False
        while self.count_loaded() > 1 and self._is_full(0, self._memory()):
            if not self._evict_one():
                self._is_too_large = True  # all are in use: repeated when one becomes idle
                return

    def _memory(self) -> int:
        children = (served.batcher.child for served in self._served.values())
        return sum(child.opened.memory_bytes for child in children if child is not None)

    def _failed(self, served: _Served, error: ServiceError) -> None:
        wait = min(FIRST_BACK_OFF_SECONDS * 2.0**served.failures, LONGEST_BACK_OFF_SECONDS)
        served.failures += 1
        served.error, served.not_before = error, self._loop.time() + wait
        log.warning("%s did not load (%s); next try in %g s", served.model.name, error, wait)
        served.batcher.not_opened(error)

    def _state(self, served: _Served) -> ServedModelState:
        child = served.batcher.child
        opened = None if child is None else child.opened
        return ServedModelState(
            name=served.model.name,
            sha256=served.model.files.sha256,
            status=_status(served),
            error=served.error,
            provider=None if opened is None else opened.found.provider,
            device=None if opened is None else opened.device,
            memory_bytes=0 if opened is None else opened.memory_bytes,
            pid=None if opened is None else opened.process.pid,
            pending=served.batcher.pending(),
            seconds_unused=self._loop.time() - served.used,
            parity=None if opened is None else opened.parity,
        )


def _stop_waiting(served: _Served) -> None:
    if served.room_wait is not None:
        served.room_wait.cancel()
        served.room_wait = None


def _status(served: _Served) -> Status:
    if served.batcher.child is not None:
        return "loaded"
    if not served.batcher.is_idle:
        return "loading"
    return "unloaded" if served.error is None else "failed"
