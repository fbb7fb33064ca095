"""By what a threshold is chosen, and what would follow from it: as JSON."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from service.operations.choose_threshold import ThresholdChoice
from service.operations.fit_config import TINY

DELTA = 0.05
MOST_VOLUME = 10**12
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
Risk = Annotated[float, Field(ge=TINY, lt=1.0, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False)]


class Choice(BaseModel):
    """By what the threshold is chosen: exactly one of ``threshold``, ``coverage``, ``max_risk``."""

    model_config = ConfigDict(extra="forbid")

    threshold: Number | None = Field(
        None, description="The largest uncertainty of Top-1 that is accepted."
    )
    coverage: Share | None = Field(
        None, description="Share of the calibration set to accept, at least."
    )
    max_risk: Risk | None = Field(
        None, description="Error rate among what is accepted, bounded with confidence 1 - delta."
    )
    delta: Risk = Field(DELTA, description="Probability that the bound of `max_risk` fails.")

    @model_validator(mode="after")
    def _one_of_them(self) -> "Choice":
        if sum(found is not None for found in (self.threshold, self.coverage, self.max_risk)) != 1:
            raise ValueError("expected exactly one of threshold, coverage and max_risk")
        return self

    def choice(self) -> ThresholdChoice:
        """Return it as the operations take it."""
        return ThresholdChoice(self.threshold, self.coverage, self.max_risk, self.delta)


class PreviewQuery(Choice):
    """A threshold to look at."""

    volume: Annotated[int, Field(ge=1, le=MOST_VOLUME)] | None = Field(
        None, description="Tell what follows for so many answers, as there are on a day."
    )


class Consequences(BaseModel):
    """What a threshold does to the calibration set."""

    n_samples: int = Field(description="Samples of the set.")
    n_accepted: int = Field(description="Those at or below the threshold.")
    n_errors: int = Field(description="Those of them whose Top-1 class is wrong.")
    coverage: float = Field(description="Share that is accepted.")
    coverage_interval: tuple[float, float] = Field(description="Exact, at the config's level.")
    risk: float | None = Field(description="Error rate among what is accepted; null of nothing.")
    risk_interval: tuple[float, float] | None = Field(
        description="Exact, at the config's level, as if the threshold had been fixed beforehand."
    )


class Expected(BaseModel):
    """What is to be expected of so many answers on data like the calibration set."""

    volume: int = Field(description="Of how many.")
    accepted: float = Field(description="How many are accepted.")
    accepted_interval: tuple[float, float] = Field(
        description="`coverage_interval` of the consequences, of so many."
    )
    errors: float = Field(description="How many are accepted and wrong.")
    errors_interval: tuple[float, float] = Field(
        description="Exact, at the config's level, of the share of all samples."
    )
    reviewed: float = Field(description="How many are left to others.")


class Preview(BaseModel):
    """The threshold that a choice means."""

    threshold: float | None = Field(description="Null where none keeps to the risk.")
    certified: bool = Field(description="Whether `max_risk` is kept to with confidence 1 - delta.")
    consequences: Consequences | None = Field(
        description="Null without a threshold, and for a calibration that keeps no records."
    )
    labels_missing: int | None = Field(
        description="Where none keeps to the risk, about how many more labelled samples would "
        "let one; null where no number would."
    )
    max_risk: float | None = Field(
        description="The risk that was asked for; of another choice the least one, to a hundredth "
        "of a percent, that would accept as much: null where none would."
    )
    delta: float = Field(description="Probability that the bound of `max_risk` fails.")
    expected: Expected | None = Field(
        description="Of `volume` answers; null without it, and where consequences are."
    )
