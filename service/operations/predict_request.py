"""The JSON body of POST /predict."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidInput, MalformedRequest, TooLarge
from service.operations.tensors import read_tensor
from service.storage.references import shown

Arrays = Mapping[str, NDArray[np.generic]]
SUM_TOLERANCE = 1e-3


class PredictRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One request; exactly one of ``inputs``, ``logits`` and ``probabilities``.

    ``supplied`` has the rows' own uncertainties, by name, where one of them answers.
    """

    calibration: str
    inputs: msgspec.Raw = msgspec.Raw()
    logits: msgspec.Raw = msgspec.Raw()
    probabilities: msgspec.Raw = msgspec.Raw()
    supplied: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(PredictRequest)
_by_name = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parse_predict_request(body: bytes) -> PredictRequest:
    """Read the request's outer object; the arrays inside stay unread.

    Raises
    ------
    MalformedRequest
        If the body is no JSON.
    InvalidInput
        If a field is missing, unknown or of the wrong type.
    """
    try:
        request = _decoder.decode(body)
    except msgspec.ValidationError as error:
        # It quotes names of fields as they were sent.
        raise InvalidInput.at("body", shown(str(error))[1:-1]) from error
    except RecursionError as error:
        raise MalformedRequest.at("body", "the lists are nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest.at("body", f"expected a JSON object: {error}") from error
    given = [field for field in ("inputs", "logits", "probabilities") if getattr(request, field)]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise InvalidInput.at(
            "body", f"expected exactly one of inputs, logits and probabilities, got {found}"
        )
    return request


def read_inputs(text: bytes, names: list[str], *, max_rows: int) -> Arrays:
    """Return the model's inputs by name; a plain list is the single input.

    Raises
    ------
    InvalidInput
        If an input is missing, unknown, or no rectangular array of numbers.
    """
    if text.lstrip()[:1] != b"{":
        if len(names) != 1:
            raise InvalidInput.at(
                "inputs", f"the model has several inputs; send an object with {', '.join(names)}"
            )
        return {names[0]: _rows(text, "inputs", max_rows)}
    try:
        parts = _by_name.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput.at("inputs", str(error)) from error
    for name in parts:
        if name not in names:
            raise InvalidInput.at(
                f"inputs.{shown(name)[1:-1]}",
                f"the model has no such input; it has {', '.join(names)}",
            )
    for name in names:
        if name not in parts:
            raise InvalidInput.at(f"inputs.{name}", "this input of the model is missing")
    arrays = {name: _rows(bytes(parts[name]), f"inputs.{name}", max_rows) for name in names}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput.at("inputs", f"every input needs the same number of rows: {lengths}")
    return arrays


def read_scores(text: bytes, kind: str, *, n_classes: int, max_rows: int) -> NDArray[np.float64]:
    """Return logits, or the logarithms of probabilities, of shape (n_samples, n_classes).

    Raises
    ------
    InvalidInput
        If the shape differs or a row is no distribution.
    """
    scores = _rows(text, kind, max_rows)
    if scores.ndim != 2 or scores.shape[1] != n_classes:  # noqa: PLR2004 - a matrix
        raise InvalidInput.at(kind, f"expected shape [rows, {n_classes}], got {list(scores.shape)}")
    if kind == "logits":
        return scores
    bad = (scores < 0).any(axis=1) | (np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE)
    if bad.any():
        raise InvalidInput.at(
            f"probabilities[{int(np.argmax(bad))}]",
            "expected non-negative values that sum to 1 within 0.001",
        )
    with np.errstate(divide="ignore"):
        return np.log(scores)


def read_supplied(
    text: bytes, names: Iterable[str], *, n_rows: int
) -> dict[str, NDArray[np.float32]]:
    """Return the supplied uncertainties that are needed, by name, one a row.

    Raises
    ------
    InvalidInput
        If one is missing or unknown, is no list of numbers, or has another length.
    """
    try:
        parts = _by_name.decode(text) if text else {}
    except msgspec.DecodeError as error:
        raise InvalidInput.at("supplied", str(error)) from error
    needed = list(names)
    for name in parts:
        if name not in needed:
            known = ", ".join(needed) or "none"
            raise InvalidInput.at("supplied", f"no event is answered by {name!r}; used: {known}")
    found = {}
    for name in needed:
        place = f"supplied.{name}"
        if name not in parts:
            raise InvalidInput.at(place, "an event is answered by this measure; send one a row")
        values = read_tensor(bytes(parts[name]), location=place)
        if values.shape != (n_rows,):
            raise InvalidInput.at(place, f"expected {n_rows} numbers, one a row")
        found[name] = values.astype(np.float32)
    return found


def _rows(text: bytes, location: str, max_rows: int) -> NDArray[np.float64]:
    array = read_tensor(text, location=location)
    if len(array) > max_rows:
        raise TooLarge.at(location, f"expected at most {max_rows} rows, got {len(array)}")
    return array
