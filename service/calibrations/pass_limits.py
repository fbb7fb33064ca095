"""Limit on the rows that a set sends through a model which runs several times for each sample."""

from dataclasses import dataclass

from howsure.bins_document.pass_plan import DROPOUT, ENSEMBLE, without_shared_runs
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from service.errors import TooLarge
from service.runner.model_description import ModelDescription

MIN_VARIANCE_RUNS = 2
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
MIN_PLURAL_SECONDS = 1.5  # rounds to 2


@dataclass(frozen=True)
class _Adjustable:
    """A part of the request that may be reduced, the number that fits and the smallest one."""

    location: str
    noun: str
    fits: int
    least: int = MIN_VARIANCE_RUNS


def check_rows(
    model: ModelDescription, n_samples: int, *, limit: int, location: str = "calibration"
) -> None:
    """Refuse a set that sends too many rows through the model; one run per sample always fits.

    ``n_samples`` of a calibration include its evaluation set. Of a calibration the passes may be
    reduced, of an ``evaluation`` only the samples.

    Raises
    ------
    TooLarge
        At the part that costs most, with the number that would fit.
    """
    cost = model.all_runs
    rows = n_samples * cost.passes
    if cost.passes == 1 or rows <= limit:
        return
    time = "" if cost.ms_per_row is None else f", {_duration(n_samples * cost.ms_per_row / 1e3)}"
    message = (
        f"{n_samples:,} samples times {cost.passes:,} model runs = {rows:,} rows{time}; "
        f"the limit is {limit:,} rows. Use at most"
    )
    option = _adjustable(model, limit // n_samples) if location == "calibration" else None
    if option is None or option.fits < option.least:
        raise TooLarge.at(location, f"{message} {limit // cost.passes:,} samples.")
    raise TooLarge.at(option.location, f"{message} {option.fits} {option.noun}, or fewer samples.")


def _adjustable(model: ModelDescription, runs: int) -> _Adjustable | None:
    """Return the part to reduce if each row may be run so many times."""
    if model.stored.get("members"):
        return _Adjustable("model", "models", runs)
    distinct = without_shared_runs(model.pass_measures)
    plans = {plan.measure: plan for plan in model.passes if plan.measure in distinct}
    if ENSEMBLE in plans:
        return _Adjustable("config.ensemble.passes", "passes", runs)
    dearest = max(plans.values(), key=lambda plan: plan.runs)
    others = 1 + sum(plan.runs for plan in plans.values() if plan is not dearest)
    if dearest.measure == DROPOUT:
        return _Adjustable("config.dropout.passes", "passes", runs - others)
    if dearest.measure in SLOPE_MEASURES:
        directions = (runs - others) // (2 * len(model.stored["inputs"]))
        return _Adjustable("config.gradient.directions", "directions", directions, least=1)
    return None


def _duration(seconds: float) -> str:
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return "about 1 second" if seconds < MIN_PLURAL_SECONDS else f"about {seconds:.0f} seconds"
