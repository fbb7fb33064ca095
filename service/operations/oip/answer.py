"""The answer to an inference request: JSON, and raw tensors behind it where they are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from weakref import WeakKeyDictionary

import msgspec

from service.bodies.oip.datatypes import datatype_of
from service.bodies.oip.request import place_of
from service.bodies.oip.wanted import Wanted
from service.bodies.request import Array
from service.errors import InvalidInput
from service.operations.served import ServedCalibration

_encode = msgspec.json.encode


@dataclass(frozen=True)
class InferAnswer:
    """The body, and how much of it is JSON; None where all of it is."""

    body: bytes
    header_length: int | None


@dataclass(frozen=True)
class _Output:
    """One output, whatever its rows.

    ``json`` lacks the number of rows and the numbers, ``raw`` the number of rows and of bytes.
    """

    json: bytes
    raw: bytes
    numbers_a_row: int
    bytes_a_row: int

    @classmethod
    def like(cls, name: str, array: Array) -> "_Output":
        """Describe an output by an array of any number of rows."""
        named = _encode({"name": name, "datatype": datatype_of(array.dtype)})[:-1]
        sizes = b"".join(b",%d" % size for size in array.shape[1:])
        shaped = named.replace(b"%", b"%%") + b',"shape":[%d' + sizes + b"]"
        numbers = prod(array.shape[1:])
        return cls(
            json=shaped + b',"data":[%b]}',
            raw=shaped + b',"parameters":{"binary_data_size":%d}}',
            numbers_a_row=numbers,
            bytes_a_row=numbers * array.itemsize,
        )


class _Layout:
    """What is the same in all answers of a calibration."""

    def __init__(self, served: ServedCalibration, arrays: Mapping[str, Array]) -> None:
        model = {"model_name": served.ref.name, "model_version": str(served.ref.version)}
        self.model = _encode(model)[:-1]
        self.outputs = {name: _Output.like(name, array) for name, array in arrays.items()}
        # By whether they are to be raw.
        self.all = [[(name, is_binary) for name in arrays] for is_binary in (False, True)]

    def output(self, name: str) -> _Output:
        """Return an output that may not be there."""
        found = self.outputs.get(name)
        if found is None:
            known = ", ".join(self.outputs)
            raise InvalidInput.at(
                place_of("outputs", name), f"there is no such output; there are {known}"
            )
        return found


_layouts: WeakKeyDictionary[ServedCalibration, _Layout] = WeakKeyDictionary()


class OutputTensors:
    """All outputs for all rows of a run, from which the answers to its requests are cut."""

    def __init__(self, served: ServedCalibration, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        layout = _layouts.get(served)
        if layout is None:
            layout = _layouts[served] = _Layout(served, arrays)
        self._layout = layout

    def encode_answer(self, start: int, stop: int, wanted: Wanted) -> InferAnswer:
        """Return the outputs that are wanted, in that order; all where none is named.

        Raises
        ------
        InvalidInput
            If an output is wanted that there is not.
        """
        n_rows = stop - start
        outputs: list[bytes] = []
        sizes: list[int | bytes] = []
        raw: list[bytes] = []
        for name, is_binary in wanted.outputs or self._layout.all[wanted.all_binary]:
            output = self._layout.output(name)
            if is_binary:
                width = output.bytes_a_row
                tensor = self._bytes[name][start * width : stop * width]
                outputs.append(output.raw)
                sizes += (n_rows, len(tensor))
                raw.append(tensor)
            else:
                width = output.numbers_a_row
                numbers = self._numbers[name][start * width : stop * width]
                outputs.append(output.json)
                sizes += (n_rows, b",".join(numbers))
        named = b',"id":' + _encode(wanted.id) if wanted.id else b""
        tensors = b",".join(outputs) % tuple(sizes)
        head = b'%b%b,"outputs":[%b]}' % (self._layout.model, named, tensors)
        return InferAnswer(b"".join([head, *raw]), len(head) if raw else None)

    @cached_property
    def _numbers(self) -> dict[str, list[bytes]]:
        """Numbers of each output in JSON, row after row."""
        columns = [array.ravel().tolist() for array in self._arrays.values()]
        texts = _encode(columns)[2:-2].split(b"],[")
        return {name: text.split(b",") for name, text in zip(self._arrays, texts, strict=True)}

    @cached_property
    def _bytes(self) -> dict[str, bytes]:
        """Numbers of each output, little-endian."""
        return {
            name: array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            for name, array in self._arrays.items()
        }
