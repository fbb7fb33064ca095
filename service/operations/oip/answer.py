"""The answer to an inference request: JSON, and raw tensors behind it where they are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from service.bodies.oip.datatypes import datatype_of
from service.bodies.oip.request import place_of
from service.bodies.oip.wanted import Wanted
from service.bodies.request import Array
from service.errors import InvalidInput
from service.storage.references import CalibrationRef

_encode = msgspec.json.encode


@dataclass(frozen=True)
class InferAnswer:
    """The body, and how much of it is JSON; None where all of it is."""

    body: bytes
    header_length: int | None


class _Tensor:
    """One output for all rows, from which those of a request are cut."""

    def __init__(self, name: str, array: Array, numbers: bytes) -> None:
        self._array = array
        self._text = numbers
        self._width = int(np.prod(array.shape[1:]))
        described = _encode({"name": name, "datatype": datatype_of(array.dtype)})[:-1]
        sizes = b"".join(b",%d" % size for size in array.shape[1:])
        self._head = described.replace(b"%", b"%%") + b',"shape":[%d' + sizes + b"]"

    def json(self, start: int, stop: int) -> bytes:
        """Return the tensor with its numbers."""
        width = self._width
        numbers = b",".join(self._numbers[start * width : stop * width])
        return self._head % (stop - start) + b',"data":[' + numbers + b"]}"

    def described(self, start: int, stop: int) -> bytes:
        """Return the tensor with the size of its bytes, in their place."""
        size = len(self.raw(start, stop))
        return self._head % (stop - start) + b',"parameters":{"binary_data_size":%d}}' % size

    def raw(self, start: int, stop: int) -> bytes:
        """Return the bytes of its numbers, little-endian."""
        row = self._width * self._array.itemsize
        return self._bytes[start * row : stop * row]

    @cached_property
    def _numbers(self) -> list[bytes]:
        return self._text.split(b",")

    @cached_property
    def _bytes(self) -> bytes:
        array = self._array
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


class OutputTensors:
    """All outputs for all rows of a run, in the order of ``arrays``."""

    def __init__(self, ref: CalibrationRef, arrays: Mapping[str, Array]) -> None:
        model = {"model_name": ref.name, "model_version": str(ref.version)}
        self._model = _encode(model)[:-1]
        columns = [array.ravel().tolist() for array in arrays.values()]
        texts = _encode(columns)[2:-2].split(b"],[")
        self._tensors = {
            name: _Tensor(name, array, text)
            for (name, array), text in zip(arrays.items(), texts, strict=True)
        }

    def answer(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the outputs that are wanted, in that order; all where none is named.

        Raises
        ------
        InvalidInput
            If an output is wanted that there is not.
        """
        asked = wanted.outputs or [(name, wanted.all_binary) for name in self._tensors]
        outputs: list[bytes] = []
        raw: list[bytes] = []
        for name, is_binary in asked:
            tensor = self._tensor(name)
            if is_binary:
                outputs.append(tensor.described(start, stop))
                raw.append(tensor.raw(start, stop))
            else:
                outputs.append(tensor.json(start, stop))
        named = b',"id":' + _encode(wanted.id) if wanted.id else b""
        head = b'%b%b,"outputs":[%b]}' % (self._model, named, b",".join(outputs))
        return InferAnswer(b"".join([head, *raw]), len(head) if raw else None)

    def _tensor(self, name: str) -> _Tensor:
        found = self._tensors.get(name)
        if found is None:
            known = ", ".join(self._tensors)
            raise InvalidInput.at(
                place_of("outputs", name), f"there is no such output; there are {known}"
            )
        return found
