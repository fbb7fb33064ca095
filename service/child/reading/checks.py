"""Checks of values, the same for all file formats. Rows count from 0."""

from collections.abc import Iterable, Sequence

import numpy as np

from howsure.statistics.arrays import Floats, Labels
from howsure.statistics.input_ranges import MOST_COLUMNS, TABLE_AXES
from howsure.statistics.measures.measure import PLAIN_NAME
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.dataset import AnyArray, DatasetInfo
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import SetContext

MIN_CLASSES = 2
# What to do with the one score that a binary classifier gives.
BOTH_CLASSES = (
    "a binary classifier needs a column for each of its two classes: of one logit z write 0 and z, "
    "of one probability p write 1 - p and p (numpy.column_stack([0 * z, z]))"
)


def is_plain_name(name: str) -> bool:
    """Tell whether a name can be shown in messages and cannot leave a folder as a path."""
    is_path = any(part in ("", ".", "..") for part in name.split("/"))
    return name.isprintable() and "\\" not in name and not is_path


def check_n_samples(n_samples: int, *, place: str, limits: DatasetLimits) -> None:
    """Refuse a set without samples or with too many."""
    if n_samples < 1:
        raise InvalidDataset.at(place, "expected at least one sample, got none")
    if n_samples > limits.max_samples:
        raise TooLarge.at(
            place, f"expected at most {limits.max_samples} samples, got {n_samples}; send fewer"
        )


def check_n_classes(n_classes: int, *, place: str, limits: DatasetLimits) -> None:
    """Refuse outputs of fewer than two classes, or of too many."""
    if n_classes < MIN_CLASSES:
        raise InvalidDataset.at(
            place,
            f"expected at least {MIN_CLASSES} classes, got {n_classes}; {BOTH_CLASSES}",
        )
    if n_classes > limits.max_classes:
        raise TooLarge.at(place, f"expected at most {limits.max_classes} classes, got {n_classes}")


# Every integer up to this one is a float64 of its own.
MOST_EXACT = 2.0**53


def whole_labels(given: AnyArray, *, place: str) -> Labels:
    """Return labels as int64.

    Raises
    ------
    InvalidDataset
        If one is not a whole number.
    """
    if given.dtype.kind != "f":
        most = np.iinfo(np.int64).max
        return (np.minimum(given, most) if given.dtype == np.uint64 else given).astype(np.int64)
    labels = given.astype(np.float64)  # float16 does not reach the limit
    bad = ~((np.abs(labels) <= MOST_EXACT) & (labels == np.trunc(labels)))
    if bad.any():
        row = int(np.argmax(bad))
        fix = "labels are classes; regression is not supported"
        if np.isnan(labels[row]):
            fix = "leave out samples without a label"
        raise InvalidDataset.at(
            f"{place}[{row}]", f"expected an integer, got '{labels[row]}'; {fix}"
        )
    return labels.astype(np.int64)


def check_labels(
    labels: AnyArray, *, place: str, n_classes: int | None, n_allowed: int, least: int = 0
) -> Labels:
    """Return the labels as int64, each a class from 0, or from ``least`` on.

    ``n_allowed`` limits the labels if ``n_classes`` is unknown.

    Raises
    ------
    InvalidDataset
        If a label is not a whole number, too small or not a class.
    """
    if labels.dtype.kind in "fb":
        labels = whole_labels(labels, place=place)
    upper = n_allowed if n_classes is None else n_classes
    bad = (labels < least) | (labels >= upper)
    if bad.any():
        row = int(np.argmax(bad))
        fix = counted_from_one(labels, n_classes) or "labels count the classes from 0"
        if labels[row] < 0:
            fix += "; leave out samples without a label"
        raise InvalidDataset.at(
            f"{place}[{row}]",
            f"expected a class from 0 to {upper - 1}, got {int(labels[row])}; {fix}",
        )
    return labels.astype(np.int64, copy=False)


