"""The measures of an event side by side, as a report shows them."""

from pydantic import BaseModel, Field


class Difference(BaseModel):
    """A score minus that of the bins served; negative where the other is better."""

    mean: float = Field(description="Over the pairs.")
    standard_error: float | None = Field(description="Of the mean; null of a single pair.")
    pairs: int = Field(description="Folds, or samples of the evaluation set.")


class ComparedScore(BaseModel):
    """A score of one measure beside others."""

    value: float | None = Field(description="Cross-validated; null where nothing defines it.")
    std: float | None = Field(description="Between the folds; null where it is pooled.")
    pooled: bool = Field(
        description="Whether it is that of all folds together, not their mean: for `eor`, and "
        "where a fold does not define it."
    )
    evaluation: float | None = Field(description="On the evaluation set; null without one.")


class ComparedMeasure(BaseModel):
    """What a measure costs, and how well it does."""

    measure: str = Field(description="Its name.")
    served: bool = Field(description="Whether it answers.")
    passes: int | None = Field(
        description="Runs of the model that an answer takes; null without a model."
    )
    ms_per_row: float | None = Field(
        description="Milliseconds that they took on the first rows; null where not timed."
    )
    difference: Difference | None = Field(
        None,
        description="Of its nll from that of the measure served, fold by fold; null for that one.",
    )
    nll: ComparedScore
    brier: ComparedScore
    ece: ComparedScore
    eor: ComparedScore
    auroc: ComparedScore
    aurc: ComparedScore
    conditional_entropy: ComparedScore
