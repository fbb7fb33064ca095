"""What becomes of the promise and of stated probabilities under stress, in sentences."""

from collections.abc import Iterator

from howsure.numbers import percent, share
from howsure.report.stress import Step, Stress
from howsure.report.words import text
from howsure.statistics.shift.methods import Better

BETTER: dict[Better, str] = {
    "other": "another method states clearly better probabilities on",
    "served": "what is served states better ones than the model's own softmax on",
    "unclear": "nobody can tell on",
}


def stress_sentences(stress: Stress) -> Iterator[str]:
    """Yield what the stress sets say; nothing without one."""
    if stress.steps and stress.max_risk is not None:
        yield _broken(stress)
        yield from _at_the_end(stress)
    n_judged = stress.better.total()
    if n_judged:
        said = [f"{words} {n}" for one, words in BETTER.items() if (n := stress.better[one])]
        yield f"Of {n_judged} set{'s' if n_judged > 1 else ''}, {', '.join(said)}."


def _broken(stress: Stress) -> str:
    promise = f"The promise of at most {share(stress.max_risk or 0.0)} wrong"
    first = {kind: first_broken(steps) for kind, steps in stress.steps.items()}
    broken = sorted(one for one in first.values() if one is not None)
    if not broken:
        return f"{promise} is not clearly broken by any kind of change."
    last = "" if len(broken) < len(first) else f", and all from intensity {text.number(broken[-1])}"
    return (
        f"{promise} is clearly broken by {len(broken)} of {len(first)} kinds of change, the first "
        f"from intensity {text.number(broken[0])}{last if broken[-1] > broken[0] else ''}."
    )


def first_broken(steps: list[Step]) -> float | None:
    """Return the intensity from which on the promise is broken by a kind of change."""
    first = None
    for step in reversed(steps):
        if not step.is_broken:
            break
        first = step.intensity
    return first


def _at_the_end(stress: Stress) -> Iterator[str]:
    """Yield what is still accepted where the change is largest, if errors are."""
    largest = max(steps[-1].intensity for steps in stress.steps.values())
    last = [steps[-1] for steps in stress.steps.values() if steps[-1].intensity == largest]
    risks = [one.accepted.risk for one in last if one.is_broken and one.accepted.risk is not None]
    if not risks:
        return
    shares = [one.accepted.coverage for one in last]
    yield (
        f"At intensity {text.number(largest)}, {_span(shares)} of answers are still accepted, and "
        f"{_span(risks)} of those are wrong: abstaining alone does not protect."
    )


def _span(shares: list[float]) -> str:
    least, most = percent(min(shares)), percent(max(shares))
    return least if least == most else f"{least} to {most}"
