"""The configuration of a calibration and its defaults."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from howsure.bins_document.pass_plan import ENSEMBLE, GRADIENT, JACOBIAN, PassPlan
from howsure.limits import NAME_PATTERN
from howsure.report.words.fit_notes import certain_event_notes
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.findings import FINDINGS
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import MULTI_PASS_MEASURES
from howsure.statistics.selective import SelectiveTarget
from service.calibrations.config_errors import parsed_json
from service.calibrations.fit_config import DEFAULT_TOP_K, FitConfig, Strict
from service.calibrations.preprocessing_config import PreprocessingInput
from service.errors import InvalidConfig, shown

MAX_PASSES = 1000


class DropoutConfig(Strict):
    """Passes of ``dropout_variance`` and ``last_layer_dropout_variance``."""

    passes: int = Field(20, ge=2, le=MAX_PASSES, description="Number of passes.")
    rate: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Share of values to drop; null: the model's own rate, or 0.1 before a last "
        "layer without dropout.",
    )


class EnsembleConfig(Strict):
    """Passes of ``ensemble_variance`` over one random model; of several models each is a pass."""

    passes: int = Field(20, ge=2, le=MAX_PASSES, description="Runs of one random model.")


class GradientConfig(Strict):
    """Directions and steps of ``gradient_norm`` and ``jacobian_norm``, which share them."""

    directions: int = Field(16, ge=1, le=MAX_PASSES, description="Number of directions per input.")
    step: float = Field(
        1e-3, ge=1e-6, le=0.1, description="Size of a step, in units of the input's spread."
    )


# The largest number of classes of a model.
MAX_MAPPED = 100_000
# The longest JSON of all class names: every calibration stores it.
MAX_CLASSES_BYTES = 1024**2
MAX_INPUTS = 1_000
# Names of 1,000 classes with 200 characters each, and everything else. Validation of more would
# stop other threads for long.
MAX_CONFIG_BYTES = 256 * 1024

# Options of the fit that need no conversion.
_AS_THEY_ARE = ("bins", "lookup", "prior_strength", "monotone", "folds", "seed")
_UUID = re.compile(r"^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$")

AnyConfig = TypeVar("AnyConfig", bound=FitConfig)


def _not_an_id(name: str) -> str:
    if _UUID.match(name):
        raise ValueError("a name may not look like a calibration's id")
    return name


def _known_findings(strict: bool | list[str]) -> bool | list[str]:  # noqa: FBT001 - as it came
    unknown = [] if isinstance(strict, bool) else [code for code in strict if code not in FINDINGS]
    if unknown:
        raise ValueError(f"unknown finding {shown(unknown[0])}; known: {', '.join(FINDINGS)}")
    return strict


FindingCode = Annotated[str, Field(json_schema_extra={"enum": list(FINDINGS)})]
Name = Annotated[str, Field(pattern=NAME_PATTERN), AfterValidator(_not_an_id)]
ClassName = Annotated[str, Field(min_length=1, max_length=200)]
MAX_COLUMN_NAME = 1000
ColumnName = Annotated[str, Field(min_length=1, max_length=MAX_COLUMN_NAME)]
ColumnNames = Annotated[
    list[ColumnName],
    Field(min_length=1, max_length=MAX_MAPPED),
    BeforeValidator(
        lambda asked: [asked] if isinstance(asked, str) else asked,
        json_schema_input_type=ColumnName | Annotated[list[ColumnName], Field(min_length=1)],
    ),
]


class OutputConfig(Strict):
    """Output of the ONNX model and its content; inferred if absent."""

    name: str | None = Field(None, min_length=1, max_length=1000, description="Name of the output.")
    kind: Literal["logits", "probabilities"] | None = Field(
        None, description="Content of the output."
    )


class CalibrationConfig(FitConfig):
    """The ``config`` part of POST /calibrate; every key is optional."""

    name: Name | None = Field(None, description="Versions are counted per name.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of folds, tie keys and noise.")
    dropout: DropoutConfig = Field(DropoutConfig(), description="Options of both dropout measures.")
    ensemble: EnsembleConfig = Field(EnsembleConfig(), description="Options of ensemble_variance.")
    gradient: GradientConfig = Field(
        GradientConfig(), description="Options of gradient_norm and jacobian_norm."
    )
    output: OutputConfig = Field(OutputConfig(), description="Output of the ONNX model.")
    decision_threshold: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Of two classes: class 1 is predicted where the model's probability of it "
        "reaches this; null: the more probable class.",
    )
    classes: list[ClassName] | None = Field(
        None, min_length=2, description="Names of the classes, by index."
    )
    preprocessing: PreprocessingInput | None = Field(
        None, description="Preprocessing of pictures for the model."
    )
    class_map: dict[ClassName, Annotated[int, Field(ge=0, lt=MAX_MAPPED)]] | None = Field(
        None,
        min_length=1,
        max_length=MAX_MAPPED,
        description="Class index by folder name or other text label.",
    )
    columns: dict[ColumnName, ColumnNames] | None = Field(
        None,
        min_length=1,
        max_length=MAX_INPUTS,
        description="Table columns of each input of the model, and of `label`.",
    )

    strict: Annotated[bool | list[FindingCode], AfterValidator(_known_findings)] = Field(
        default=False,
        description="Findings to treat as errors: `true` for all warnings, or a list of codes.",
    )

    @model_validator(mode="after")
    def _serves(self) -> Self:
        events = {str(k) for k in self.top_k or DEFAULT_TOP_K}
        for event, measure in self.serve.items():
            if event not in events:
                raise ValueError(f"serve: {event!r} is not an event of top_k")
            if measure not in self.measures:
                raise ValueError(f"serve: {measure!r} is not among the measures")
        return self

    def events(self, n_classes: int) -> tuple[tuple[int, ...], list[str]]:
        """Return the events to calibrate for this many classes, and notes for the caller.

        Top-k is certain if k reaches the number of classes: such events are left out of the
        default, and are an error if requested.
        """
        asked = self.top_k or DEFAULT_TOP_K
        certain = [k for k in asked if k >= n_classes]
        if self.top_k is not None and certain:
            raise InvalidConfig.at(
                "config.top_k",
                f"Top-{certain[0]} is certain with {n_classes} classes; use values below "
                f"{n_classes}",
            )
        events = tuple(sorted(set(asked) - set(certain)))
        return events, certain_event_notes(certain, n_classes)

    def fit_options(self, top_k: tuple[int, ...]) -> FitOptions:
        """Return the options of the fit for these events."""
        return stored_options(self.model_dump(mode="json"), top_k)


def stored_options(config: Mapping[str, Any], top_k: tuple[int, ...]) -> FitOptions:
    """Return the options of the fit in a stored configuration.

    It is read as it was stored: bounds of today's uploads would refuse jobs of earlier ones.
    Options that it lacks have their defaults.
    """
    options = CalibrationConfig().model_dump(mode="json") | dict(config)
    return FitOptions(
        top_k=top_k,
        measures=tuple(options["measures"]),
        serve={int(k): measure for k, measure in options["serve"].items() if int(k) in top_k},
        interval=IntervalOptions(**options["interval"]),
        targets=tuple(options["targets"]),
        selective=tuple(SelectiveTarget(**target) for target in options["selective"]),
        ood_level=options["ood"]["level"],
        **{name: options[name] for name in _AS_THEY_ARE},
    )


_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
_LARGE = {
    "classes": list[_Text],
    "class_map": dict[_Text, Annotated[int, msgspec.Meta(ge=0, lt=MAX_MAPPED)]],
    "columns": Annotated[dict[_Text, str | list[_Text]], msgspec.Meta(max_length=MAX_INPUTS)],
}
# Pydantic lists every error, and lets no other thread run meanwhile.
_SMALL_BYTES = 16 * 1024


def _check_size(text: str | bytes, kind: type[BaseModel]) -> None:
    """Bound the errors that validation can find: large values must have the right types.

    Raises
    ------
    InvalidConfig
        If a large value has another type, or all others together are too large.
    """
    if len(text) <= _SMALL_BYTES:
        return
    try:
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # validation finds the same error, once
    sizes = {}
    for key, value in found.items():
        if key in _LARGE and len(value) > _SMALL_BYTES:
            try:
                msgspec.json.decode(value, type=_LARGE[key])
            except msgspec.ValidationError as error:
                raise InvalidConfig.at(f"config.{key}", shown(str(error))[1:-1]) from error
        else:
            sizes[key] = len(key) + len(value)
    if sum(sizes.values()) > _SMALL_BYTES:
        largest = max(sizes, key=lambda key: sizes[key])
        is_known = largest in kind.model_fields
        names = ", ".join(f"`{name}`" for name in _LARGE)
        raise InvalidConfig.at(
            f"config.{largest}" if is_known else "config",
            f"expected at most {_SMALL_BYTES} bytes in all keys but {names}, got "
            f"{sum(sizes.values())}",
        )


def parse_config(text: str | bytes, kind: type[AnyConfig]) -> AnyConfig:
    """Parse the JSON text of a configuration.

    Raises
    ------
    InvalidConfig
        If the text is not JSON or breaks a rule; each violation names its key.
    """
    _check_size(text, kind)
    return parsed_json(text or "{}", kind, failure=InvalidConfig)


def pass_plans(config: CalibrationConfig) -> tuple[PassPlan, ...]:
    """Return the plans of the measures that run the model several times, in their order."""
    slopes = {"passes": config.gradient.directions, "step": config.gradient.step}
    options: dict[str, dict[str, Any]] = {
        GRADIENT: slopes,
        JACOBIAN: slopes,
        ENSEMBLE: config.ensemble.model_dump(),
    }
    return tuple(
        PassPlan(measure, seed=config.seed, **options.get(measure, config.dropout.model_dump()))
        for measure in config.measures
        if measure in MULTI_PASS_MEASURES
    )
