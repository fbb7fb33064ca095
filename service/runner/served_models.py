"""The models that answer predictions: loaded when first asked, let go when others need the room."""

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from service.errors import (
    DeadlineExceeded,
    InferenceFailed,
    OnnxModelCrashed,
    OnnxModelQuarantined,
    Overloaded,
    ServiceError,
)
from service.runner.batcher import Batcher
from service.runner.child_connection import LoadedChild
from service.runner.devices import LatePlacement
from service.runner.model_loading import ModelOpener, OpenedModel
from service.runner.model_to_serve import ModelToServe, ProviderParity, ServedModelState, Status
from service.runner.predict_requests import BatchLimits, BatchRequest
from service.runner.questions import Questions
from service.runner.queue_bounds import QueueBounds
from service.runner.slots import ALL_BUSY, CLOSED
from service.runner.spawner import Spawner

MOST_ENDS = 3
WITHIN_SECONDS = 180.0
COOL_DOWN_SECONDS = 120.0


class Ends:
    """When a model's processes died, answered nonsense or had to be killed for their time."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST_ENDS)

    def ended(self, error: ServiceError, now: float) -> OnnxModelQuarantined | None:
        """Note an end; return why the model is to be left alone, if it is."""
        if not isinstance(error, OnnxModelCrashed | DeadlineExceeded):
            return None
        if isinstance(error, OnnxModelCrashed) and error.is_from_outside:
            return None
        self._times.append(now)
        if len(self._times) < MOST_ENDS or now - self._times[0] > WITHIN_SECONDS:
            return None
        self._times.clear()
        return OnnxModelQuarantined(
            f"This ONNX model is left alone for a while: its process ended {MOST_ENDS} times "
            f"within {WITHIN_SECONDS:g} s. The last time: {error.message}",
            retry_after=int(COOL_DOWN_SECONDS),
        )


class Placed(Protocol):
    """A model, and its queue."""

    model: ModelToServe
    batcher: Batcher


Found = TypeVar("Found", bound=Placed)


def next_wanting(wanting: Sequence[Found], all_models: Iterable[Placed]) -> Found:
    """Return the model of the tenant that has the fewest loaded; of equals, who has waited most."""
    counts = _loaded(all_models)
    return min(wanting, key=lambda placed: counts[_tenant(placed)])


def who_gives_way(wanting: Placed, all_models: Sequence[Found]) -> Found | None:
    """Return a busy model of the tenant that has most loaded, for one of a tenant with fewer.

    None if nobody has at least two more, for then both would only take the place from each other;
    or if one gives way by now. It is the model that was longest not asked for.
    """
    if any(placed.batcher.is_giving_way for placed in all_models):
        return None
    counts = _loaded(all_models)
    least = counts[_tenant(wanting)] + 2
    with_most = max(counts.values(), default=0)
    if with_most < least:
        return None
    return next(
        placed
        for placed in all_models
        if placed.batcher.child is not None and counts[_tenant(placed)] == with_most
    )


def _loaded(all_models: Iterable[Placed]) -> Counter[str]:
    return Counter(_tenant(placed) for placed in all_models if placed.batcher.child is not None)


def _tenant(placed: Placed) -> str:
    return placed.model.files.tenant


# A model that does not load is not tried again for so long.
FIRST_BACK_OFF_SECONDS = 1.0
LONGEST_BACK_OFF_SECONDS = 60.0
# So long a model waits for another one to fall idle.
PATIENCE_SECONDS = 10.0
# So many models that are not loaded are remembered, to say what became of them.
MOST_UNLOADED = 64

log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Served:
    """A model's queue, and what was loaded last."""

    model: ModelToServe
    batcher: Batcher
    used: float
    failures: int = 0
    not_before: float = 0.0
    error: ServiceError | None = None
    ends: Ends = field(default_factory=Ends)
    parity: ProviderParity | None = None
    patience: asyncio.TimerHandle | None = None


@dataclass(frozen=True)
class ServingRoom:
    """How many models may be loaded, and the memory that all of them may take; 0 is any."""

    max_models: int
    max_memory_bytes: int


