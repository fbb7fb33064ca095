"""Thresholds of the table that serves Top-1, as they were found: what flags and abstains."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import models


def ood_threshold(served: Sequence[models.BinTable], level: float) -> float | None:
    """Return beyond which uncertainty a sample is flagged; None where Top-1 is not served."""
    thresholds: dict[str, float] = _top1(served).get("ood_thresholds", {})
    return thresholds.get(str(level))


def accept_thresholds(
    served: Sequence[models.BinTable], targets: Sequence[Mapping[str, float]]
) -> dict[str, float | None]:
    """Return the largest uncertainty to accept, by the risk it keeps to."""
    return {
        f"{target['max_risk']:g}": None if found is None else found["threshold"]
        for target, found in accept_results(served, targets)
    }


def accept_results(
    served: Sequence[models.BinTable], targets: Sequence[Mapping[str, float]]
) -> list[tuple[Mapping[str, float], dict[str, Any] | None]]:
    """Return each target with what was found for it, if anything was looked for."""
    found = {result["target"]["max_risk"]: result for result in _top1(served).get("selective", [])}
    return [(target, found.get(target["max_risk"])) for target in targets]


def _top1(served: Sequence[models.BinTable]) -> dict[str, Any]:
    found = next((table.analysis for table in served if table.k == 1), {})
    return cast("dict[str, Any]", found)
