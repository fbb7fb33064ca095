"""Preprocessing of pictures: the key ``preprocessing`` of the configuration."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from howsure.preprocessing import (
    PRESETS,
    Colour,
    Interpolation,
    Layout,
    Preprocessing,
)
from service.calibrations.fit_config import Strict

MAX_SIDE = 16_384

Preset: TypeAlias = Literal["imagenet", "clip", "unit", "none"]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
# A list, since JSON has no tuples and a strict model converts nothing.
Size = Annotated[list[Side], Field(min_length=2, max_length=2)]
Channel = Annotated[float, Field(allow_inf_nan=False)]
ChannelList = Annotated[list[Channel], Field(min_length=1, max_length=3)]
# One number is a list of one; `True` is no number.
Channels = Annotated[
    ChannelList,
    BeforeValidator(
        lambda given: [given] if type(given) in (int, float) else given,
        json_schema_input_type=Channel | ChannelList,
    ),
]


class PreprocessingConfig(Strict):
    """Changes to a preset; the default ``none`` keeps pixels as they are."""

    preset: Preset = Field("none", description="Source of omitted keys.")
    resize: Side | Size | None = Field(
        None,
        description="Length of the shorter side, or height and width; null: no resizing.",
    )
    crop: Side | Size | None = Field(
        None, description="Size of the centre crop: height and width, or one number; null: no crop."
    )
    interpolation: Interpolation | None = Field(None, description="Interpolation of resizing.")
    colour: Colour | None = Field(None, description="Order of the channels.")
    scale: float | None = Field(
        None, gt=0, le=1e6, description="Factor of pixels, 0 to 255, applied first."
    )
    mean: Channels | None = Field(None, description="Mean per channel, subtracted second.")
    std: Channels | None = Field(None, description="Divisor per channel, applied last; above 0.")
    layout: Layout | None = Field(None, description="Axes of the model's input.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_channels(self)
        found = self.resolved()
        if min(found.std) <= 0:
            raise ValueError("std: expected numbers above 0")
        if found.crop is None or found.resize is None:
            return self
        if isinstance(found.resize, int):
            too_large = min(found.crop) > found.resize
        else:
            too_large = any(c > r for c, r in zip(found.crop, found.resize, strict=True))
        if too_large:
            raise ValueError("crop: larger than what resize makes of any picture")
        return self

    def resolved(self) -> Preprocessing:
        """Return the complete preprocessing."""
        base = PRESETS[self.preset].as_dict()
        given = self.model_dump(exclude_unset=True, exclude={"preset"})
        colour = given.get("colour") or base["colour"]
        if colour == "grey":
            # Presets have no mean for grey pictures: see `_check_channels`.
            base |= {"mean": [0.0], "std": [1.0]}
        if isinstance(given.get("crop"), int):
            given["crop"] = [given["crop"]] * 2
        nullable = ("resize", "crop")
        kept = {name: v for name, v in given.items() if v is not None or name in nullable}
        return Preprocessing.from_dict(base | kept)


def _check_channels(given: PreprocessingConfig) -> None:
    """Refuse means and deviations for another number of channels, also those of a preset."""
    preset = PRESETS[given.preset]
    colour = given.colour or preset.colour
    expected = 1 if colour == "grey" else 3
    for name in ("mean", "std"):
        values = getattr(given, name)
        if values is None and colour == "grey" and len(set(getattr(preset, name))) > 1:
            raise ValueError(
                f"{name}: that of {given.preset} has three channels, and colour is grey; give one "
                'number for mean and one for std, or use the preset "unit", pixels from 0 to 1'
            )
        if values is not None and len(values) != expected:
            raise ValueError(
                f"{name}: expected {_numbers(expected)}, as colour is {colour}, got {len(values)}"
            )


def _numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


PreprocessingInput = Annotated[
    PreprocessingConfig,
    BeforeValidator(
        lambda asked: {"preset": asked} if isinstance(asked, str) else asked,
        json_schema_input_type=Preset | PreprocessingConfig,
    ),
]