def counted_from_one(labels: AnyArray, n_classes: int | None) -> str:
    """Return what to do about labels that run from 1 to the number of classes; else nothing."""
    if n_classes is None or (labels.min(), labels.max()) != (1, n_classes):
        return ""
    return f"labels run from 1 to {n_classes}: subtract 1"


def is_finite(array: AnyArray) -> bool:
    """Tell whether all numbers are finite; for most arrays in one pass without a copy."""
    flat = array.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.vdot(flat, flat)) or np.isfinite(flat).all())


def may_lack_values(shape: Sequence[int], dtype: str) -> bool:
    """Tell whether NaN means a missing value: in floats of a table of features, (rows, columns)."""
    is_table = len(shape) == TABLE_AXES and shape[1] <= MOST_COLUMNS
    return is_table and np.dtype(dtype).kind == "f"


def check_inputs(values: AnyArray, *, place: str, start: int, may_lack: bool = False) -> None:
    """Refuse a batch of inputs with infinity, and with NaN unless it ``may_lack`` values."""
    if not np.issubdtype(values.dtype, np.floating) or is_finite(values):
        return
    bad = np.isinf(values) if may_lack else ~np.isfinite(values)
    if bad.any():
        row, *position = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        where = f" at {position}" if position else ""
        fix = ""
        if np.isnan(values[(row, *position)]):
            fix = f"; missing values are read in tables of at most {MOST_COLUMNS} columns only"
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected finite numbers, got {values[(row, *position)]}{where}{fix}",
        )


def check_sizes(info: DatasetInfo, ctx: SetContext, *, fix: str = "send fewer") -> None:
    """Refuse rows without values, and rows or sets with too many bytes."""
    limits = ctx.limits
    for name, found in info.arrays.items():
        if 0 in found.shape:
            raise ctx.invalid(f"expected values in each row, got shape {found.shape}", name)
    if info.row_bytes > limits.max_row_bytes:
        raise TooLarge.at(
            ctx.location,
            f"expected at most {limits.max_row_bytes} bytes per sample, got {info.row_bytes}; "
            f"{fix}",
        )
    n_bytes = info.row_bytes * info.n_samples
    if n_bytes > limits.max_inflated_bytes:
        raise TooLarge.at(
            ctx.location,
            f"expected at most {limits.max_inflated_bytes} bytes of arrays, got {n_bytes}; {fix}",
        )


SUPPLIED_PREFIX = "uncertainty_"
# Each becomes a measure with tables of its own.
MAX_SUPPLIED = 100

_SHOWN_CHARACTERS = 80


def supplied_names(columns: Iterable[str], *, location: str) -> tuple[str, ...]:
    """Return the names after the prefix, for the columns that have it.

    Raises
    ------
    InvalidDataset
        If a name is empty, longer than 50 characters, or has other characters than ASCII letters,
        digits and underscores.
    TooLarge
        If there are more than 100.
    """
    names: list[str] = []
    for column in columns:
        if not column.startswith(SUPPLIED_PREFIX):
            continue
        name = column.removeprefix(SUPPLIED_PREFIX)
        if not PLAIN_NAME.fullmatch(name):
            raise InvalidDataset.at(
                location,
                f"expected `{SUPPLIED_PREFIX}` and then 1 to 50 ASCII letters, digits or "
                f"underscores, got {column[:_SHOWN_CHARACTERS]!a}",
            )
        names.append(name)
    if len(names) > MAX_SUPPLIED:
        raise TooLarge.at(
            location,
            f"expected at most {MAX_SUPPLIED} columns `{SUPPLIED_PREFIX}<name>`, got {len(names)}",
        )
    return tuple(names)


def check_supplied(values: AnyArray, *, place: str, start: int) -> Floats:
    """Return a slice of a column as float64; its numbers must be finite in float32.

    Uncertainties are binned in float32. ``start`` is the first row of the slice.

    Raises
    ------
    InvalidDataset
        If a value is NaN, infinite, or too large for float32.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        bad = ~np.isfinite(values.astype(np.float32))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{place}[{start + row}]",
            f"expected a number that is finite in float32, got {values[row]}",
        )
    return values.astype(np.float64)
