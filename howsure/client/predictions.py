"""Answers as arrays."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.client.request import Answer, FilePart, Request, address_of
from howsure.client.resources import Calibration, reference_of
from howsure.client.transport import Sender
from howsure.client.uploads import Arrays, npz_bytes, read_npz

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


NPZ = "application/x-npz"
# Limits of one request, far below the default limits of a service.
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
MOST_PICTURES = 128
ONE_OF = "expected exactly one of inputs, logits, probabilities, pixels and pictures"

Picture: TypeAlias = bytes | str | os.PathLike[str]


class Rows(Protocol):
    """Rows to be answered, of whatever kind."""

    def requests(self) -> Iterator[Request]:
        """Yield requests for some rows each, in order, that name no calibration yet."""


@dataclass(frozen=True)
class ArrayRows:
    """Arrays by name, as in an .npz; ``rows`` per request, None to choose a suitable number."""

    arrays: Arrays
    rows: int | None = None

    def requests(self) -> Iterator[Request]:
        """Yield requests for some rows each."""
        count = len(next(iter(self.arrays.values())))
        size = self.rows or self._fitting(count)
        for start in range(0, max(count, 1), size):
            rows = {name: array[start : start + size] for name, array in self.arrays.items()}
            headers = {"Content-Type": NPZ, "Accept": NPZ}
            yield Request("POST", "/predict", headers=headers, content=npz_bytes(rows))

    def _fitting(self, count: int) -> int:
        row_bytes = sum(array.nbytes for array in self.arrays.values()) // max(count, 1)
        return max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))


@dataclass(frozen=True)
class PictureRows:
    """Pictures as files, which the service makes the model's input of."""

    pictures: Sequence[Picture]
    rows: int | None = None

    def requests(self) -> Iterator[Request]:
        """Yield requests for some pictures each; a few are in memory at a time."""
        parts: list[FilePart] = []
        held = 0
        for number, picture in enumerate(self.pictures):
            name, content = _picture(picture, number)
            if parts and (len(parts) == (self.rows or MOST_PICTURES) or held > MOST_BYTES):
                yield self._request(parts)
                parts, held = [], 0
            parts.append(("picture", (name, content)))
            held += len(content)
        yield self._request(parts)

    @staticmethod
    def _request(parts: Sequence[FilePart]) -> Request:
        return Request("POST", "/predict", headers={"Accept": NPZ}, parts=parts)


def _picture(picture: Picture, number: int) -> tuple[str, bytes]:
    """Return a picture's name, by which a refusal calls it, and its bytes."""
    if isinstance(picture, bytes):
        return f"picture {number}", picture
    path = Path(picture)
    return path.name, path.read_bytes()


def rows_of(
    inputs: ArrayLike | Mapping[str, ArrayLike] | None,
    outputs: Mapping[str, ArrayLike | None],
    supplied: Mapping[str, ArrayLike] | None,
) -> Arrays:
    """Return the request as arrays by name.

    Raises
    ------
    ValueError
        If it is not exactly one of inputs, logits and probabilities, or lengths differ.
    """
    given: dict[str, ArrayLike] = {n: array for n, array in outputs.items() if array is not None}
    if (inputs is not None) + len(given) != 1:
        raise ValueError(ONE_OF)
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif inputs is not None:
        given = {"inputs": inputs}
    given |= {f"uncertainty_{name}": column for name, column in (supplied or {}).items()}
    arrays = {name: np.asarray(array) for name, array in given.items()}
    lengths = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(lengths.values())) != 1 or None in lengths.values():
        raise ValueError(f"expected arrays with the same number of rows, got {lengths}")
    return arrays


async def predict(
    sender: Sender,
    calibration: Calibration | str,
    rows: Rows,
    class_names: dict[str, tuple[str, ...]],
    seconds: float | None,
) -> Predictions:
    """Ask for all rows; ``class_names`` caches the classes of calibrations, by their id."""
    reference, parts = reference_of(calibration), []
    timeout = {} if seconds is None else {"Timeout": f"{seconds:g}"}
    for request in rows.requests():
        named = replace(
            request, params={"calibration": reference}, headers={**request.headers, **timeout}
        )
        answer = await sender.send(named)
        served = _served_calibration(answer)
        # All rows by the same version, whatever becomes the newest meanwhile.
        reference = served["id"]
        if reference not in class_names:
            found = await sender.send(Request("GET", address_of(reference)))
            class_names[reference] = Calibration.of(found.json()).classes
        name = f"{served['name']}@{served['version']}"
        parts.append(Predictions(read_npz(answer.content), reference, name, class_names[reference]))
    return Predictions.joined(parts)


def _served_calibration(answer: Answer) -> dict[str, str]:
    """Read which calibration answered, from its header."""
    pairs = answer.headers["howsure-calibration"].split("; ")
    return dict(pair.split("=", 1) for pair in pairs)
