"""Options of the fit: a refit may change them without running the model."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from howsure.limits import MAX_BINS, MAX_STRENGTH, TINY
from howsure.statistics.bins.intervals import INTERVALS
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.measures import (
    DEFAULT_MEASURES,
    MAX_OUTPUT_NAME,
    MEASURE_NAMES,
    OUTPUT,
    SCORE,
    SUPPLIED,
    output_names,
    parse_measure,
)
from howsure.statistics.measures.measure import PLAIN_NAME

DEFAULT_TOP_K = (1, 5)
# A kilobyte each in the database, and in a report.
MAX_TABLE_BINS = 100_000
MAX_OUTPUTS = 100


def _known_measure(name: str) -> str:
    try:
        parse_measure(name)
    except ValueError as error:
        if name.startswith(OUTPUT):
            raise ValueError(
                f"{OUTPUT} is followed by the name of an output of the model, of 1 to "
                f"{MAX_OUTPUT_NAME} printable characters; rename the output if it has others"
            ) from error
        raise ValueError(
            f"unknown measure {name!r}; known: {', '.join(MEASURE_NAMES)}, "
            f"{SUPPLIED}<name> for a column uncertainty_<name> of the set, and {OUTPUT}<name> for "
            "an output of the model with one number a sample"
        ) from error
    return name


def _known_interval(name: str) -> str:
    if name not in INTERVALS:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(INTERVALS)}")
    return name


# For the JSON schema only: the validator gives better messages.
_OUTPUT_PATTERN = f"{OUTPUT}.{{1,{MAX_OUTPUT_NAME}}}"
_SUPPLIED_PATTERN = f"{SUPPLIED}{PLAIN_NAME.pattern}"
_MEASURE_PATTERN = f"^({'|'.join((*MEASURE_NAMES, SCORE, _SUPPLIED_PATTERN, _OUTPUT_PATTERN))})$"
_EACH_ONCE: dict[str, JsonValue] = {"uniqueItems": True}
MeasureName = Annotated[
    str,
    AfterValidator(_known_measure),
    Field(json_schema_extra={"pattern": _MEASURE_PATTERN}),
]


class Strict(BaseModel):
    """Base of configurations: refuses unknown keys and values of other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class IntervalConfig(Strict):
    """Interval of a bin's probability."""

    method: Annotated[str, AfterValidator(_known_interval)] = Field(
        "clopper_pearson",
        description=f"One of {', '.join(INTERVALS)}.",
        json_schema_extra={"enum": list(INTERVALS)},
    )
    level: float = Field(
        0.95, gt=0, le=1 - TINY, description="Probability that the interval holds."
    )
    simultaneous: bool = Field(
        default=False, description="Make all bins hold together, by dividing 1 - level by them."
    )


class SelectiveConfig(Strict):
    """A bound on the error rate of accepted samples, kept by `abstain` in /predict."""

    max_risk: float = Field(ge=TINY, lt=1, description="Error rate among accepted samples.")
    delta: float = Field(0.05, ge=TINY, lt=1, description="Probability that the bound fails.")


class OodConfig(Strict):
    """Flag of samples unlike the calibration set."""

    level: float = Field(
        0.99, gt=0, lt=1, description="Share of the calibration set that is not flagged."
    )


# The records keep at most so many classes of each sample.
MOST_K = 1000


class FitConfig(Strict):
    """The options of the fit; every key is optional.

    ``serve`` is checked where all options are known: a refit holds only the changed ones.
    """

    top_k: list[Annotated[int, Field(ge=1, le=MOST_K)]] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="Events to calibrate; [1, 5] by default.",
        json_schema_extra=_EACH_ONCE,
    )
    measures: list[MeasureName] = Field(
        list(DEFAULT_MEASURES),
        min_length=1,
        description="Uncertainty measures to fit.",
        json_schema_extra=_EACH_ONCE,
    )
    serve: dict[str, MeasureName] = Field(
        {}, description='Measure that serves each event, such as {"1": "entropy"}.'
    )
    bins: Literal["auto"] | Annotated[int, Field(ge=1, le=MAX_BINS)] = Field(
        "auto",
        description="Bins asked for, or `auto`: chosen by cross-validation, up to 100. All tables "
        f"together have at most {MAX_TABLE_BINS}.",
    )
    lookup: Lookup = Field(
        "smooth",
        description="Probability on a smooth curve through the hits, linear between the means of "
        "bins, or constant in a bin.",
    )
    prior_strength: float = Field(
        1.0,
        ge=TINY,
        le=MAX_STRENGTH,
        description="Pseudo-samples of the prior; it keeps odds finite.",
    )
    interval: IntervalConfig = Field(IntervalConfig(), description="Interval of a probability.")
    monotone: bool = Field(
        default=False, description="Pool bins until the probability falls with the uncertainty."
    )
    folds: int = Field(10, ge=2, le=100, description="Folds of the cross-validation.")
    targets: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        [0.99, 0.95], min_length=1, max_length=20, description="Hit rates of the coarse table."
    )
    selective: list[SelectiveConfig] = Field(
        [SelectiveConfig(max_risk=0.05), SelectiveConfig(max_risk=0.01)],
        max_length=20,
        description="Risks that selective prediction is to keep to.",
    )
    ood: OodConfig = Field(OodConfig(), description="Out-of-distribution flag.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.top_k is not None and len(set(self.top_k)) != len(self.top_k):
            raise ValueError("top_k: the same event is named twice")
        if len(set(self.measures)) != len(self.measures):
            raise ValueError("measures: the same measure is named twice")
        if len(output_names(self.measures)) > MAX_OUTPUTS:
            raise ValueError(f"measures: at most {MAX_OUTPUTS} of them may be outputs of the model")
        if self.targets != sorted(set(self.targets), reverse=True):
            raise ValueError("targets: expected falling values, each once")
        risks = [target.max_risk for target in self.selective]
        if len(set(risks)) != len(risks):
            raise ValueError("selective: the same max_risk is named twice")
        return self
