"""Predictions as arrays, named as the outputs of an exported file."""

from math import prod
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from howsure.statistics.label_model.class_list import class_probability_array
from service.errors import InvalidInput
from service.predictions.lookup import PredictionBatch
from service.predictions.served_calibration import OutputType, ServedCalibration
from service.runner.messages.open_inference import (
    DATATYPES,
    RequestedOutputs,
    datatype_of,
    place_of,
)

Arrays = dict[str, NDArray[np.generic]]


def prediction_arrays(batch: PredictionBatch) -> Arrays:
    """Return the answer as arrays with a row a sample, N in all, in a fixed order.

    ``class`` int64 (N,), ``topk_class`` int64 and ``topk_score`` float32 (N, m); where Top-1 is
    among the events ``topk_probability`` float32 (N, m); for each event k
    ``top{k}_probability``, ``top{k}_lower``, ``top{k}_upper``, ``top{k}_uncertainty`` float32 (N,)
    and ``top{k}_bin`` int64 (N,). Where Top-1 is among them: ``out_of_distribution`` bool (N,), if
    it has a threshold, and for each risk ``abstain_{risk}`` bool (N,), the first also as
    ``abstain``. Where ``jacobian_norm`` serves an event, ``adversarial`` bool (N,). Answers to
    pairs have no classes. A risk without a threshold abstains from every row.
    """
    served = batch.calibration
    arrays: Arrays = _class_arrays(batch) if served.has_classes else {}
    for answer in batch.events:
        name, found = answer.event.name, answer.float32()
        arrays[f"{name}_probability"] = found[:, 0]
        arrays[f"{name}_lower"] = found[:, 1]
        arrays[f"{name}_upper"] = found[:, 2]
        arrays[f"{name}_uncertainty"] = answer.uncertainty
        arrays[f"{name}_bin"] = answer.bins
    if batch.calibration.top1 is not None:
        _add_flags(batch, arrays)
    if batch.adversarial is not None:
        arrays["adversarial"] = batch.adversarial
    return arrays


def _class_arrays(batch: PredictionBatch) -> Arrays:
    classes, served = batch.classes, batch.calibration
    arrays: Arrays = {"class": classes[:, 0], "topk_class": classes, "topk_score": batch.scores}
    if served.top1 is not None:
        first = batch.events[served.top1].probability
        shares = class_probability_array(first, batch.shares)
        arrays["topk_probability"] = shares.astype(np.float32)
    return arrays


def _add_flags(batch: PredictionBatch, arrays: Arrays) -> None:
    if batch.out_of_distribution is not None:
        arrays["out_of_distribution"] = batch.out_of_distribution
    for name, left in batch.abstain.items():
        arrays.setdefault("abstain", left)
        arrays[f"abstain_{name}"] = left


class OutputTensor(msgspec.Struct, omit_defaults=True, gc=False):
    """An output in JSON; raw outputs have ``parameters`` instead of ``data``."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, int] | None = None
    data: list[Any] | None = None


class AnswerHead(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """The JSON of a response."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


# Of one calibration; requests with other numbers of rows or outputs are written anew.
MOST_HEADS = 64

Column: TypeAlias = tuple[OutputType, list[Any] | bytes]


class TensorAnswers:
    """The outputs for all rows of a run, cut into the responses of its requests."""

    def __init__(self, served: ServedCalibration, arrays: Arrays) -> None:
        self._ref = served.ref
        self._types, self._heads = served.output_types, served.output_heads
        self._arrays = arrays
        self._prepared: dict[tuple[str, bool], Column] = {}
        self._wanted: RequestedOutputs | None = None
        self._columns: list[Column] = []

    def encode(self, start: int, stop: int, wanted: RequestedOutputs) -> tuple[bytes, int | None]:
        """Return a body with the requested outputs; all if none is named.

        The second value is the length of the JSON; None if the body is JSON alone.

        Raises
        ------
        InvalidInput
            If a requested output does not exist.
        """
        if wanted is not self._wanted:
            self._columns = self._columns_of(wanted)
            # Most requests of a run share one `RequestedOutputs` object.
            self._wanted = wanted
        tensors = [
            values[start * output.row_bytes : stop * output.row_bytes]
            for output, values in self._columns
            if isinstance(values, bytes)
        ]
        if wanted.id or len(tensors) < len(self._columns):
            text = self._head(start, stop, wanted)
        else:
            # The JSON holds no values: it is the same for all such requests of as many rows.
            names = (output.name for output, _ in self._columns)
            key: tuple[int | str, ...] = (stop - start, *names)
            known = self._heads.get(key)
            text = known or self._head(start, stop, wanted)
            if known is None and len(self._heads) < MOST_HEADS:
                self._heads[key] = text
        return (b"".join([text, *tensors]), len(text)) if tensors else (text, None)

    def _head(self, start: int, stop: int, wanted: RequestedOutputs) -> bytes:
        """Return the JSON of a response."""
        outputs = []
        for (name, datatype, sizes, per_row, row_bytes), values in self._columns:
            tensor = OutputTensor(name, datatype, [stop - start, *sizes])
            if isinstance(values, bytes):
                tensor.parameters = {"binary_data_size": (stop - start) * row_bytes}
            else:
                tensor.data = values[start * per_row : stop * per_row]
            outputs.append(tensor)
        ref = self._ref
        head = AnswerHead(
            model_name=ref.name,
            model_version=str(ref.version),
            id=wanted.id or None,
            outputs=outputs,
        )
        return msgspec.json.encode(head)

    def _columns_of(self, wanted: RequestedOutputs) -> list[Column]:
        outputs = wanted.outputs
        if not outputs:
            outputs = [(name, wanted.all_binary) for name in self._arrays]
        return [self._column(name, raw=raw) for name, raw in outputs]

    def _column(self, name: str, *, raw: bool) -> Column:
        found = self._prepared.get((name, raw))
        if found is not None:
            return found
        array = self._arrays.get(name)
        if array is None:
            known = ", ".join(self._arrays)
            raise InvalidInput.at(
                place_of("outputs", name), f"there is no such output; there are {known}"
            )
        output = self._types.get(name)
        if output is None:
            output = self._types[name] = _output_type(name, array)
        if raw:
            values = array.astype(DATATYPES[output.datatype], copy=False).tobytes()
        else:
            values = (array.ravel() if output.sizes else array).tolist()
        self._prepared[name, raw] = output, values
        return output, values


def _output_type(name: str, array: NDArray[np.generic]) -> OutputType:
    per_row = prod(array.shape[1:])
    row_bytes = per_row * array.itemsize
    return OutputType(name, datatype_of(array.dtype), array.shape[1:], per_row, row_bytes)
