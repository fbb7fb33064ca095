"""The uncertainty measures, by name."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from howsure.statistics.measures import single_pass
from howsure.statistics.measures.measure import (
    PLAIN_NAME,
    Measure,
    MultiPassMeasure,
    SinglePassMeasure,
)

SINGLE_PASS_MEASURES: dict[str, SinglePassMeasure] = {
    measure.name: measure
    for measure in (
        SinglePassMeasure("entropy", single_pass.entropy),
        SinglePassMeasure("neg_log_pmax", single_pass.neg_log_pmax),
        SinglePassMeasure("neg_log_topk_mass", single_pass.neg_log_topk_mass, per_event=True),
        SinglePassMeasure("margin", single_pass.margin),
        SinglePassMeasure("energy", single_pass.energy, needs_logits=True),
    )
}
LEARNED = "learned"
DEFAULT_MEASURES = (LEARNED, "entropy", "neg_log_pmax", "neg_log_topk_mass", "margin")
MULTI_PASS_MEASURES: dict[str, MultiPassMeasure] = {
    measure.name: measure
    for measure in (
        MultiPassMeasure("dropout_variance", has_mean_prediction=True),
        MultiPassMeasure("last_layer_dropout_variance", has_mean_prediction=True, in_graph=True),
        MultiPassMeasure("ensemble_variance", has_mean_prediction=True),
        MultiPassMeasure("gradient_norm", has_mean_prediction=False),
        MultiPassMeasure("jacobian_norm", has_mean_prediction=False, needs_logits=True),
    )
}
MEASURE_NAMES = (LEARNED, *SINGLE_PASS_MEASURES, *MULTI_PASS_MEASURES)
SUPPLIED = "supplied:"
OUTPUT = "output:"
# The score of a set of pairs, with its sign changed: the only measure of such a set.
SCORE = "score"
# A measure's name is kept in a column of 100 characters.
MAX_OUTPUT_NAME = 100 - len(OUTPUT)


@lru_cache(maxsize=1024)
def parse_measure(text: str) -> Measure:
    """Return the measure of this name: a registered, supplied or output one.

    ``supplied:<name>`` has 1 to 50 ASCII letters, digits and underscores. ``output:<name>`` names
    an output of the graph: 1 to 93 printable characters.

    Raises
    ------
    ValueError
        If there is no such measure.
    """
    single = SINGLE_PASS_MEASURES.get(text)
    if single is not None:
        return Measure("single_pass", text, single.needs_logits, single.per_event, in_graph=True)
    if text == LEARNED:
        return Measure("learned", text, per_event=True, in_graph=True)
    if text == SCORE:
        return Measure("supplied", text)
    several = MULTI_PASS_MEASURES.get(text)
    if several is not None:
        return Measure("multi_pass", text, several.needs_logits, in_graph=several.in_graph)
    prefix, colon, name = text.partition(":")
    if prefix + colon == SUPPLIED and PLAIN_NAME.fullmatch(name):
        return Measure("supplied", name)
    if prefix + colon == OUTPUT and 1 <= len(name) <= MAX_OUTPUT_NAME and name.isprintable():
        return Measure("output", name, in_graph=True)
    raise ValueError(
        f"measure must be one of {', '.join(MEASURE_NAMES)}, {SUPPLIED}<name> or {OUTPUT}<name>, "
        f"not {text!r}"
    )


def column(measure: str, k: int) -> str:
    """Return the column of a measure for the Top-k event: see `Measure.column`.

    Raises
    ------
    ValueError
        If there is no such measure.
    """
    return parse_measure(measure).column(k)


def supplied_names(measures: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names of the supplied measures among these."""
    return _names("supplied", measures)


def output_names(measures: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names of the graph outputs among these measures."""
    return _names("output", measures)


def _names(kind: str, measures: Iterable[str]) -> tuple[str, ...]:
    parsed = map(parse_measure, measures)
    return tuple(dict.fromkeys(measure.name for measure in parsed if measure.kind == kind))


def columns(
    top_k: Sequence[int], *, logits: bool = False
) -> Iterator[tuple[str, SinglePassMeasure, int]]:
    """Yield each column of these events once, as (name, measure, k).

    Without ``logits``, measures that need logits are left out.
    """
    for measure in SINGLE_PASS_MEASURES.values():
        if measure.needs_logits and not logits:
            continue
        for k in top_k if measure.per_event else top_k[:1]:
            yield column(measure.name, k), measure, k


def check_measures(measures: Sequence[str], *, logits: bool) -> None:
    """Check that these measures can be computed from a model's output.

    Raises
    ------
    ValueError
        If one needs logits, and the model gives probabilities.
    """
    for name in measures:
        if parse_measure(name).needs_logits and not logits:
            raise ValueError(
                f"{name} needs logits: probabilities give them but for a constant, on which "
                f"{name} depends"
            )
