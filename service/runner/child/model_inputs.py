"""What a model takes, and how arrays as they were sent are brought to it: the one place for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.errors import InvalidConfig, InvalidInput
from service.graph.description import TensorSpec
from service.graph.quote import quote_all
from service.pictures.preprocessing import PIXELS, Preprocessing
from service.pictures.values import keeps_pixels, model_values, pixels_in_order
from service.runner.child.input_arrays import by_input, fit_inputs
from service.runner.frames import Array

PREPROCESSING = "config.preprocessing"


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """The inputs of a model, and what makes the only one of them of pictures.

    With ``preprocessing`` an array called ``pixels`` holds pixels, uint8 of shape (n, height,
    width, channels), and no values of an input of that name; without, it is a name like any other.
    """

    specs: Sequence[TensorSpec]
    preprocessing: Preprocessing | None = None

    @property
    def names(self) -> list[str]:
        """Names of the inputs."""
        return [spec.name for spec in self.specs]

    def check_preprocessing(self) -> None:
        """Refuse a model that pictures, so prepared, can never be an input of.

        Raises
        ------
        InvalidConfig
        """
        if self.preprocessing is None:
            return
        if len(self.specs) != 1:
            raise InvalidConfig.at(
                PREPROCESSING,
                "it makes one input of a picture, and the model has several: "
                f"{quote_all(self.names)}; leave it out and send arrays",
            )
        (spec,) = self.specs
        made = _made_shape(self.preprocessing)
        taken = made if spec.shape is None else (None, *spec.shape[1:])
        sizes = zip(made, taken, strict=False)
        if len(made) != len(taken) or any(m and t and m != t for m, t in sizes):
            raise InvalidConfig.at(
                PREPROCESSING,
                f"it makes {_axes(made)} of pictures, and the model takes {spec}; set layout, "
                "colour, and crop or resize",
            )
        if np.dtype(spec.dtype).kind != "f" and not keeps_pixels(self.preprocessing):
            raise InvalidConfig.at(
                PREPROCESSING,
                f"it makes fractions of pixels, and the model takes {spec}; use the preset none, "
                "pixels as they are",
            )

    def are_pixels(self, arrays: Mapping[str, Array]) -> bool:
        """Tell whether these are pixels, to be made a model's input."""
        return self.preprocessing is not None and arrays.keys() == {PIXELS}

    def fitted(self, arrays: Mapping[str, Array], *, location: str, start: int) -> dict[str, Array]:
        """Return one array per input, of its type; ``start`` is the number of the first row.

        Raises
        ------
        InvalidInput
            If a name, shape or value does not suit; the violation names the array.
        """
        if self.preprocessing is not None and PIXELS in arrays:
            return self._of_pixels(arrays, self.preprocessing, location, start)
        named = by_input(arrays, self.specs)
        return fit_inputs(named, self.specs, location=location, start=start)

    def as_sent(self, arrays: Mapping[str, Array]) -> Array:
        """Return what tells one sample from another: the bytes of its arrays, as they came."""
        if self.are_pixels(arrays):
            return arrays[PIXELS]
        named = by_input(arrays, self.specs)
        if len(self.specs) == 1:
            return named[self.specs[0].name]
        lines = [np.ascontiguousarray(named[name]) for name in self.names]
        return np.concatenate(
            [line.reshape(len(line), -1).view(np.uint8) for line in lines], axis=1
        )

    def _of_pixels(
        self,
        arrays: Mapping[str, Array],
        preprocessing: Preprocessing,
        location: str,
        start: int,
    ) -> dict[str, Array]:
        if len(arrays) > 1:
            others = quote_all([name for name in arrays if name != PIXELS])
            raise InvalidInput.at(
                location, f"{PIXELS} are all that the model takes; leave out {others}"
            )
        height, width = preprocessing.crop or (None, None)
        spec = TensorSpec(PIXELS, "uint8", (None, height, width, preprocessing.channels))
        pixels = fit_inputs(arrays, [spec], location=location, start=start)[PIXELS]
        if keeps_pixels(preprocessing):
            values: Array = pixels_in_order(pixels, preprocessing)
        else:
            values = model_values(pixels, preprocessing)
        (taken,) = self.specs
        self._check_made(values, taken, pixels, f"{location}.{PIXELS}")
        return fit_inputs({taken.name: values}, self.specs, location=location, start=start)

    def _check_made(self, values: Array, taken: TensorSpec, pixels: Array, place: str) -> None:
        """Say of pixels that are of another size than the model's in which size they came."""
        sizes = zip(values.shape[1:], (taken.shape or values.shape)[1:], strict=True)
        if any(wanted is not None and size != wanted for size, wanted in sizes):
            raise InvalidInput.at(
                place,
                f"pictures of {pixels.shape[2]} x {pixels.shape[1]} do not suit the model, which "
                f"takes {taken}; preprocessing.crop, or resize, brings them to one size",
            )


def _made_shape(preprocessing: Preprocessing) -> tuple[int | None, ...]:
    """Return the shape that pictures are brought to; None for what differs between them."""
    height, width = preprocessing.crop or (None, None)
    if preprocessing.crop is None and isinstance(preprocessing.resize, tuple):
        height, width = preprocessing.resize
    shapes: Mapping[str, tuple[int | None, ...]] = {
        "nchw": (None, preprocessing.channels, height, width),
        "nhwc": (None, height, width, preprocessing.channels),
        "nhw": (None, height, width),
    }
    return shapes[preprocessing.layout]


def _axes(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join(['rows', *('any' if size is None else str(size) for size in shape[1:])])}]"
