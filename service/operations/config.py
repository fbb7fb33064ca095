"""The configuration of a calibration: what a caller may ask, and its defaults."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.core.fit import FitOptions
from service.core.intervals import INTERVALS, IntervalOptions
from service.core.measures import MEASURES
from service.errors import InvalidConfig, Violation

DEFAULT_MEASURES = ("entropy", "neg_log_pmax", "neg_log_topk_mass", "margin")
DEFAULT_TOP_K = (1, 5)
MAX_BINS = 10_000
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_UUID = re.compile(r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$")


def _not_an_id(name: str) -> str:
    if _UUID.match(name):
        raise ValueError("a name may not look like a calibration's id")
    return name


def _known_measure(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"unknown measure {name!r}; known: {', '.join(MEASURES)}")
    return name


def _known_interval(name: str) -> str:
    if name not in INTERVALS:
        raise ValueError(f"unknown method {name!r}; known: {', '.join(INTERVALS)}")
    return name


Name = Annotated[str, Field(pattern=NAME_PATTERN), AfterValidator(_not_an_id)]
MeasureName = Annotated[str, AfterValidator(_known_measure)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class IntervalConfig(_Strict):
    """How the interval of a bin's probability is made."""

    method: Annotated[str, AfterValidator(_known_interval)] = Field(
        "clopper_pearson", description=f"One of {', '.join(INTERVALS)}."
    )
    level: float = Field(0.95, gt=0, lt=1, description="Probability that the interval holds.")
    simultaneous: bool = Field(
        default=False, description="Make all bins hold together, by dividing 1 - level by them."
    )


class OutputConfig(_Strict):
    """Which output of the ONNX model to read, and what it holds; inferred where absent."""

    name: str | None = Field(None, min_length=1, max_length=1000, description="Output's name.")
    kind: Literal["logits", "probabilities"] | None = Field(None, description="What it holds.")


class CalibrationConfig(_Strict):
    """The ``config`` part of POST /calibrate; every key is optional."""

    name: Name | None = Field(None, description="Versions are counted per name.")
    top_k: list[Annotated[int, Field(ge=1)]] | None = Field(
        None, min_length=1, max_length=20, description="Events to calibrate; [1, 5] by default."
    )
    measures: list[MeasureName] = Field(
        list(DEFAULT_MEASURES), min_length=1, description="Uncertainty measures to fit."
    )
    serve: dict[str, MeasureName] = Field(
        {}, description='Measure that serves each event, such as {"1": "entropy"}.'
    )
    bins: Literal["auto"] | Annotated[int, Field(ge=1, le=MAX_BINS)] = Field(
        "auto", description="Bins asked for, or `auto`: chosen by cross-validation."
    )
    lookup: Literal["step", "interpolated"] = Field(
        "step", description="Probability constant in a bin, or linear between the bins' means."
    )
    prior_strength: float = Field(
        1.0, gt=0, le=1e6, description="Pseudo-samples of the prior; it keeps odds finite."
    )
    interval: IntervalConfig = Field(IntervalConfig(), description="Interval of a probability.")
    monotone: bool = Field(
        default=False, description="Pool bins until the probability falls with the uncertainty."
    )
    folds: int = Field(10, ge=2, le=100, description="Folds of the cross-validation.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of folds and tie keys.")
    output: OutputConfig = Field(OutputConfig(), description="Output of the ONNX model.")
    classes: list[Annotated[str, Field(min_length=1, max_length=200)]] | None = Field(
        None, min_length=2, description="Names of the classes, by index."
    )

    @model_validator(mode="after")
    def _consistent(self) -> "CalibrationConfig":
        if self.top_k is not None and len(set(self.top_k)) != len(self.top_k):
            raise ValueError("top_k: the same event is named twice")
        if len(set(self.measures)) != len(self.measures):
            raise ValueError("measures: the same measure is named twice")
        events = {str(k) for k in self.top_k or DEFAULT_TOP_K}
        for event, measure in self.serve.items():
            if event not in events:
                raise ValueError(f"serve: {event!r} is not an event of top_k")
            if measure not in self.measures:
                raise ValueError(f"serve: {measure!r} is not among the measures")
        return self

    def events(self, n_classes: int) -> tuple[tuple[int, ...], list[str]]:
        """Return the events to calibrate for this many classes, and what to tell the caller.

        An event Top-k is certain when k reaches the number of classes: left out of the default,
        an error when it was asked for by name.
        """
        asked = self.top_k
        if asked is None:
            kept = tuple(k for k in DEFAULT_TOP_K if k < n_classes)
            notes = [
                f"Top-{k} is certain with {n_classes} classes and was left out."
                for k in DEFAULT_TOP_K
                if k >= n_classes
            ]
            return kept, notes
        for k in asked:
            if k >= n_classes:
                raise InvalidConfig.at(
                    "config.top_k",
                    f"Top-{k} is certain with {n_classes} classes; use values below {n_classes}",
                )
        return tuple(sorted(asked)), []

    def fit_options(self, top_k: tuple[int, ...]) -> FitOptions:
        """Return the options of the fit for the events that are kept."""
        return FitOptions(
            top_k=top_k,
            measures=tuple(self.measures),
            serve={int(k): measure for k, measure in self.serve.items() if int(k) in top_k},
            bins=self.bins,
            lookup=self.lookup,
            prior_strength=self.prior_strength,
            interval=IntervalOptions(**self.interval.model_dump()),
            monotone=self.monotone,
            folds=self.folds,
            seed=self.seed,
        )


def parse_config(text: str | bytes) -> CalibrationConfig:
    """Parse the JSON text of a configuration.

    Raises
    ------
    InvalidConfig
        If the text is not JSON or breaks a rule; each violation names its key.
    """
    try:
        return CalibrationConfig.model_validate_json(text or "{}")
    except ValidationError as error:
        violations = [
            Violation(
                ".".join(["config", *(str(part) for part in found["loc"])]),
                found["msg"].removeprefix("Value error, "),
            )
            for found in error.errors(include_url=False, include_context=False)
        ]
        summary = "; ".join(f"{v.location}: {v.message}" for v in violations[:3])
        raise InvalidConfig(summary, violations) from error
