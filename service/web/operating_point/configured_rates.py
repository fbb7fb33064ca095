"""What ``abstain`` tells without an active operating point."""

from collections.abc import Sequence

from howsure.numbers import percent, share
from howsure.statistics.selective import SelectiveResult


def abstain_without_point(
    selective: Sequence[SelectiveResult] | None, *, then: bool = False
) -> str:
    """Return in words what ``abstain`` follows without an operating point.

    Parameters
    ----------
    selective : sequence of SelectiveResult or None
        The error rates of the configuration, as in the report of Top-1; None without Top-1.
    then : bool
        Whether an operating point is still active.
    """
    if selective is None:
        return ""
    now = " then" if then else ""
    if not selective:
        return f"`abstain` is{now} empty: no error rate is configured."
    if all(found.threshold is None for found in selective):
        rates = " or ".join(share(found.target.max_risk) for found in selective)
        return (
            f"`abstain`{now} follows the configured error rates. No threshold passes the test for "
            f"an error rate of at most {rates}, so no answer is accepted."
        )
    accepted = [
        f"{_accepted(found)} for an error rate of at most {share(found.target.max_risk)}"
        for found in selective
    ]
    return f"`abstain`{now} follows the configured error rates. It accepts {', '.join(accepted)}."


def _accepted(found: SelectiveResult) -> str:
    if found.threshold is None:
        return "none"
    return "answers" if found.coverage is None else f"{percent(found.coverage)} of answers"
