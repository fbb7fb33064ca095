"""From a configuration to the passes that its measures need."""

from service.core.measures import is_perturbation
from service.operations.config import CalibrationConfig
from service.runner.pass_plan import ENSEMBLE, GRADIENT, PassPlan


def pass_plans(config: CalibrationConfig) -> tuple[PassPlan, ...]:
    """Return how each measure that runs the model more than once is made, in their order."""
    return tuple(_plan(measure, config) for measure in config.measures if is_perturbation(measure))


def _plan(measure: str, config: CalibrationConfig) -> PassPlan:
    if measure == GRADIENT:
        asked = config.gradient
        return PassPlan(measure, passes=asked.directions, seed=config.seed, step=asked.step)
    if measure == ENSEMBLE:
        return PassPlan(measure, passes=config.ensemble.passes, seed=config.seed)
    return PassPlan(
        measure, passes=config.dropout.passes, seed=config.seed, rate=config.dropout.rate
    )
