"""Which models may load: turns between tenants, and quarantine of models that crash."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from service.errors import OnnxModelCrashed, OnnxModelQuarantined, ServiceError
from service.runner.batcher import Batcher
from service.runner.model_to_serve import ModelToServe

MOST_CRASHES = 3
WITHIN_SECONDS = 180.0
COOL_DOWN_SECONDS = 120.0


class CrashHistory:
    """The times at which a model's processes crashed, broke the protocol, failed or took too long.

    Attributes
    ----------
    quarantine, until
        The reason of the last quarantine, if there was one, and its end.
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST_CRASHES)
        self.quarantine: OnnxModelQuarantined | None = None
        self.until = 0.0

    def add(self, error: ServiceError, now: float) -> OnnxModelQuarantined | None:
        """Add the end of a process; return the reason to quarantine the model, if there is one."""
        if isinstance(error, OnnxModelCrashed) and error.is_from_outside:
            return None
        self._times.append(now)
        if len(self._times) < MOST_CRASHES or now - self._times[0] > WITHIN_SECONDS:
            return None
        self._times.clear()
        self.until = now + COOL_DOWN_SECONDS
        self.quarantine = OnnxModelQuarantined(
            f"The model crashed {MOST_CRASHES} times within {WITHIN_SECONDS:g} s. Retry after "
            f"{COOL_DOWN_SECONDS:g} s. The last crash: {error.message}",
            retry_after=int(COOL_DOWN_SECONDS),
        )
        return self.quarantine


class Placed(Protocol):
    """A model and its queue."""

    model: ModelToServe
    batcher: Batcher


Found = TypeVar("Found", bound=Placed)


def next_to_load(waiting: Sequence[Found], all_models: Iterable[Placed]) -> Found:
    """Return the model whose tenant has the fewest loaded models; of equals, the first."""
    counts = _loaded(all_models)
    return min(waiting, key=lambda placed: counts[_tenant(placed)])


def model_to_evict(waiting: Placed, all_models: Sequence[Found]) -> Found | None:
    """Return the least recently used model of the tenant with most loaded models, for another.

    None if no tenant has at least two more models than the waiting one, since they would then
    evict each other in turn; or if another model is being evicted.
    """
    if any(placed.batcher.is_evicted for placed in all_models):
        return None
    counts = _loaded(all_models)
    with_most = max(counts.values(), default=0)
    if with_most < counts[_tenant(waiting)] + 2:
        return None
    return next(
        placed
        for placed in all_models
        if placed.batcher.child is not None and counts[_tenant(placed)] == with_most
    )


def leaves_one_place(waiting: Placed, all_models: Iterable[Placed], max_models: int) -> bool:
    """Tell whether the tenant of a waiting model has all places but one: others keep theirs."""
    return 1 < max_models <= _loaded(all_models)[_tenant(waiting)] + 1


def _loaded(all_models: Iterable[Placed]) -> Counter[str]:
    return Counter(_tenant(placed) for placed in all_models if placed.batcher.child is not None)


def _tenant(placed: Placed) -> str:
    return placed.model.files.tenant
