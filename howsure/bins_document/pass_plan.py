"""The plan of a measure that runs the model more than once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.measures.gradient import SLOPE_MEASURES

Positive: TypeAlias = Annotated[int, Meta(ge=1)]
NotNegative: TypeAlias = Annotated[int, Meta(ge=0)]
NotNegativeFloat: TypeAlias = Annotated[float, Meta(ge=0)]

GRADIENT = "gradient_norm"
JACOBIAN = "jacobian_norm"
LAST_LAYER = "last_layer_dropout_variance"
DROPOUT = "dropout_variance"
ENSEMBLE = "ensemble_variance"
PLAIN = "plain"  # in costs: one run of the model alone


@dataclass(frozen=True)
class PassPlan:
    """How one measure is made.

    Attributes
    ----------
    measure : str
        In `howsure.statistics.measures.MULTI_PASS_MEASURES`.
    passes : int
        Passes, members of an ensemble, or directions of a gradient, over all inputs.
    seed : int
        Seed of the noise.
    rate : float or None
        Dropout rate: the caller's, or, once the model is known, that of the last layer.
    step : float or None
        Step of a gradient's differences, in units of the input's spread.
    feature_shape : tuple of int or None
        Shape of the last layer's input for one sample, once the model is known.
    scales : mapping of str to tuple of float, or None
        Spread of each input along each direction, once the model is known.
    divisible : bool
        Whether the first few passes are a measure by themselves; the coordinates of a gradient
        are not.
    """

    measure: str
    passes: Positive
    seed: NotNegative
    rate: NotNegativeFloat | None = None
    step: NotNegativeFloat | None = None
    feature_shape: tuple[Positive, ...] | None = None
    scales: Mapping[str, tuple[NotNegativeFloat, ...]] | None = None
    divisible: bool = True

    def __post_init__(self) -> None:
        if self.measure not in MULTI_PASS_MEASURES:
            raise ValueError(f"{self.measure!a} does not run the model more than once")

    @property
    def runs(self) -> int:
        """Runs of the whole model that the measure adds to the prediction."""
        if self.measure == LAST_LAYER:
            return 0
        return 2 * self.passes if self.measure in SLOPE_MEASURES else self.passes


def without_shared_runs(measures: Sequence[str]) -> list[str]:
    """Return the measures, except one computed from the runs of another one."""
    return [name for name in measures if name != JACOBIAN or GRADIENT not in measures]
