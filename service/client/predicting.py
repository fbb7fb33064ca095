"""Predictions: rows cut into requests, and what comes back put together."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from service.client.calibration import Calibration, reference_of
from service.client.npz import Arrays, npz_bytes, read_npz
from service.client.predictions import Predictions
from service.client.request import Answer, FilePart, Request, address_of
from service.client.retrying import asked
from service.client.steps import Steps

NPZ = "application/x-npz"
# Of one request, far below what a service takes unless it was told otherwise.
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
MOST_PICTURES = 128
ONE_OF = "expected exactly one of inputs, logits, probabilities, pixels and pictures"

Picture: TypeAlias = bytes | str | os.PathLike[str]


class Asked(Protocol):
    """Rows to be answered, of whatever kind."""

    def requests(self) -> Iterator[Request]:
        """Yield requests for some rows each, in order, that name no calibration yet."""


@dataclass(frozen=True)
class AskedArrays:
    """Arrays by name, as an .npz holds them; ``rows`` go into a request, None for what suits."""

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
class AskedPictures:
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
    """Return what is asked as arrays by name.

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


def predicted(
    calibration: Calibration | str,
    what: Asked,
    class_names: dict[str, tuple[str, ...]],
    *,
    seconds: float | None,
    retries: int,
) -> Steps[Predictions]:
    """Ask for all rows; ``class_names`` keeps what was learnt of calibrations, by their id."""
    reference, parts = reference_of(calibration), []
    timeout = {} if seconds is None else {"Timeout": f"{seconds:g}"}
    for request in what.requests():
        named = replace(
            request, params={"calibration": reference}, headers={**request.headers, **timeout}
        )
        answer = yield from asked(named, retries=retries)
        told = _told(answer)
        # All rows by the same version, whatever becomes the newest meanwhile.
        reference = told["id"]
        if reference not in class_names:
            found = yield from asked(Request("GET", address_of(reference)), retries=retries)
            class_names[reference] = Calibration.of(found.json()).classes
        name = f"{told['name']}@{told['version']}"
        parts.append(Predictions(read_npz(answer.content), reference, name, class_names[reference]))
    return Predictions.joined(parts)


def _told(answer: Answer) -> dict[str, str]:
    """Read which calibration answered, from its header."""
    pairs = answer.headers["howsure-calibration"].split("; ")
    return dict(pair.split("=", 1) for pair in pairs)
