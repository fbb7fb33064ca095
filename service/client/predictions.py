"""Answers as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from service.client.npz import Arrays

Array = NDArray[Any]
ABSTAIN = "abstain_"


@dataclass(frozen=True)
class EventPredictions:
    """One event, that the label is among the k most probable classes; a row a sample.

    Attributes
    ----------
    probability, lower, upper : float32, shape (n,)
        The calibrated probability that the event holds, and its interval.
    uncertainty : float32, shape (n,)
        The measure; larger is more uncertain.
    bin : int64, shape (n,)
        Where that lies; 0 is the most certain bin.
    """

    probability: Array
    lower: Array
    upper: Array
    uncertainty: Array
    bin: Array


@dataclass(frozen=True)
class Predictions:
    """The answers for n rows, in their order.

    Attributes
    ----------
    arrays
        As the service names them (docs/http.md); ``predictions["top1_probability"]`` is one.
    calibration_id, reference
        What answered: its id, and ``name@version``.
    classes
        Names of all classes, by index.
    """

    arrays: Arrays
    calibration_id: str
    reference: str
    classes: Sequence[str]

    def __len__(self) -> int:
        return len(self.arrays["class"])

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @property
    def class_(self) -> Array:
        """The most probable class: int64, shape (n,)."""
        return self.arrays["class"]

    @property
    def label(self) -> list[str]:
        """Its name."""
        return [self.classes[index] for index in self.class_]

    @property
    def topk_class(self) -> Array:
        """The most probable classes, five at most: int64, shape (n, m)."""
        return self.arrays["topk_class"]

    @property
    def topk_score(self) -> Array:
        """The model's own softmax of each, which is not calibrated: float32, shape (n, m)."""
        return self.arrays["topk_score"]

    @property
    def events(self) -> Mapping[int, EventPredictions]:
        """Each event of the calibration, by k."""
        names = (name for name in self.arrays if name.endswith("_probability"))
        return {k: self.event(k) for k in (int(name[3 : name.index("_")]) for name in names)}

    def event(self, k: int) -> EventPredictions:
        """Return one event.

        Raises
        ------
        KeyError
            If the calibration has no Top-k.
        """
        parts = ("probability", "lower", "upper", "uncertainty", "bin")
        return EventPredictions(*(self.arrays[f"top{k}_{part}"] for part in parts))

    @property
    def top1(self) -> EventPredictions:
        """That `class_` is right."""
        return self.event(1)

    @property
    def top5(self) -> EventPredictions:
        """That the label is among the first five classes."""
        return self.event(5)

    @property
    def out_of_distribution(self) -> Array | None:
        """Whether a row is less certain than nearly all of the calibration set: bool, (n,)."""
        return self.arrays.get("out_of_distribution")

    @property
    def abstain(self) -> Mapping[str, Array]:
        """By ``max_risk``: whether to leave a row to somebody else: bool, shape (n,)."""
        return {
            name.removeprefix(ABSTAIN): array
            for name, array in self.arrays.items()
            if name.startswith(ABSTAIN)
        }

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several, one behind the other."""
        first = parts[0]
        if len(parts) == 1:
            return first
        arrays = {
            name: np.concatenate([part.arrays[name] for part in parts]) for name in first.arrays
        }
        return cls(arrays, first.calibration_id, first.reference, first.classes)
