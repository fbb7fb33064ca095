"""The uncertainty measures, by name."""

from collections.abc import Iterator, Sequence

from service.core.measures import entropy, margin, neg_log_pmax, neg_log_topk_mass
from service.core.measures.measure import Measure

__all__ = ["MEASURES", "Measure", "column", "columns"]

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        entropy.MEASURE,
        neg_log_pmax.MEASURE,
        neg_log_topk_mass.MEASURE,
        margin.MEASURE,
    )
}


def column(measure: str, k: int) -> str:
    """Return the name under which a measure of the Top-k event is kept: ``neg_log_topk_mass_5``.

    Raises
    ------
    ValueError
        If there is no such measure.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
    return f"{measure}_{k}" if MEASURES[measure].per_event else measure


def columns(top_k: Sequence[int]) -> Iterator[tuple[str, Measure, int]]:
    """Yield each column these events need, once, as (name, measure, k)."""
    for measure in MEASURES.values():
        for k in top_k if measure.per_event else top_k[:1]:
            yield column(measure.name, k), measure, k
