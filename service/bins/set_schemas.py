"""The calibration set in a bins document: its kind, and the numbers and texts that it held."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from howsure.statistics.input_ranges import MOST_COLUMNS
from service.calibrations.fit_config import Strict
from service.runner.messages.dataset import MAX_NAME_LENGTH, MOST_TEXTS

MAX_COUNT = 2**63 - 1
MAX_INPUTS = 1000

Text = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]


def is_absent(value: object) -> bool:
    """Return whether to omit a key that older documents lack: their digests must stay valid."""
    return not value


class Part(Strict):
    """Base of the document's parts: refuses unknown keys and numbers that are not finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class NumbersOfInput(Part):
    """The numbers of an input of the model in the calibration set."""

    least: float = Field(description="The least number.")
    most: float = Field(description="The largest number.")
    least_spread: float = Field(
        ge=0.0, description="Least difference between the largest and least number of one row."
    )

    @model_validator(mode="after")
    def _has_width(self) -> Self:
        if not self.least < self.most:
            raise ValueError("most must be above least")
        return self


class NumbersOfColumns(Part):
    """The numbers of each column of an input in the calibration set, in the order of columns."""

    least: list[float] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The least number of each column."
    )
    most: list[float] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The largest number of each column."
    )
    missing: list[Annotated[float, Field(ge=0.0, le=1.0)]] = Field(
        [],
        max_length=MOST_COLUMNS,
        exclude_if=is_absent,
        description="Share of rows without a value in each column; omitted if all have one.",
    )

    @model_validator(mode="after")
    def _are_ranges(self) -> Self:
        if len(self.least) != len(self.most) or len(self.missing) not in (0, len(self.least)):
            raise ValueError("least, most and missing must have a number for each column")
        if any(least > most for least, most in zip(self.least, self.most, strict=True)):
            raise ValueError("most must not be below least")
        return self


class Data(Part):
    """The calibration set."""

    samples: int = Field(ge=1, le=MAX_COUNT, description="Number of samples.")
    kind: Literal["inputs", "logits", "probabilities", "pairs"] = Field(
        description="Content of the set."
    )
    score_range: tuple[float, float] | None = Field(
        None,
        exclude_if=is_absent,
        description="Smallest and largest score, of pairs; otherwise omitted.",
    )
    texts: dict[Text, Annotated[list[Text], Field(max_length=MOST_TEXTS)]] = Field(
        {},
        max_length=MAX_INPUTS,
        exclude_if=is_absent,
        description="The few texts of each column that is not read; omitted if there are none.",
    )
    input_ranges: dict[str, NumbersOfInput] = Field(
        {},
        max_length=MAX_INPUTS,
        exclude_if=is_absent,
        description="By input of the model; omitted if unknown.",
    )
    column_ranges: dict[str, NumbersOfColumns] = Field(
        {},
        max_length=MAX_INPUTS,
        exclude_if=is_absent,
        description="By input; omitted for inputs that are no table of features.",
    )
