"""Predictions: rows cut into requests, and what comes back put together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from service.client.calibration import Calibration, reference_of
from service.client.npz import Arrays, npz_bytes, read_npz
from service.client.predictions import Predictions
from service.client.request import Answer, Request, address_of
from service.client.retrying import asked
from service.client.steps import Steps

NPZ = "application/x-npz"
# Of one request, far below what a service takes unless it was told otherwise.
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Asked:
    """Rows to be answered: arrays by name, as an .npz holds them.

    ``rows`` is how many go into a request, None for as many as suit; ``seconds`` what each may
    take.
    """

    arrays: Arrays
    rows: int | None = None
    seconds: float | None = None

    def batches(self) -> Iterator[Arrays]:
        """Yield the rows of one request after the other."""
        count = len(next(iter(self.arrays.values())))
        size = self.rows or self._fitting()
        for start in range(0, max(count, 1), size):
            yield {name: array[start : start + size] for name, array in self.arrays.items()}

    def _fitting(self) -> int:
        count = len(next(iter(self.arrays.values())))
        row_bytes = sum(array.nbytes for array in self.arrays.values()) // max(count, 1)
        return max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))


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
        raise ValueError("expected exactly one of inputs, logits, probabilities and pixels")
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
    retries: int,
) -> Steps[Predictions]:
    """Ask for all rows; ``class_names`` keeps what was learnt of calibrations, by their id."""
    reference, parts = reference_of(calibration), []
    for batch in what.batches():
        request = predict_request(reference, batch, seconds=what.seconds)
        answer = yield from asked(request, retries=retries)
        told = _told(answer)
        # All rows by the same version, whatever becomes the newest meanwhile.
        reference = told["id"]
        if reference not in class_names:
            found = yield from asked(Request("GET", address_of(reference)), retries=retries)
            class_names[reference] = Calibration.of(found.json()).classes
        name = f"{told['name']}@{told['version']}"
        parts.append(Predictions(read_npz(answer.content), reference, name, class_names[reference]))
    return Predictions.joined(parts)


def predict_request(reference: str, arrays: Arrays, *, seconds: float | None = None) -> Request:
    """Return the request for some rows, arrays in and arrays out."""
    headers = {"Content-Type": NPZ, "Accept": NPZ}
    if seconds is not None:
        headers["Timeout"] = f"{seconds:g}"
    params = {"calibration": reference}
    return Request("POST", "/predict", params, headers, content=npz_bytes(arrays))


def _told(answer: Answer) -> dict[str, str]:
    """Read which calibration answered, from its header."""
    pairs = answer.headers["howsure-calibration"].split("; ")
    return dict(pair.split("=", 1) for pair in pairs)
