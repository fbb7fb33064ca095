"""A calibrated model as one file, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from service.runner.fields import FieldError
from service.runner.frames import Array

CONTENT = "content"
OUTPUT = "output:"
MAX_ADDED_BYTES = 2**28  # a head, its tables, and the masks of a last layer
MAX_EXPORTED_ROW_BYTES = 2**14


@dataclass(frozen=True, eq=False)
class ExportedOnnxModel:
    """The bytes of a calibrated file, and its own outputs for the rows it was tried on, by name."""

    content: bytes
    outputs: Mapping[str, Array]


def read_exported(tensors: Mapping[str, Array], n_rows: int) -> ExportedOnnxModel:
    """Read the answer to an export.

    Raises
    ------
    FieldError
        If it is not a file and arrays with one row for each of those it was tried on.
    """
    content = tensors.get(CONTENT)
    if content is None or content.dtype != np.uint8 or content.ndim != 1:
        raise FieldError("the content of an exported file")
    outputs = {}
    for name, array in tensors.items():
        if name == CONTENT:
            continue
        if not name.startswith(OUTPUT) or array.ndim < 1 or len(array) != n_rows:
            raise FieldError("an output of an exported file")
        # A copy: the frame, which holds the whole file, is let go.
        outputs[name.removeprefix(OUTPUT)] = array.copy()
    return ExportedOnnxModel(content.tobytes(), outputs)
