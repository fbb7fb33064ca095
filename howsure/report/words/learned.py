"""What the learned measure learned: its part of the report, and its sentences."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from howsure.numbers import count, short, signed
from howsure.report.measure import ClassEffects, Learned
from howsure.report.words.text import enumerated
from howsure.statistics.fit.options import is_fixed_beforehand
from howsure.statistics.measures import LEARNED
from howsure.statistics.records.records import TEMPERATURES

# The terms of the model of the labels, and of formulas of earlier versions, in words.
TERMS = {
    "offset": "the frequency of each class",
    "slope": "the certainty about each class",
    "mixing": "all probabilities together",
    "confusion": "what is mistaken for what",
    "curve": "a curve",
    "measures": "the entropy and the second probability",
    "predicted": "the predicted class",
    "second": "the second class",
}
MOST_IN_WORDS = 3
CERTIFIED = "certified"


def assurance(measure: str, k: str, config: Mapping[str, Any]) -> str:
    """Return how the bound of a tested error rate is known: `certified`, or why it is not.

    It is certified only for a measure that depends on no label of the samples that test it.
    """
    if measure == LEARNED:
        return "estimated with cross-fitting"
    if is_fixed_beforehand(k, config.get("measures") or (), config.get("serve") or {}):
        return CERTIFIED
    return "estimated, because the same labels chose the measure"


def is_exact_test(grounds: str, design: Collection[str] | None) -> bool:
    """Tell whether the confidence of a tested error rate is exact.

    It is approximate unless certified, and with the weights and groups of ``design``, whose effect
    is estimated.
    """
    return grounds == CERTIFIED and not design


def learned_facts(formula: Mapping[str, Any], effects: ClassEffects | None = None) -> Learned:
    """Return what a formula of the measure says, in log-odds of a hit.

    ``formula`` is plain data. The effects of classes are unknown for imported tables.
    """
    effects = effects or ClassEffects()
    if "floor" in formula:
        used = {term: bool(np.any(formula.get(term, ()))) for term in TERMS}
        temperature, floor = float(formula["temperature"]), float(formula["floor"])
    else:
        used = {
            "curve": True,
            "measures": any(formula["linear"][2:]),
            "predicted": any(formula["offset"]),
            "second": any(formula["second"]),
        }
        temperature, floor = float(TEMPERATURES[formula["temperature"]]), 0.0
    return Learned(
        temperature=temperature,
        floor=floor,
        terms=[term for term in TERMS if used.get(term)],
        class_effects=effects.class_effects,
        class_counts=effects.class_counts,
    )


def learned_sentence(learned: Learned) -> str:
    """Return in words what the formula uses."""
    floor = learned.floor
    start = (
        "The learned measure estimates the odds of an error: it starts from the model's softmax at "
        f"temperature {short(learned.temperature)}"
    )
    if floor:
        start += f", with {short(floor)} added to each probability,"
    if not learned.terms:
        return f"{start} and corrects it no further, because nothing more is clear."
    return f"{start} and corrects it with {enumerated([TERMS[t] for t in learned.terms])}."


def ranked_classes(learned: Learned) -> list[int]:
    """Return the predicted classes that change the log-odds, the largest change first."""
    counts = learned.class_counts or []
    effects = {i: e for i, e in enumerate(learned.class_effects or []) if e and counts[i]}
    return sorted(effects, key=lambda i: (-abs(effects[i]), i))


def classes_sentence(learned: Learned, names: Sequence[str]) -> str:
    """Return the largest changes by predicted class in words, or that there are none."""
    if not set(learned.terms) - {"curve", "measures", "second"}:
        return "It treats all predicted classes alike, because they do not differ clearly."
    effects, counts = learned.class_effects or [], learned.class_counts or []
    largest = [
        f"{names[i]} {signed(effects[i])} (n = {count(counts[i])})"
        for i in ranked_classes(learned)[:MOST_IN_WORDS]
    ]
    if not largest:
        return "The changes by predicted class are in the imported formula."
    return f"The largest changes by predicted class: {', '.join(largest)}."
