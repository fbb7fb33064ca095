"""Schemas of a report's comparison of measures."""

from pydantic import BaseModel, Field


class Difference(BaseModel):
    """A score minus that of the served bins; a negative loss favours the other method."""

    mean: float = Field(description="Mean over the pairs.")
    standard_error: float | None = Field(description="Of the mean; null for a single pair.")
    pairs: int = Field(description="Folds, or samples of the evaluation set.")
    rivals: int = Field(1, description="Methods compared with the same one.")


class ComparedScore(BaseModel):
    """A score of one measure."""

    value: float | None = Field(description="Cross-validated; null if undefined.")
    std: float | None = Field(description="Standard deviation between folds; null if pooled.")
    pooled: bool = Field(description="Whether it is the score of all folds together.")
    evaluation: float | None = Field(description="On the evaluation set; null without one.")


class ComparedMeasure(BaseModel):
    """The cost and the scores of a measure."""

    measure: str = Field(description="Name of the measure.")
    served: bool = Field(description="Whether it is served.")
    passes: int | None = Field(description="Runs of the model per answer; null without a model.")
    ms_per_row: float | None = Field(
        description="Milliseconds per row on the first rows; null if not timed."
    )
    difference: Difference | None = Field(
        None, description="Its nll minus that of the served measure; null for that measure."
    )
    nll: ComparedScore
    brier: ComparedScore
    ece: ComparedScore
    eor: ComparedScore
    auroc: ComparedScore
    aurc: ComparedScore
    conditional_entropy: ComparedScore
