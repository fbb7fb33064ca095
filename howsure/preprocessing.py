"""How pictures become a model's input: one description for every place that reads pictures.

It has two parts. The *geometry* (resize, crop, colours) turns a picture of any size into pixels of
one size, once, when the picture is read. The *values* (scale, mean, standard deviation, layout)
turn pixels into the model's input, each time the model runs.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np

from howsure.statistics.input_ranges import InputRange

Colour: TypeAlias = Literal["rgb", "bgr", "grey"]
Layout: TypeAlias = Literal["nchw", "nhwc", "nhw"]
Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos"]

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
AboveZero: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]

# The array of pixels, uint8 [n, height, width, channels], in a set, a shard or a request.
PIXELS = "pixels"


class Preprocessing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pictures are turned into a model's input.

    Attributes
    ----------
    resize : int, or height and width; None
        An integer is the new length of the shorter side; the longer side keeps the proportion,
        rounded down as torchvision does. A pair is the new size. None keeps the size.
    crop : height and width, or None
        The centre of the resized picture. A smaller picture is refused.
    interpolation : str
        Interpolation between pixels when a picture is resized.
    colour : str
        The channels that the model takes, in order; ``grey`` is one channel.
    scale : float
        Pixels, 0 to 255, are multiplied by this first.
    mean, std : tuple of float
        Then subtracted, and divided by; one a channel, in the model's order.
    layout : str
        The axes of the model's input; ``nhw``, for grey pictures only, has no channel axis.

    Raises
    ------
    ValueError
        If ``resize`` is not positive, or ``mean``, ``std`` or ``layout`` does not suit the number
        of channels.
    """

    # Not `Positive`: msgspec 0.22 corrupts memory for a bounded integer beside a tuple of them.
    resize: int | tuple[int, int] | None = None
    crop: tuple[Positive, Positive] | None = None
    interpolation: Interpolation = "bilinear"
    colour: Colour = "rgb"
    scale: AboveZero = 1.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[AboveZero, ...] = (1.0, 1.0, 1.0)
    layout: Layout = "nchw"

    def __post_init__(self) -> None:
        if self.resize is not None and np.min(self.resize) < 1:
            raise ValueError("resize: expected lengths above 0")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != self.channels:
                raise ValueError(f"{name}: expected one number a channel")
        if self.layout == "nhw" and self.channels > 1:
            raise ValueError("layout: nhw has no axis for channels; it takes colour grey")

    @property
    def channels(self) -> int:
        """Number of channels of a pixel."""
        return 1 if self.colour == "grey" else 3

    def range_of_values(self, pixels: InputRange) -> InputRange:
        """Return the range of the model's input for pictures with this range of pixels.

        The ends are those of all channels. The least spread is exact for channels that are scaled
        alike, and otherwise at most a little too large.
        """
        mean, std = np.asarray(self.mean), np.asarray(self.std)
        ends = (np.array([[pixels.least], [pixels.most]]) * self.scale - mean) / std
        spread = pixels.least_spread * self.scale / std.max() - np.ptp(mean / std)
        return InputRange(float(ends.min()), float(ends.max()), max(float(spread), 0.0))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return fields

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Preprocessing":
        """Return what `as_dict` wrote, or values of the same form."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**given)


_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

PRESETS: Mapping[str, Preprocessing] = {
    # torchvision evaluates the first generation of its weights with this.
    "imagenet": Preprocessing(
        resize=256, crop=(224, 224), scale=1 / 255, mean=_IMAGENET_MEAN, std=_IMAGENET_STD
    ),
    "clip": Preprocessing(
        resize=224,
        crop=(224, 224),
        interpolation="bicubic",
        scale=1 / 255,
        mean=_CLIP_MEAN,
        std=_CLIP_STD,
    ),
    # From 0 to 1.
    "unit": Preprocessing(scale=1 / 255),
    # Unchanged pixels, 0 to 255.
    "none": Preprocessing(),
}
