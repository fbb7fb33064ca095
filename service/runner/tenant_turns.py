"""Whose model is loaded next, and whose gives way for it: tenants take turns at the places."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from service.runner.batcher import Batcher
from service.runner.model_to_serve import ModelToServe


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
