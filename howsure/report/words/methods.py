"""Which method states the best probabilities on a further set, in a sentence."""

from collections.abc import Mapping

from howsure.report.words.compared_methods import NAMES
from howsure.statistics.shift.methods import DECIDES, SERVED, BestOnSet, MethodOnSet


def best_sentence(best: BestOnSet | None, methods: Mapping[str, MethodOnSet]) -> str:
    """Return who is better on the set, or that nobody can tell; empty without labels."""
    if best is None:
        return ""
    ours, other = (methods[name].scores[DECIDES] or 0.0 for name in (SERVED, best.method))
    figures = f"Brier score {other:.4f}, {ours:.4f} of what is served"
    name = NAMES.get(best.method, best.method)
    if best.better == "other":
        return (
            f"On these samples {name} states better probabilities than what is served: {figures}."
        )
    if best.better == "served":
        return (
            f"On these samples what is served states better probabilities than {name}: {figures}."
        )
    return (
        f"Nobody can tell whether what is served or {name} states better probabilities on these "
        f"samples: {figures}."
    )
