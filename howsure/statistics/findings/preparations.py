"""Other ways to prepare inputs, to try where a model may want them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.findings.evidence import Figure, Preparation

NOT_SCALED, SCALED_TWICE = "inputs-not-scaled", "inputs-scaled-twice"
WRONG_PREPROCESSING = "wrong-preprocessing"
BYTE = 255.0
PICTURE_AXES = 4
LEAST_BYTE = 1.5  # inputs from 0 to 255 exceed it, those from 0 to 1 do not reach it
GREY, COLOURS = 1, 3
# By channels: owner, means and standard deviations of common normalisations, of values from 0 to 1.
NORMALISATIONS = {
    COLOURS: (
        ("ImageNet's", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("the", (0.5,) * COLOURS, (0.5,) * COLOURS),
    ),
    GREY: (("MNIST's", (0.1307,), (0.3081,)), ("the", (0.5,), (0.5,))),
}


def rescalings(inputs: NDArray[np.generic]) -> tuple[Preparation, ...]:
    """Return other scales to try for inputs that look like pixels.

    Inputs from 0 to 255 with a value above 1.5 are tried times ``1 / 255``, and inputs from 0 to 1
    times 255. Pictures with one or three channels are tried with the common normalisations, too.
    For any other inputs there is nothing to try.
    """
    if inputs.size == 0:
        return ()
    least, most = float(inputs.min()), float(inputs.max())
    if least < 0.0 or not 0.0 < most <= BYTE or 1.0 < most <= LEAST_BYTE:
        return ()
    unit = 1.0 if most <= 1.0 else 1.0 / BYTE
    plain = rescaling(BYTE if most <= 1.0 else unit)
    axis = _channel_axis(inputs.shape, channels=NORMALISATIONS)
    if axis is None:
        return (plain,)
    normalisations = NORMALISATIONS[inputs.shape[axis]]
    return (plain, *(rescaling(unit, *found, axis=axis) for found in normalisations))


def rescaling(
    factor: float,
    owner: str = "",
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    axis: int = 1,
) -> Preparation:
    """Return ``(inputs * factor - mean) / std``.

    Parameters
    ----------
    owner : str
        In front of "mean" in messages.
    mean, std : tuple of float
        One per channel; empty if only the factor is applied.
    axis : int
        The axis of the channels.
    """
    figures: dict[str, Figure] = {"factor": factor}
    steps = []
    if factor != 1.0:
        steps.append("multiplied by 255" if factor > 1.0 else "divided by 255")
    advice = (
        "Divide them by 255, and normalise them with the mean and standard deviation of training "
        "if it did, here and in every prediction."
    )
    if factor > 1.0:
        advice = "Send them from 0 to 255: the model seems to divide by 255 itself."
    elif mean:
        figures |= {"mean": [*mean], "std": [*std], "axis": axis}
        steps.append(f"normalised with {owner} mean {[*mean]} and standard deviation {[*std]}")
        advice = (
            "Normalise them as in training, here and in every prediction, with its mean and "
            "standard deviation if they are others."
        )
    largest = 255 if factor < 1.0 else 1
    return Preparation(
        SCALED_TWICE if factor > 1.0 else NOT_SCALED,
        f"The inputs lie between 0 and {largest}; {' and '.join(steps)}",
        advice,
        figures,
        partial(_rescaled, factor=factor, mean=mean or (0.0,), std=std or (1.0,), axis=axis),
        needs_hits=bool(mean),
    )


def _rescaled(
    inputs: NDArray[Any],
    *,
    factor: float,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    axis: int,
) -> NDArray[np.float32]:
    """Return the rescaled inputs; in float64 exact factors give exact whole numbers."""
    shape = [1] * (inputs.ndim - 1)
    if len(mean) > 1:
        shape[axis - 1] = len(mean)
    means, stds = np.reshape(mean, shape), np.reshape(std, shape)
    rescaled = np.empty(inputs.shape, dtype=np.float32)
    for row, values in zip(rescaled, inputs, strict=True):  # float64 of one row at a time
        row[...] = (values.astype(np.float64) * factor - means) / stds
    return rescaled


def rearrangements(inputs: NDArray[np.generic]) -> tuple[Preparation, ...]:
    """Return other arrangements to try for inputs that look like pictures.

    Pictures have four axes, one of them with one or three channels. Their values are inverted if
    they lie between 0 and 1, or 0 and 255; rows and columns are swapped if there are as many; three
    channels are reversed.
    """
    channels = _channel_axis(inputs.shape, channels=(GREY, COLOURS))
    if channels is None:
        return ()
    found = []
    largest = _largest(inputs)
    if largest is not None:
        words = f"each value subtracted from {largest:g}"
        figures: dict[str, Figure] = {"inverted": 1, "largest": largest}
        found.append(of_pictures(words, figures, lambda values: largest - values))
    rows, columns = (axis for axis in (1, 2, 3) if axis != channels)
    if inputs.shape[rows] == inputs.shape[columns] > 1:
        figures = {"transposed": 1, "axis": rows}
        swap = partial(np.swapaxes, axis1=rows, axis2=columns)
        found.append(of_pictures("rows and columns swapped", figures, swap))
    if inputs.shape[channels] == COLOURS:
        figures = {"channels_reversed": 1, "axis": channels}
        reverse = partial(np.flip, axis=channels)
        found.append(of_pictures("the channels in reverse order", figures, reverse))
    return tuple(found)


def of_pictures(
    words: str,
    figures: Mapping[str, Figure],
    apply: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    needs_hits: bool = True,
    changes: int = 1,
) -> Preparation:
    """Return another preparation of pictures; ``words`` say what is different."""
    advice = "Prepare pictures as in training, here and in every prediction."
    opening = f"With {words}"
    return Preparation(WRONG_PREPROCESSING, opening, advice, figures, apply, needs_hits, changes)


def _channel_axis(shape: Sequence[int], *, channels: Collection[int]) -> int | None:
    """Return the axis of pictures that has one of these numbers of channels, or None."""
    if len(shape) != PICTURE_AXES:
        return None
    return next((axis for axis in (1, 3) if shape[axis] in channels), None)


def _largest(inputs: NDArray[np.generic]) -> float | None:
    """Return the highest value a pixel can have, 1 or 255; None if these are not pixels."""
    if inputs.size == 0 or float(inputs.min()) < 0.0:
        return None
    most = float(inputs.max())
    return next((limit for limit in (1.0, BYTE) if most <= limit), None)
