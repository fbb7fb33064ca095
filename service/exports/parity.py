"""Comparison of an exported file's answers with the service's on the same rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from service.errors import Conflict
from service.predictions.lookup import PredictionBatch
from service.runner.messages.frames import Array

MAX_DIFFERENCE = 1e-6
TOP_CLASSES = "topk_class"


@dataclass(frozen=True)
class Parity:
    """Differences between the exported file and the service."""

    samples: Annotated[int, Field(description="Rows of the calibration set that both answered.")]
    classes: Annotated[int, Field(description="Rows with another class.")]
    bins: Annotated[int, Field(description="Rows with another bin.")]
    probability: Annotated[
        float, Field(description="Largest difference of a probability or interval end.")
    ]

    def __str__(self) -> str:
        """Return the value of the header."""
        return (
            f"samples={self.samples}; classes={self.classes}; bins={self.bins}; "
            f"probability={self.probability:.2g}"
        )


def compare_answers(ours: PredictionBatch, theirs: Mapping[str, Array]) -> Parity:
    """Compare the service's answers with a file's outputs.

    Raises
    ------
    Conflict
        If the file lacks an output, or it is not a number for each row.
    """
    prefix = _prefix(theirs)

    def output(name: str) -> Array:
        found = theirs.get(prefix + name)
        if found is None or found.shape != (len(ours.classes),):
            raise Conflict(f"The exported file lacks the output {prefix + name}.")
        return found

    other_class = output("class") != ours.classes[:, 0]
    other_bin = np.zeros(len(other_class), dtype=np.bool_)
    difference = 0.0
    for answer in ours.events:
        name = f"top{answer.event.k}"
        other_bin |= output(f"{name}_bin") != answer.found.bin
        for part in ("probability", "lower", "upper"):
            own = getattr(answer.found, part)
            apart = np.abs(output(f"{name}_{part}").astype(np.float64) - own)
            # NaN instead of a finite number counts as the largest difference.
            difference = max(difference, float(np.nan_to_num(apart, nan=1.0).max()))
    return Parity(
        samples=len(other_class),
        classes=int(np.count_nonzero(other_class)),
        bins=int(np.count_nonzero(other_bin)),
        probability=min(difference, 1.0),
    )


def _prefix(outputs: Mapping[str, Array]) -> str:
    """Return the prefix of the file's own outputs, used if the model has outputs of those names."""
    name = next((name for name in outputs if name.endswith(TOP_CLASSES)), TOP_CLASSES)
    return name.removesuffix(TOP_CLASSES)


def require_parity(parity: Parity) -> None:
    """Refuse a file whose answers differ.

    Raises
    ------
    Conflict
        With the figures.
    """
    if parity.classes or parity.bins or parity.probability > MAX_DIFFERENCE:
        raise Conflict(
            "The exported model differs from the service and is withheld: of "
            f"{parity.samples} rows, {parity.classes} have another class, {parity.bins} another "
            f"bin; largest probability difference {parity.probability:.2g}."
        )
