"""Columns of the sampling design of a set: `weight` and `group`."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howsure.limits import MAX_NAME_LENGTH
from howsure.statistics.arrays import Floats
from service.child.reading.columns import refuse_null
from service.runner.messages.dataset import DESIGN_DTYPES, AnyArray
from service.runner.messages.reading import SetContext

WEIGHT, GROUP = "weight", "group"
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e9
_CODE_BYTES = 8


def design_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the sampling design among these names."""
    found = set(names)
    return tuple(name for name in DESIGN_DTYPES if name in found)


def _as_feature(name: str, ctx: SetContext) -> str:
    """Return the end of a message: how a column beside features can be one of them."""
    others = f"; if `{name}` is a feature, name all features in config.columns (--columns)"
    return others if ctx.reading.kind == "inputs" else ""


def check_weights(values: AnyArray, *, start: int, ctx: SetContext) -> Floats:
    """Return a slice of the weights as float64; ``start`` is its first row.

    Raises
    ------
    InvalidDataset
        If a weight is not positive and finite, or beyond 1e-9 to 1e9: only ratios matter.
    """
    weights = values.astype(np.float64)
    bad = ~((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise ctx.invalid(
            f"expected a positive weight, from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, got "
            f"{values[row]}; only ratios matter: scale all weights, and leave out samples that "
            f"count for nothing{_as_feature(WEIGHT, ctx)}",
            WEIGHT,
            start + row,
        )
    return weights


def group_codes(values: AnyArray, *, start: int, ctx: SetContext) -> NDArray[np.int64]:
    """Return the code of each group: integers as they are, and a hash of each text.

    A hash of 64 bits needs no list of the texts of other parts of the file.

    Raises
    ------
    InvalidDataset
        If a text is empty or longer than 200 characters.
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    codes: dict[str, int] = {}
    found = np.empty(len(values), np.int64)
    for row, value in enumerate(values.tolist()):
        text = str(value)
        if text not in codes:
            if not 0 < len(text) <= MAX_NAME_LENGTH:
                raise ctx.invalid(
                    "expected an integer or a text that names the group, of at most "
                    f"{MAX_NAME_LENGTH} characters, got "
                    + (f"{len(text)}" if text else "an empty cell"),
                    GROUP,
                    start + row,
                )
            digest = blake2b(text.encode(), digest_size=_CODE_BYTES).digest()
            codes[text] = int.from_bytes(digest, "little", signed=True)
        found[row] = codes[text]
    return found


def check_design(values: AnyArray, name: str, *, start: int, ctx: SetContext) -> AnyArray:
    """Return a slice of a column of the design, as `check_weights` or `group_codes` does."""
    check = group_codes if name == GROUP else check_weights
    return check(values, start=start, ctx=ctx)


def read_design(
    record_batch: Any,  # noqa: ANN401 - pyarrow has no types
    name: str,
    start: int,
    ctx: SetContext,
) -> AnyArray:
    """Return a column of the design from a pyarrow.RecordBatch that begins at row ``start``.

    Raises
    ------
    InvalidDataset
        If a cell is empty or breaks a rule.
    """
    column = record_batch.column(name)
    refuse_null(column, f"a {name}", start, name, ctx)
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    if name == GROUP and values.dtype.kind not in "iuO":
        raise ctx.invalid(
            f"expected integers or text, got {values.dtype.name}; cast the column to int64 or to "
            f"text{_as_feature(GROUP, ctx)}",
            name,
        )
    if name != GROUP and values.dtype.kind not in "iuf":
        raise ctx.invalid(f"expected numbers, got {column.type}; cast the column to float64", name)
    return check_design(values, name, start=start, ctx=ctx)
