"""Whether the rows that a set sends through the model are no more than a service allows."""

from dataclasses import dataclass

from service.errors import TooLarge
from service.runner.messages.passes import DROPOUT, ENSEMBLE, GRADIENT, read_pass_plans
from service.runner.model_description import OnnxModel, runs_of

LEAST_SPREAD = 2  # passes that have a variance
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
LEAST_SECONDS = 1.5  # what rounds to more than one


@dataclass(frozen=True)
class _Knob:
    """What a caller may turn down, and by how much."""

    location: str
    noun: str
    fits: int
    least: int


def check_calibration_budget(onnx_model: OnnxModel, n_samples: int, *, limit: int) -> None:
    """Refuse a calibration whose passes are too many for its samples, the evaluation's included.

    Raises
    ------
    TooLarge
        At what costs most; it says what would fit.
    """
    said = _over_budget(onnx_model, n_samples, limit)
    if said is None:
        return
    knob = _knob(onnx_model, limit // n_samples)
    if knob is None or knob.fits < knob.least:
        raise TooLarge.at("calibration", said + _samples(onnx_model, limit))
    raise TooLarge.at(
        knob.location, f"{said}, which {knob.fits} {knob.noun} keep to, or fewer samples"
    )


def check_further_budget(onnx_model: OnnxModel, n_samples: int, *, limit: int) -> None:
    """Refuse a further set that is too large for the passes of the calibration's measures.

    Raises
    ------
    TooLarge
        It says how many samples would fit.
    """
    said = _over_budget(onnx_model, n_samples, limit)
    if said is not None:
        raise TooLarge.at("evaluation", said + _samples(onnx_model, limit))


def _over_budget(onnx_model: OnnxModel, n_samples: int, limit: int) -> str | None:
    """Return the numbers in words where they are too large; one run a row always may be."""
    total = runs_of(onnx_model, _measures(onnx_model))
    rows = n_samples * total.passes
    if total.passes == 1 or rows <= limit:
        return None
    time = "" if total.ms_per_row is None else f", {_duration(n_samples * total.ms_per_row / 1e3)}"
    return (
        f"{n_samples:,} samples, each {total.passes:,} times through the model, are {rows:,} rows"
        f"{time}; expected at most {limit:,}"
    )


def _samples(onnx_model: OnnxModel, limit: int) -> str:
    total = runs_of(onnx_model, _measures(onnx_model))
    return f", which {limit // total.passes:,} samples keep to"


def _measures(onnx_model: OnnxModel) -> list[str]:
    return [plan["measure"] for plan in onnx_model["resolved"].get("passes", [])]


def _knob(onnx_model: OnnxModel, runs: int) -> _Knob | None:
    """Return what to turn down for so many runs of each row."""
    if onnx_model.get("members"):
        return _Knob("model", "models", runs, LEAST_SPREAD)
    plans = {plan.measure: plan for plan in read_pass_plans(onnx_model["resolved"]["passes"])}
    if ENSEMBLE in plans:
        return _Knob("config.ensemble.passes", "passes", runs, LEAST_SPREAD)
    dearest = max(plans.values(), key=lambda plan: plan.runs)
    others = 1 + sum(plan.runs for plan in plans.values() if plan is not dearest)
    if dearest.measure == DROPOUT:
        return _Knob("config.dropout.passes", "passes", runs - others, LEAST_SPREAD)
    if dearest.measure == GRADIENT:
        each = (runs - others) // (2 * len(onnx_model["inputs"]))
        return _Knob("config.gradient.directions", "directions", each, 1)
    return None


def _duration(seconds: float) -> str:
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return "about 1 second" if seconds < LEAST_SECONDS else f"about {seconds:.0f} seconds"
