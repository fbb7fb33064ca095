"""Advice for arrays, and for preprocessing, that do not suit the model."""

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs

from howsure.preprocessing import PIXELS, Layout, Preprocessing
from howsure.statistics.input_ranges import InputRange
from service.child.reading.columns import listed, nearest
from service.errors import InvalidInput
from service.graph.description import TensorSpec
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import ANY_INPUT

IMAGE_AXES = 4
MOST_NAMED = 12
MATRIX_AXES = 2
# Columns that number the samples, such as customer_id.
_IDENTIFIER = re.compile(r"(?:.*[_ ])?(?:(?i:id|idx|index|key|uuid))|.*[a-z]I[dD]")


def pixels_advice(name: str, array: Array) -> str:
    """Return what an array of pixels needs, if it is one."""
    if name != PIXELS or array.dtype != np.uint8:
        return ""
    return '; pixels need config.preprocessing, such as "imagenet" or "unit"'


def refuse_pictures(
    arrays: Mapping[str, Array], location: str, preprocessing: Preprocessing
) -> None:
    """Refuse pictures in place of prepared numbers: no axis order makes them right."""
    most = preprocessing.range_of_values(InputRange(0.0, 255.0, 0.0)).most
    for name, array in arrays.items():
        if array.dtype == np.uint8 and array.ndim == IMAGE_AXES and array.max(initial=0) > most:
            raise InvalidInput.at(
                f"{location}.{name}",
                f"expected prepared numbers, got pictures of {array.dtype.name}; `preprocessing` "
                f"prepares those sent as `{PIXELS}`, of shape [rows, height, width, "
                f"{preprocessing.channels}]",
            )


def each_input_advice(
    specs: Sequence[TensorSpec], columns: Mapping[str, Sequence[str]] | None
) -> str:
    """Return what to do with a model that has an input for each column of a table."""
    if len(specs) == 1 or any((spec.shape or ())[1:] != (1,) for spec in specs):
        return ""
    found = (columns or {}).get(ANY_INPUT)
    if found is None:
        return "; send an array of shape [rows, 1] for each of them, or a table with these columns"
    names = [spec.name for spec in specs]
    missing = [name for name in names if name not in found]
    if not missing:
        return "; each is read from the column of its name: leave `inputs` out of config.columns"
    others = [name for name in found if name not in names]
    return (
        f"; each is read from the column of its name, and there is none for {listed(missing)}"
        + (f", but {listed(others)}" if others else "")
        + f"{nearest(missing, others)}; rename columns, or name the column of every input in "
        f"config.columns (--columns {missing[0]}='its column'"
        + "".join(
            f" --columns {shlex.quote(f'{name}={name}')}"
            for name in names[:MOST_NAMED]
            if name in found
        )
        + (" …)" if len(names) > MOST_NAMED else ")")
    )


def shape_advice(wanted: Sequence[int | None], found: Sequence[int]) -> str:
    """Return how to bring an array to the shape, if it is a frequent mistake."""
    if _fits(wanted[1:], found):
        return "; wrap one row in a list (x[None])"
    if len(wanted) == IMAGE_AXES == len(found) + 1:
        for index, axis in ((":, None", 1), ("..., None", 3)):
            with_channel = [*found[:axis], 1, *found[axis:]]
            if _fits(wanted, with_channel):
                return f"; write x[{index}]"
    if len(found) == len(wanted) == IMAGE_AXES:
        rows, height, width, channels = found
        for axes, moved in (
            ("0, 3, 1, 2", (rows, channels, height, width)),
            ("0, 2, 3, 1", (rows, width, channels, height)),
        ):
            if _fits(wanted, moved):
                return f"; write x.transpose({axes})"
    return ""


def _fits(wanted: Sequence[int | None], shape: Sequence[int]) -> bool:
    return len(wanted) == len(shape) and all(
        w in (None, f) for w, f in zip(wanted, shape, strict=True)
    )


def axis_advice(sample: Sequence[int | None] | None, shape: Sequence[int]) -> str:
    """Return how to export a model whose input has the shape of one sample, without rows."""
    if not sample or sample[0] in (None, 1) or not _fits(sample, shape[1:]):
        return ""
    axes = ", ".join("any" if size is None else str(size) for size in sample)
    return (
        f": the model's input has the shape of one sample, [{axes}], without an axis for the rows; "
        "export the model with a first axis of free size, in PyTorch from an example x[None] with "
        "dynamic_axes"
    )


def count_advice(wanted: Sequence[int | None], found: Sequence[int], columns: Sequence[str]) -> str:
    """Return how many columns a table has too many or too few, and which ones are left over."""
    if len(wanted) != MATRIX_AXES or len(found) != MATRIX_AXES or not wanted[1]:
        return ""
    n_wanted, n_more = wanted[1], found[1] - wanted[1]
    count = f"{abs(n_more)} column{'' if abs(n_more) == 1 else 's'}"
    if n_more < 0:
        return f"; {count} too few"
    if len(columns) != found[1]:  # they are those of the calibration set
        return f"; {count} too many"
    left = [name for name in columns if _IDENTIFIER.fullmatch(name)]
    which = f"perhaps {listed(left)}"
    if len(left) != n_more:
        which = f"after the first {n_wanted}: {listed(columns[n_wanted:])}"
    return (
        f"; {count} too many ({which}); leave out what is no feature, or name the features in "
        "config.columns (--columns)"
    )


def made_shape(preprocessing: Preprocessing) -> tuple[int | None, ...]:
    """Return the shape of pictures after preprocessing; None for sizes that vary."""
    height, width = preprocessing.crop or (None, None)
    if preprocessing.crop is None and isinstance(preprocessing.resize, tuple):
        height, width = preprocessing.resize
    shapes: Mapping[str, tuple[int | None, ...]] = {
        "nchw": (None, preprocessing.channels, height, width),
        "nhwc": (None, height, width, preprocessing.channels),
        "nhw": (None, height, width),
    }
    return shapes[preprocessing.layout]


def options_advice(asked: Preprocessing, taken: Sequence[int | None]) -> str:
    """Return the options that make what the model takes, of a shape with the rows first."""
    layout = _layout_of(taken)
    if layout is None:
        return "layout, colour, and crop or resize"
    channels = {"nchw": 1, "nhwc": -1}.get(layout)
    grey = channels is None or taken[channels] == 1
    height, width = taken[2:] if layout == "nchw" else taken[1:3]
    options: list[str] = []
    if grey != (asked.colour == "grey"):
        options.append(f'colour to "{"grey" if grey else "rgb"}"')
        if len({*asked.mean}) > 1 or len({*asked.std}) > 1:
            options.append('preset to "unit" (or mean and std to one number each)')
    if layout != asked.layout:
        options.append(f'layout to "{layout}"')
    made = (
        made_shape(structs.replace(asked, layout="nchw"))[2:]
        if asked.layout != "nhw"
        else (None, None)
    )
    if height and width and made not in ((None, None), (height, width)):
        options += [f"resize to [{height}, {width}]", "crop to null"]
    *most, last = options or ["layout, colour, and crop or resize"]
    return f"{', '.join(most)} and {last}" if most else last


def _layout_of(taken: Sequence[int | None]) -> Layout | None:
    """Return the layout of the model's input by its number of channels; None if it has none."""
    if len(taken) == IMAGE_AXES - 1:
        return "nhw"
    if len(taken) != IMAGE_AXES:
        return None
    layouts: tuple[tuple[Layout, int], ...] = (("nchw", 1), ("nhwc", 3))
    return next((layout for layout, axis in layouts if taken[axis] in (1, 3)), None)
