"""The uncertainty measures, by name."""

from collections.abc import Iterator, Sequence

from service.core.measures import energy, entropy, margin, neg_log_pmax, neg_log_topk_mass
from service.core.measures.graph_output import (
    MAX_OUTPUT_NAME,
    OUTPUT,
    is_output,
    output_column,
)
from service.core.measures.measure import Measure
from service.core.measures.perturbation import Perturbation, prefix_column

__all__ = [
    "DEFAULT_MEASURES",
    "MAX_OUTPUT_NAME",
    "MEASURES",
    "OUTPUT",
    "PERTURBATIONS",
    "SUPPLIED",
    "Measure",
    "Perturbation",
    "check_measures",
    "column",
    "columns",
    "is_known",
    "is_output",
    "is_perturbation",
    "is_supplied",
    "output_column",
    "prefix_column",
]

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        entropy.MEASURE,
        neg_log_pmax.MEASURE,
        neg_log_topk_mass.MEASURE,
        margin.MEASURE,
        energy.MEASURE,
    )
}
DEFAULT_MEASURES = ("entropy", "neg_log_pmax", "neg_log_topk_mass", "margin")
SUPPLIED = "supplied:"
PERTURBATIONS: dict[str, Perturbation] = {
    perturbation.name: perturbation
    for perturbation in (
        Perturbation("dropout_variance", averages=True),
        Perturbation("last_layer_dropout_variance", averages=True),
        Perturbation("ensemble_variance", averages=True),
        Perturbation("gradient_norm", averages=False),
    )
}


def is_supplied(measure: str) -> bool:
    """Tell whether a measure is a column that came with the samples: ``supplied:<name>``."""
    return measure.startswith(SUPPLIED) and len(measure) > len(SUPPLIED)


def is_perturbation(measure: str) -> bool:
    """Tell whether a measure runs the model more than once."""
    return measure in PERTURBATIONS


def is_known(measure: str) -> bool:
    """Tell whether there can be such a measure: a registered, supplied or output one."""
    return (
        measure in MEASURES
        or is_perturbation(measure)
        or is_supplied(measure)
        or is_output(measure)
    )


def column(measure: str, k: int) -> str:
    """Return the name under which a measure of the Top-k event is kept.

    ``neg_log_topk_mass_5``, ``entropy``; ``supplied_<name>`` for ``supplied:<name>``, and for
    ``output:<name>`` what `output_column` says. One that runs the model more than once is kept
    under its own name.

    Raises
    ------
    ValueError
        If there is no such measure.
    """
    if is_supplied(measure):
        return f"supplied_{measure.removeprefix(SUPPLIED)}"
    if is_output(measure):
        return output_column(measure.removeprefix(OUTPUT))
    if is_perturbation(measure):
        return measure
    if measure not in MEASURES:
        raise ValueError(
            f"measure must be one of {', '.join((*MEASURES, *PERTURBATIONS))}, {SUPPLIED}<name> "
            f"or {OUTPUT}<name>, not {measure!r}"
        )
    return f"{measure}_{k}" if MEASURES[measure].per_event else measure


def columns(top_k: Sequence[int], *, logits: bool = False) -> Iterator[tuple[str, Measure, int]]:
    """Yield each column these events have, once, as (name, measure, k).

    ``logits`` tells whether the model gives logits: measures that need them are left out where it
    gives probabilities.
    """
    for measure in MEASURES.values():
        if measure.needs_logits and not logits:
            continue
        for k in top_k if measure.per_event else top_k[:1]:
            yield column(measure.name, k), measure, k


def check_measures(measures: Sequence[str], *, logits: bool) -> None:
    """Check that a model's answer can have these measures.

    Raises
    ------
    ValueError
        If one needs logits, and the model gives probabilities.
    """
    for name in measures:
        if name in MEASURES and MEASURES[name].needs_logits and not logits:
            raise ValueError(
                f"{name} needs logits: of probabilities the logits are known but for a constant, "
                f"and {name} is that constant"
            )
