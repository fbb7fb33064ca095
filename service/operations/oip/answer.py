"""The answer to an inference request: JSON, and raw tensors behind it where they are asked for."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from service.bodies.oip.datatypes import DATATYPES, datatype_of
from service.bodies.oip.request import place_of
from service.bodies.oip.wanted import Wanted
from service.bodies.request import Array
from service.errors import InvalidInput
from service.storage.references import CalibrationRef


class InferAnswer(msgspec.Struct, frozen=True):
    """The body, and how much of it is JSON; None where all of it is."""

    body: bytes
    header_length: int | None


class OutputTensor(msgspec.Struct, omit_defaults=True, gc=False):
    """One output as JSON; with ``parameters`` in the place of ``data`` where that is raw."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, int] | None = None
    data: list[Any] | None = None


class AnswerHead(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """The JSON of an answer."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


class Column(NamedTuple):
    """An output for all rows of a run: its numbers, or their bytes, and how many make a row."""

    datatype: str
    sizes: tuple[int, ...]
    a_row: int
    values: list[Any] | bytes


class Outputs(Protocol):
    """All outputs for all rows of a run."""

    @property
    def names(self) -> Sequence[str]:
        """What they are called, in their order."""

    def numbers(self, name: str) -> Column:
        """Return one of them as numbers."""

    def raw(self, name: str) -> Column:
        """Return one of them as little-endian bytes."""


class OutputTensors:
    """From the outputs for all rows of a run to the answers to its requests."""

    def __init__(self, ref: CalibrationRef, outputs: Outputs) -> None:
        self._ref = ref
        self._version = str(ref.version)
        self._outputs = outputs
        self._numbers: dict[str, Column] = {}
        self._raw: dict[str, Column] = {}
        self._wanted: Wanted | None = None
        self._columns: list[tuple[str, Column]] = []

    def encode_answer(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the outputs that are wanted, in that order; all where none is named.

        Raises
        ------
        InvalidInput
            If an output is wanted that there is not.
        """
        if wanted is not self._wanted:
            self._columns = self._columns_of(wanted)
            # Most requests of a run want the same, of which there is but one object.
            self._wanted = wanted
        n_rows = stop - start
        outputs: list[OutputTensor] = []
        tensors: list[bytes] = []
        for name, (datatype, sizes, a_row, values) in self._columns:
            own = values[start * a_row : stop * a_row]
            shape = [n_rows, *sizes]
            if isinstance(own, bytes):
                tensors.append(own)
                size = {"binary_data_size": len(own)}
                outputs.append(OutputTensor(name, datatype, shape, size))
            else:
                outputs.append(OutputTensor(name, datatype, shape, None, own))
        head = AnswerHead(
            model_name=self._ref.name,
            model_version=self._version,
            id=wanted.id or None,
            outputs=outputs,
        )
        text = msgspec.json.encode(head)
        if not tensors:
            return InferAnswer(text, None)
        return InferAnswer(b"".join([text, *tensors]), len(text))

    def _columns_of(self, wanted: Wanted) -> list[tuple[str, Column]]:
        outputs = wanted.outputs
        if not outputs:
            outputs = [(name, wanted.all_binary) for name in self._outputs.names]
        return [(name, self._column(name, raw=raw)) for name, raw in outputs]

    def _column(self, name: str, *, raw: bool) -> Column:
        found = (self._raw if raw else self._numbers).get(name)
        if found is not None:
            return found
        if name not in self._outputs.names:
            known = ", ".join(self._outputs.names)
            raise InvalidInput.at(
                place_of("outputs", name), f"there is no such output; there are {known}"
            )
        if raw:
            found = self._raw[name] = self._outputs.raw(name)
        else:
            found = self._numbers[name] = self._outputs.numbers(name)
        return found


class ArrayOutputs:
    """Outputs as arrays with a row a sample; see `Outputs`."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.names = tuple(arrays)
        self._arrays = arrays

    def numbers(self, name: str) -> Column:
        """Return one of them as numbers."""
        array = self._arrays[name]
        sizes = array.shape[1:]
        return Column(datatype_of(array.dtype), sizes, prod(sizes), array.ravel().tolist())

    def raw(self, name: str) -> Column:
        """Return one of them as little-endian bytes."""
        array = self._arrays[name]
        datatype, sizes = datatype_of(array.dtype), array.shape[1:]
        raw = array.astype(DATATYPES[datatype], copy=False).tobytes()
        return Column(datatype, sizes, prod(sizes) * array.itemsize, raw)


def packed(column: Column) -> Column:
    """Return an output's numbers as bytes."""
    datatype, sizes, a_row, numbers = column
    dtype = DATATYPES[datatype]
    return Column(datatype, sizes, a_row * dtype.itemsize, np.array(numbers, dtype).tobytes())
