"""From what a column of labels holds, and what is known of it, to how it is read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.datasets.class_indices import class_indices
from service.datasets.limits import DatasetLimits
from service.datasets.reading import Reading
from service.datasets.table import LABELS_PER_READ, ReadColumns
from service.datasets.table_labels import (
    ClassIndexColumn,
    ClassNameColumn,
    ClassNames,
    LabelColumn,
)
from service.errors import InvalidDataset

# The key of the schema's metadata under which the library `datasets` keeps its own types.
_DATASETS_KEY = b"huggingface"


@dataclass(frozen=True)
class Labelling:
    """How labels are read, and what indices the names of their classes have."""

    column: LabelColumn
    class_map: Mapping[str, int] | None = None
    is_numbered_by_name: bool = False
    notes: tuple[str, ...] = ()


def are_names(reading: Reading) -> bool:
    """Tell whether integers are meant as names, for the caller says which index each has."""
    return bool(reading.class_map) and all(map(str.isdigit, reading.class_map or ()))


def index_labelling(
    name: str,
    names: Sequence[str] | None,
    reading: Reading,
    *,
    location: str,
    limits: DatasetLimits,
) -> Labelling:
    """Return how class indices are read, ``names`` being the classes that the file calls by them.

    They are taken as they are, unless the caller gives these names other indices.
    """
    if names is None:
        return Labelling(ClassIndexColumn(name, location, None, limits.max_classes))
    own = {class_name: index for index, class_name in enumerate(names)}
    renumbered: list[int] | None = None
    notes: tuple[str, ...] = ()
    class_map: Mapping[str, int] = own
    if reading.class_map is not None or set(names) <= set(reading.classes or ()):
        class_map = class_indices(names, reading, place=f"{location}.{name}").map
        asked = [class_map[class_name] for class_name in names]
        if asked != list(range(len(names))):
            renumbered = asked
            notes = ("Labels were renumbered by the names that the file has for its classes.",)
    column = ClassIndexColumn(name, location, len(names), limits.max_classes, renumbered)
    return Labelling(column, class_map, notes=notes)


def name_labelling(
    name: str,
    read_columns: ReadColumns,
    reading: Reading,
    *,
    location: str,
    limits: DatasetLimits,
) -> Labelling:
    """Return how names of classes are read, having gathered them."""
    names = ClassNames(name, location=location, limits=limits)
    start = 0
    for record_batch in read_columns([name], LABELS_PER_READ):
        start += len(names.read(record_batch, start))
    place = f"{location}.{name}"
    found = class_indices(names.found, reading, place=place)
    wrong = {key: i for key, i in found.map.items() if not 0 <= i < limits.max_classes}
    if wrong:
        raise InvalidDataset.at(
            place, f"expected classes from 0 to {limits.max_classes - 1}, got {max(wrong.values())}"
        )
    return Labelling(
        ClassNameColumn(name, location, found.map),
        found.map,
        is_numbered_by_name=found.by_order,
        notes=() if found.note is None else (found.note,),
    )


def named_classes(
    metadata: Mapping[bytes, bytes] | None, column: str, *, place: str
) -> Sequence[str] | None:
    """Return the names of the classes that `datasets` keeps for a column of a Parquet file.

    Raises
    ------
    InvalidDataset
        If two classes have one name.
    """
    try:
        found: Any = json.loads((metadata or {}).get(_DATASETS_KEY, b"null"))
    except (ValueError, RecursionError):
        return None
    for key in ("info", "features", column, "names"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(n, str) for n in found):
        return None
    if len(set(found)) < len(found):
        raise InvalidDataset.at(place, "expected each class by a name of its own, got one twice")
    return found
