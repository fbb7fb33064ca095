"""Findings about pictures that are prepared in another way than the training data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.findings.evidence import (
    Figure,
    Finding,
    Preparation,
    RecordedSet,
    finding,
)
from howsure.statistics.findings.inputs_scale import (
    BYTE,
    COLOURS,
    best_trial,
    channel_axis,
    mean_log_probability,
)

GREY = 1

Change = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Rearrangement:
    """A preparation, and the function that applies it to inputs."""

    how: Preparation
    apply: Change


def rearrangements(inputs: NDArray[np.generic]) -> tuple[Rearrangement, ...]:
    """Return other arrangements to try for inputs that look like pictures.

    Pictures have four axes, one of them with one or three channels. Their values are inverted if
    they lie between 0 and 1, or 0 and 255; rows and columns are swapped if there are as many; three
    channels are reversed.
    """
    channels = channel_axis(inputs.shape, channels=(GREY, COLOURS))
    if channels is None:
        return ()
    found = []
    most = _largest(inputs)
    if most is not None:
        words = f"each value subtracted from {most:g}"
        inverted = Preparation(words, {"inverted": 1, "largest": most})
        found.append(Rearrangement(inverted, lambda values: most - values))
    rows, columns = (axis for axis in (1, 2, 3) if axis != channels)
    if inputs.shape[rows] == inputs.shape[columns] > 1:
        swapped = Preparation("rows and columns swapped", {"transposed": 1, "axis": rows})
        found.append(Rearrangement(swapped, lambda values: values.swapaxes(rows, columns)))
    if inputs.shape[channels] == COLOURS:
        figures: dict[str, Figure] = {"channels_reversed": 1, "axis": channels}
        turned = Preparation("the channels in reverse order", figures)
        found.append(Rearrangement(turned, lambda values: np.flip(values, axis=channels)))
    return tuple(found)


def _largest(inputs: NDArray[np.generic]) -> float | None:
    """Return the largest value that such pixels can have, 1 or 255; None for other numbers."""
    if inputs.size == 0 or float(inputs.min()) < 0.0:
        return None
    most = float(inputs.max())
    return next((limit for limit in (1.0, BYTE) if most <= limit), None)


def wrong_preprocessing(evidence: RecordedSet) -> Finding | None:
    """Find pictures that the model wants prepared in another way.

    The rule is that of `inputs_not_scaled`: the model must be right more often, and more sure of
    the labels, at a level divided by the number of ways tried.
    """
    trial = evidence.rescaled
    best = None if trial is None else best_trial(trial)
    if trial is None or best is None:
        return None
    how, prepared = best
    if not isinstance(how, Preparation):
        return None
    return finding(
        how.code,
        "warning",
        "With {words}, {samples} samples give a Top-1 accuracy of {prepared_accuracy:percent} "
        "instead of {accuracy:percent}, and a mean log-probability of the label of "
        "{prepared_mean_log_probability:.2f} instead of {mean_log_probability:.2f}. Prepare "
        "pictures as in training, here and in every prediction.",
        words=how.words,
        accuracy=float(trial.as_sent.hits(1).mean()),
        prepared_accuracy=float(prepared.hits(1).mean()),
        mean_log_probability=mean_log_probability(trial.as_sent),
        prepared_mean_log_probability=mean_log_probability(prepared),
        samples=trial.as_sent.n_samples,
        **how.figures,
    )
