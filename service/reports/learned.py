"""What the learned measure learned: its part of the report, and its sentences."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

import models
from howsure.statistics.fit.options import is_fixed_beforehand
from howsure.statistics.measures import LEARNED
from howsure.statistics.records.records import TEMPERATURES
from service.reports.charts.text import enumerated
from service.reports.numbers import count, short, signed

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


def learned_part(table: models.BinTable) -> dict[str, Any]:
    """Return what a table's learned measure learned, in log-odds of a hit; nothing for others.

    ``class_effects`` and ``class_counts`` are unknown for imported tables.
    """
    formula = table.learned
    if formula is None:
        return {}
    return {"learned": _facts(formula) | table.analysis.get("learned", {})}


def _facts(formula: Mapping[str, Any]) -> dict[str, Any]:
    """Return temperature and floor, and the terms that correct the softmax, in order."""
    if "floor" in formula:
        terms = [term for term in TERMS if np.any(formula.get(term, ()))]
        return {"temperature": formula["temperature"], "floor": formula["floor"], "terms": terms}
    used = {
        "curve": True,
        "measures": any(formula["linear"][2:]),
        "predicted": any(formula["offset"]),
        "second": any(formula["second"]),
    }
    temperature = float(TEMPERATURES[formula["temperature"]])
    terms = [term for term in TERMS if used.get(term)]
    return {"temperature": temperature, "floor": 0.0, "terms": terms}


def learned_sentence(learned: Mapping[str, Any]) -> str:
    """Return in words what the formula uses."""
    floor = learned["floor"]
    start = (
        "The learned measure estimates the odds of an error: it starts from the model's softmax at "
        f"temperature {short(learned['temperature'])}"
    )
    if floor:
        start += f", with {short(floor)} added to each probability,"
    if not learned["terms"]:
        return f"{start} and corrects it no further, because nothing more is clear."
    return f"{start} and corrects it with {enumerated([TERMS[t] for t in learned['terms']])}."


def ranked_classes(learned: Mapping[str, Any]) -> list[int]:
    """Return the predicted classes that change the log-odds, the largest change first."""
    effects, counts = (learned.get(name) or [] for name in ("class_effects", "class_counts"))
    changed = (i for i, effect in enumerate(effects) if effect and counts[i])
    return sorted(changed, key=lambda i: (-abs(effects[i]), i))


def classes_sentence(learned: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the largest changes by predicted class in words, or that there are none."""
    if not set(learned["terms"]) - {"curve", "measures", "second"}:
        return "It treats all predicted classes alike, because they do not differ clearly."
    largest = [
        f"{names[i]} {signed(learned['class_effects'][i])} "
        f"(n = {count(learned['class_counts'][i])})"
        for i in ranked_classes(learned)[:MOST_IN_WORDS]
    ]
    if not largest:
        return "The changes by predicted class are in the imported formula."
    return f"The largest changes by predicted class: {', '.join(largest)}."
