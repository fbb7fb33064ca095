"""Whether a child that loaded a model does what it was asked for, and nothing else."""

from collections.abc import Sequence

from service.pictures.preprocessing import Preprocessing
from service.runner.description import PLAIN, LoadedOnnxModel
from service.runner.fields import FieldError
from service.runner.pass_plan import ENSEMBLE, GRADIENT, LAST_LAYER, PassPlan


def check_planned(
    found: LoadedOnnxModel,
    asked: Sequence[PassPlan],
    *,
    n_models: int,
    preprocessing: Preprocessing | None = None,
) -> None:
    """Refuse plans that cost more, or say something else, than what was asked for.

    Raises
    ------
    FieldError
        If no honest child can have made them.
    """
    if found.preprocessing != preprocessing:
        raise FieldError("other preprocessing than was asked for")
    measures = [plan.measure for plan in asked]
    if [plan.measure for plan in found.passes] != measures:
        raise FieldError("passes of other measures than were asked for")
    if found.averaged != (n_models > 1 or ENSEMBLE in measures):
        raise FieldError("whether the prediction is a mean")
    if len(found.members) != n_models - 1:
        raise FieldError("the members of an ensemble")
    if found.costs.keys() != {PLAIN, *measures}:
        raise FieldError("the costs of other measures than were asked for")
    inputs = [tensor.name for tensor in found.description.inputs]
    for plan, wanted in zip(found.passes, asked, strict=True):
        if not _is_of(plan, wanted, inputs, n_models):
            raise FieldError(f"the passes of {plan.measure}")


def _is_of(plan: PassPlan, wanted: PassPlan, inputs: Sequence[str], n_models: int) -> bool:
    if (plan.seed, plan.step) != (wanted.seed, wanted.step):
        return False
    if plan.measure == GRADIENT:
        return _are_directions(plan, wanted.passes, inputs)
    if plan.scales is not None or not plan.divisible:
        return False
    if plan.measure == LAST_LAYER:
        rate, shape = plan.rate or 0.0, plan.feature_shape
        is_rate = rate == wanted.rate if wanted.rate else 0.0 < rate < 1.0
        return plan.passes == wanted.passes and is_rate and shape is not None
    if plan.feature_shape is not None or plan.rate != wanted.rate:
        return False
    of_models = plan.measure == ENSEMBLE and n_models > 1
    return plan.passes == (n_models if of_models else wanted.passes)


def _are_directions(plan: PassPlan, most: int, inputs: Sequence[str]) -> bool:
    """Tell whether each input has its directions, at most so many, with a step along each."""
    scales = plan.scales or {}
    return (
        sorted(scales) == sorted(inputs)
        and all(1 <= len(scale) <= most and min(scale) > 0 for scale in scales.values())
        and plan.passes == sum(map(len, scales.values()))
        and plan.feature_shape is None
    )
