"""The answer to an inference request: JSON, and raw tensors behind it where they are asked for."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

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


class OutputTensors:
    """All outputs for all rows of a run, from which the answers to its requests are cut."""

    def __init__(
        self,
        ref: CalibrationRef,
        numbers: Callable[[], Mapping[str, Column]],
        raw: Callable[[], Mapping[str, Column]],
    ) -> None:
        self._ref = ref
        self._make_numbers = numbers
        self._make_raw = raw

    @classmethod
    def of_arrays(cls, ref: CalibrationRef, arrays: Mapping[str, Array]) -> "OutputTensors":
        """Return those of arrays with a row a sample."""
        return cls(
            ref,
            lambda: {name: _numbers(array) for name, array in arrays.items()},
            lambda: {name: _raw(array) for name, array in arrays.items()},
        )

    @classmethod
    def of_numbers(cls, ref: CalibrationRef, numbers: Mapping[str, Column]) -> "OutputTensors":
        """Return those whose numbers are known."""
        return cls(ref, lambda: numbers, lambda: {n: _packed(c) for n, c in numbers.items()})

    def encode_answer(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the outputs that are wanted, in that order; all where none is named.

        Raises
        ------
        InvalidInput
            If an output is wanted that there is not.
        """
        columns: Iterable[tuple[str, Column]]
        if wanted.outputs:
            columns = [(name, self._column(name, raw=raw)) for name, raw in wanted.outputs]
        else:
            columns = (self._bytes if wanted.all_binary else self._numbers).items()
        n_rows = stop - start
        outputs: list[OutputTensor] = []
        tensors: list[bytes] = []
        for name, (datatype, sizes, a_row, values) in columns:
            own = values[start * a_row : stop * a_row]
            shape = [n_rows, *sizes]
            if isinstance(own, bytes):
                tensors.append(own)
                size = {"binary_data_size": len(own)}
                outputs.append(OutputTensor(name, datatype, shape, size))
            else:
                outputs.append(OutputTensor(name, datatype, shape, None, own))
        ref = self._ref
        head = AnswerHead(
            model_name=ref.name,
            model_version=str(ref.version),
            id=wanted.id or None,
            outputs=outputs,
        )
        text = msgspec.json.encode(head)
        return InferAnswer(b"".join([text, *tensors]), len(text) if tensors else None)

    def _column(self, name: str, *, raw: bool) -> Column:
        if name not in self._numbers:
            known = ", ".join(self._numbers)
            raise InvalidInput.at(
                place_of("outputs", name), f"there is no such output; there are {known}"
            )
        return (self._bytes if raw else self._numbers)[name]

    @cached_property
    def _numbers(self) -> Mapping[str, Column]:
        return self._make_numbers()

    @cached_property
    def _bytes(self) -> Mapping[str, Column]:
        return self._make_raw()


def _numbers(array: Array) -> Column:
    sizes = array.shape[1:]
    return Column(datatype_of(array.dtype), sizes, prod(sizes), array.ravel().tolist())


def _raw(array: Array) -> Column:
    datatype, sizes = datatype_of(array.dtype), array.shape[1:]
    raw = array.astype(DATATYPES[datatype], copy=False).tobytes()  # little-endian
    return Column(datatype, sizes, prod(sizes) * array.itemsize, raw)


def _packed(column: Column) -> Column:
    datatype, sizes, a_row, numbers = column
    dtype = DATATYPES[datatype]
    return Column(datatype, sizes, a_row * dtype.itemsize, np.array(numbers, dtype).tobytes())
