"""What turns a picture into a model's input: one description for every place that reads pictures.

It falls into two parts. The *geometry* (resize, crop, colours) makes whole pixels of equal size out
of a picture of any size, once, when it is read; the *values* (scale, mean, standard deviation,
layout) make the model's input of those, each time the model is run.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias

Colour: TypeAlias = Literal["rgb", "bgr", "grey"]
Layout: TypeAlias = Literal["nchw", "nhwc", "nhw"]
Interpolation: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos"]

# The array of pixels, uint8 [n, height, width, channels], in a set, a shard or a request.
PIXELS = "pixels"


@dataclass(frozen=True)
class Preprocessing:
    """How pictures are made a model's input.

    Attributes
    ----------
    resize : int, or height and width; None
        An integer is the length that the shorter side gets, the longer one keeping the proportion
        (rounded down, as torchvision does); two are the size itself. None leaves pictures as
        they are.
    crop : height and width, or None
        The middle of the resized picture. One that is smaller is refused.
    interpolation : str
        How pixels between pixels are found when a picture is resized.
    colour : str
        The channels that the model takes, in their order: ``grey`` is one.
    scale : float
        What pixels, 0 to 255, are multiplied with first.
    mean, std : tuple of float
        Then subtracted, and divided by; one a channel, in the model's order.
    layout : str
        The axes of the model's input; ``nhw``, of grey pictures alone, has none for channels.
    """

    resize: int | tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    interpolation: Interpolation = "bilinear"
    colour: Colour = "rgb"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    layout: Layout = "nchw"

    @property
    def channels(self) -> int:
        """Channels that a pixel has."""
        return 1 if self.colour == "grey" else 3

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `as_dict` wrote."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls(**given)


_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

PRESETS: Mapping[str, Preprocessing] = {
    # What torchvision's models of its first generation of weights were evaluated with.
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
    # Pixels as they are, 0 to 255.
    "none": Preprocessing(),
}