class ServedModels:
    """One batcher a model; safe to use on one event loop.

    Parameters
    ----------
    placement
        Where models go; asked in a thread.
    """

    def __init__(
        self,
        spawner: Spawner,
        questions: Questions,
        *,
        placement: LatePlacement,
        limits: BatchLimits,
        room: ServingRoom,
        bounds: QueueBounds,
        answered: Callable[[str, int, float], None],
    ) -> None:
        self._opener = ModelOpener(spawner, questions, placement=placement, answered=answered)
        self._placement = self._opener.placement
        self._limits = limits
        self._room = room
        self._bounds = bounds
        self._answered = answered
        self._loop = asyncio.get_running_loop()
        self._served: OrderedDict[Hashable, _Served] = OrderedDict()
        self._wanting: list[_Served] = []
        self._is_too_large = False
        self._closed = False

    def submit(
        self, model: ModelToServe, request: BatchRequest, *, timeout: float, now: float
    ) -> Batcher:
        """Put a request in its model's queue; return the queue, to drop the request from.

        ``now`` is the event loop's time.

        Raises
        ------
        TooManyRequests
            If too much waits already.
        ServiceError
            If the model did not load a moment ago.
        """
        if self._closed:
            raise Overloaded(CLOSED)
        served = self._served.get(model.key) or self._serve(model)
        # The files of what is asked for now are at hand; those of an earlier asker may not be.
        served.model = model
        served.used = now
        self._served.move_to_end(model.key)
        if served.error is not None and now < served.not_before:
            # Without the ways that it took before: they would be kept as long as it is.
            raise served.error.with_traceback(None)
        served.batcher.submit(request, timeout=timeout, now=now)
        return served.batcher

    def forget_failure(self, model: ModelToServe) -> None:
        """Try a model that did not load again at once: its files are others by now."""
        served = self._served.get(model.key)
        if served is not None:
            served.failures, served.error = 0, None

    def count_loaded(self) -> int:
        """Return how many models are loaded."""
        return sum(served.batcher.child is not None for served in list(self._served.values()))

    def pending(self) -> int:
        """Return how many requests wait for a run."""
        return sum(served.batcher.pending() for served in list(self._served.values()))

    def running(self) -> int:
        """Return how many requests the children are at."""
        return sum(served.batcher.running() for served in list(self._served.values()))

    def states(self) -> list[ServedModelState]:
        """Return what there is to say of each model, the one used last first."""
        return [self._state(served) for served in reversed(self._served.values())]

    async def close(self) -> None:
        """Kill all children; who still waits gets `Overloaded`."""
        self._closed = True
        error = Overloaded(CLOSED)
        children = [served.batcher.close(error) for served in self._served.values()]
        self._served.clear()
        for served in self._wanting:
            _lose_patience(served)
        self._wanting.clear()
        for child in children:
            self._close_later(child)
        await self._opener.close()

    def _serve(self, model: ModelToServe) -> _Served:
        self._forget_some()
        batcher = Batcher(
            model.expected,
            limits=self._limits,
            bounds=self._bounds,
            open_child=partial(self._wanted, model),
            idle=partial(self._fell_idle, model),
            ended=partial(self._ended, model),
            ran=self._ran,
        )
        self._served[model.key] = _Served(model, batcher, self._loop.time())
        return self._served[model.key]

    def _ended(self, model: ModelToServe, error: ServiceError) -> ServiceError | None:
        """Leave a model alone whose processes end again and again."""
        served = self._served[model.key]
        reason = served.ends.ended(error, self._loop.time())
        if reason is not None:
            log.warning("%s is left alone: %s", served.model.name, reason)
            served.error, served.not_before = reason, self._loop.time() + COOL_DOWN_SECONDS
        return reason

    def _ran(self, n_rows: int, seconds: float) -> None:
        self._answered("predict", n_rows, seconds)

    def _wanted(self, model: ModelToServe, batcher: Batcher) -> None:
        """Load a model, once there is room for it."""
        self._wanting.append(self._served[model.key])
        self._has_room(batcher)

    def _fell_idle(self, model: ModelToServe, batcher: Batcher) -> None:
        if batcher.child is None:
            self._placement.left(model.key)
        if self._is_too_large:
            self._fit_memory()
        self._has_room(batcher)
        if batcher.is_giving_way:
            # Who it was for has found another place, or waits no more.
            batcher.go_on()

    def _forget_some(self) -> None:
        """Forget models that are not loaded and that nobody waits for, but for the last few."""
        unloaded = [
            key
            for key, served in self._served.items()
            if served.batcher.child is None and served.batcher.is_idle
        ]
        for key in unloaded[:-MOST_UNLOADED]:
            del self._served[key]

    def _has_room(self, _: Batcher) -> None:
        while self._wanting and self._make_room():
            served = next_wanting(self._wanting, self._served.values())
            self._wanting.remove(served)
            _lose_patience(served)
            self._opener.open(served.model).add_done_callback(partial(self._opened, served))
        for served in self._wanting:
            if served.patience is None:
                served.patience = self._loop.call_later(PATIENCE_SECONDS, self._no_room_for, served)

    def _make_room(self) -> bool:
        """Let go of idle models, longest unused first, until there is room for one more."""
        while self._is_full(self.count_loaded() + self._opener.count() + 1, 0):
            if not self._evict_one():
                self._have_one_give_way()
                return False
        return True

    def _have_one_give_way(self) -> None:
        """Have a tenant whose models are busy without end leave a place to one that has fewer."""
        models = list(self._served.values())
        given = who_gives_way(next_wanting(self._wanting, models), models)
        if given is not None:
            log.info("%s gives way to another tenant's model", given.model.name)
            given.batcher.give_way()

    def _is_full(self, n_models: int, n_bytes: int) -> bool:
        room = self._room
        return n_models > room.max_models or bool(
            room.max_memory_bytes and n_bytes > room.max_memory_bytes
        )

    def _evict_one(self) -> bool:
        for key, served in self._served.items():
            batcher = served.batcher
            if batcher.child is not None and (batcher.is_idle or batcher.has_given_way):
                log.info("unloading %s, for another model", served.model.name)
                self._close_later(batcher.unload())
                self._placement.left(key)
                if batcher.is_idle:
                    del self._served[key]
                else:
                    batcher.go_on()
                return True
        return False

    def _close_later(self, child: LoadedChild | None) -> None:
        if child is not None:
            self._opener.closing.submit(child.close)

    def _no_room_for(self, served: _Served) -> None:
        served.patience = None
        if served in self._wanting:
            self._wanting.remove(served)
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
            served.batcher.not_opened(error)  # of the model it says nothing
        elif isinstance(error, ServiceError):
            self._failed(served, error)
        else:
            log.error("%s did not load", served.model.name, exc_info=error)
            self._failed(served, InferenceFailed("The ONNX model could not be loaded."))
        self._has_room(served.batcher)

    def _attach(self, served: _Served, opened: OpenedModel) -> None:
        served.failures, served.error, served.parity = 0, None, opened.parity
        self._placement.moved(served.model.key, opened.memory_bytes)
        served.batcher.opened(
            LoadedChild(
                opened.process,
                opened.found,
                served.model.expected,
                device=opened.device,
                memory_bytes=opened.memory_bytes,
                threads=self._opener.closing,
            )
        )
        self._fit_memory()

    def _fit_memory(self) -> None:
        """Let go of idle models while all take too much; the last may take what it takes."""
        self._is_too_large = False
        while self.count_loaded() > 1 and self._is_full(0, self._memory()):
            if not self._evict_one():
                self._is_too_large = True  # all are in use: again when one falls idle
                return

    def _memory(self) -> int:
        children = (served.batcher.child for served in self._served.values())
        return sum(child.memory_bytes for child in children if child is not None)

    def _failed(self, served: _Served, error: ServiceError) -> None:
        wait = min(FIRST_BACK_OFF_SECONDS * 2.0**served.failures, LONGEST_BACK_OFF_SECONDS)
        served.failures += 1
        served.error, served.not_before = error, self._loop.time() + wait
        log.warning("%s did not load (%s); next try in %g s", served.model.name, error, wait)
        served.batcher.not_opened(error)

    def _state(self, served: _Served) -> ServedModelState:
        child = served.batcher.child
        return ServedModelState(
            name=served.model.name,
            sha256=served.model.files.sha256,
            status=_status(served),
            error=served.error,
            provider=None if child is None else child.found.provider,
            device=None if child is None else child.device,
            memory_bytes=0 if child is None else child.memory_bytes,
            pid=None if child is None else child.pid,
            pending=served.batcher.pending(),
            seconds_unused=self._loop.time() - served.used,
            parity=None if child is None else served.parity,
        )


def _lose_patience(served: _Served) -> None:
    if served.patience is not None:
        served.patience.cancel()
        served.patience = None


def _status(served: _Served) -> Status:
    if served.batcher.child is not None:
        return "loaded"
    if not served.batcher.is_idle:
        return "loading"
    return "unloaded" if served.error is None else "failed"
