"""JSON bodies that are nothing but rows of numbers, for a model whose one input is known."""

from collections.abc import Sequence
from itertools import chain
from math import prod
from struct import Struct, error
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.bodies.request import ANY_INPUT
from service.bodies.tensors import is_surely_finite

MAX_RANK = 8


class JsonRows:
    """Reads rows of one shape straight to float32.

    What is anything else, or breaks a rule, it leaves to `read_json_body`, which tells.

    Parameters
    ----------
    sizes
        The shape of one row.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        # A number that is too large for float32 cannot be packed, nor more or fewer of them.
        self._line = Struct(f"{sizes[-1]}f")
        self._lists_in_row = sum(prod(sizes[:rank]) for rank in range(len(sizes)))
        inputs: Any = tuple[float, ...]
        for _ in sizes:
            inputs = list[inputs]
        fields = [("calibration", str), (ANY_INPUT, inputs)]
        body = msgspec.defstruct("PlainBody", fields, forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(body)

    @classmethod
    def of(cls, dtype: str, shape: Sequence[int | None] | None) -> "JsonRows | None":
        """Return the reader for an input, None where its rows are not known to be alike."""
        sizes = [size for size in (shape or ())[1:] if size]
        if (
            dtype != "float32"
            or not 1 <= len(sizes) <= MAX_RANK
            or len(sizes) + 1 != len(shape or ())
        ):
            return None
        return cls(sizes)

    def read(self, body: bytes, *, calibration: str, max_rows: int) -> NDArray[np.float32] | None:
        """Return the rows of a body that names this calibration."""
        # No list is made before it is known that there are not too many.
        if body.count(b"[") > 1 + max_rows * self._lists_in_row:
            return None
        try:
            found: Any = self._decoder.decode(body)
            lists = found.inputs
            n_rows = len(lists)
            for size in self._sizes[:-1]:
                if set(map(len, lists)) != {size}:
                    return None
                lists = list(chain.from_iterable(lists))
            packed = b"".join([self._line.pack(*line) for line in lists])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, error):
            return None
        if found.calibration != calibration or not 1 <= n_rows <= max_rows:
            return None
        rows = np.frombuffer(packed, np.float32).reshape(n_rows, *self._sizes)
        # A number may round to the largest there is, which is for the other way to look at.
        return rows if is_surely_finite(rows) else None
