"""A comparison of two calibrations in sentences."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from howsure.numbers import count
from howsure.report.report import Report
from howsure.report.words.verdict import Undecided
from howsure.shares import percent
from howsure.statistics.comparison import Comparison
from service.reports.comparison.labelled_sets import JudgedSet, Pair, quoted

Basis: TypeAlias = Literal["further", "evaluation", "cross-validation", "none"]


@dataclass(frozen=True)
class Decision:
    """What two calibrations are compared on, and what is known of both.

    Attributes
    ----------
    on : str
        What to call the set.
    names : sequence of str, length 2
    judged : pair of JudgedSet
    warned : sequence of str
        Those of the names that have warnings.
    same_model : bool
    """

    basis: Basis
    on: str
    names: Sequence[str]
    judged: Pair
    warned: Sequence[str]
    same_model: bool = False

    @property
    def doubt(self) -> str | None:
        """The part of the common further set that is probably wrong, for both calibrations."""
        first, second = (one.doubt for one in self.judged)
        return first if second is not None else None


def reference(report: Report) -> str:
    """Return the name and the version of a calibration."""
    return report.reference


def is_imported(report: Report) -> bool:
    """Tell whether a calibration was imported: it has no samples and no scores."""
    return "imported" in report.provenance.data


def event_sentence(found: Comparison, undecided: Undecided | None, decided: Decision) -> str:
    """Return which calibration is better for an event, or why this is not known."""
    opening = f"Top-{found.k}, on {decided.on}:"
    if undecided == "doubtful-set":
        return f"{opening} no comparison, because {decided.doubt} of this set look wrong."
    if undecided == "warnings":
        return (
            f"Top-{found.k}: no comparison, because of the warnings of "
            f"{' and '.join(decided.warned)}. Fix their findings."
        )
    if undecided == "different-sets":
        return f"Top-{found.k}: {_different(str(found.k), decided)}"
    if undecided == "accuracy":
        return f"{opening} {_accuracies(found, *decided.names)}"
    if undecided == "too-rare":
        how = "wrong" if found.n_wrong <= found.n_right else "right"
        return (
            f"{opening} too few {how} answers ({count(min(found.n_wrong, found.n_right))}) to tell "
            "which probabilities are better."
        )
    return f"{opening} {_losses(found, *decided.names)}"


def _accuracies(found: Comparison, first: str, second: str) -> str:
    accuracy = found.differences["accuracy"]
    more, less = (second, first) if accuracy.mean > 0 else (first, second)
    return (
        f"{more} is right more often than {less}, by {percent(abs(accuracy.mean))} of all answers"
        f"{_spread(accuracy.standard_error)}. Losses rate how well each states whether its own "
        "answers are right; they are not compared."
    )


def _losses(found: Comparison, first: str, second: str) -> str:
    difference = found.differences.get("nll")
    if difference is None:
        return f"{first} and {second} share no score to compare by."
    if difference.mean == 0.0:
        return f"{first} and {second} have the same negative log-likelihood."
    better, worse = (second, first) if difference.mean < 0 else (first, second)
    spread = _spread(difference.standard_error)
    if not difference.clear:
        return (
            f"{first} and {second} do not differ clearly; negative log-likelihood of {better} is "
            f"{abs(difference.mean):.5f} lower{spread}."
        )
    return (
        f"{better} states better than {worse} whether its answers are right, by "
        f"{abs(difference.mean):.5f} in negative log-likelihood{spread}."
    )


def _different(k: str, decided: Decision) -> str:
    first, second = decided.names
    if any(one.events[k]["nll"] is None for one in decided.judged):
        return f"{first} and {second} share no score to compare by."
    seen = [
        f"{name} is right on {percent(accuracy)} of {_of(one)}"
        for name, one in zip(decided.names, decided.judged, strict=True)
        if (accuracy := one.events[k]["accuracy"]) is not None
    ]
    return (
        f"no difference between {first} and {second} is known, because each was judged on a set "
        f"of its own. {'; '.join(seen)}."
    )


def _of(one: JudgedSet) -> str:
    return f"its {one.kind} set ({count(one.n_samples)} samples)"


def closing_sentences(decided: Decision) -> Iterator[str]:
    """Yield what holds for all events."""
    if decided.same_model and len(set(decided.names)) > 1:
        yield (
            "Both run the same model, so they give the same classes for the same samples; only "
            "their probabilities differ."
        )
    if decided.warned and decided.basis == "further":
        yield f"Fix the findings of {' and '.join(decided.warned)} before you use it."


def decision(first: Report, second: Report) -> dict[str, Any] | None:
    """Return how to find out which of two calibrations is better: a sentence, and its commands.

    None for imported calibrations, which cannot be evaluated.
    """
    if is_imported(first) or is_imported(second):
        return None
    names = reference(first), reference(second)
    again = f"howsure compare {shlex.join(names)}"
    for one, other in ((first, second), (second, first)):
        taken = {found.name for found in other.evaluations}
        known = [found.name for found in one.evaluations if found.labelled]
        if known and known[-1] not in taken:
            return {
                "sentence": f"{reference(one)} was evaluated on {quoted(known[-1])}. Evaluate "
                f"{reference(other)} on the same file, then compare again:",
                "commands": [_evaluate(reference(other), known[-1]), again],
            }
    return {
        "sentence": "Evaluate both on the same labelled set, then compare again:",
        "commands": [*(_evaluate(name, "NAME") for name in names), again],
    }


def _evaluate(calibration: str, name: str) -> str:
    return f"howsure evaluate {shlex.quote(calibration)} SET --name {shlex.quote(name)}"


def _spread(error: float | None) -> str:
    return "" if error is None else f" (standard error {error:.5f})"
