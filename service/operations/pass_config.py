"""How measures that run the model more than once are made: blocks of a calibration's config."""

from pydantic import Field

from service.operations.fit_config import Strict

MAX_PASSES = 1000


class DropoutConfig(Strict):
    """Passes of ``dropout_variance`` and ``last_layer_dropout_variance``."""

    passes: int = Field(20, ge=2, le=MAX_PASSES, description="Answers that are compared.")
    rate: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Share of the values that is dropped; null: as the model says, and 0.1 before "
        "a last layer without dropout.",
    )


class EnsembleConfig(Strict):
    """Passes of ``ensemble_variance`` over one model that draws at random.

    Several models are a pass each.
    """

    passes: int = Field(
        20, ge=2, le=MAX_PASSES, description="Runs of one model that draws at random."
    )


class GradientConfig(Strict):
    """Directions and steps of ``gradient_norm``."""

    directions: int = Field(
        16, ge=1, le=MAX_PASSES, description="Directions of each input that are stepped along."
    )
    step: float = Field(
        1e-3, ge=1e-6, le=0.1, description="Size of a step, in units of the input's spread."
    )
