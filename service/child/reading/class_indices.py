"""Class indices of the names in a set: given by the caller, or inferred and noted."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.arrays import Labels
from service.errors import InvalidDataset, TooLarge, shown
from service.runner.messages.reading import Reading

# The source of class names: folders, or text labels.
NamedBy: TypeAlias = Literal["folders", "labels"]

_SHOWN_NAMES = 5
_INTEGER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")


@dataclass(frozen=True)
class ClassIndices:
    """The index of each class by name, and a note if it was inferred.

    The map has all known names, also those of classes without a sample. ``by_order`` tells whether
    the indices follow from the order of the names alone.
    """

    map: dict[str, int]
    note: str | None
    by_order: bool = False


def class_indices(
    names: Iterable[str], reading: Reading, *, place: str, named_by: NamedBy = "labels"
) -> ClassIndices:
    """Return the indices of the classes that a set names; ``place`` begins every violation.

    The caller's ``class_map`` comes first and must have every name; then the caller's ``classes``,
    if they have every name. Names that are integers are the indices themselves; those of folders
    must be 0 to K-1 without a gap. Other names are numbered in alphabetical order, as torchvision
    numbers folders.

    Raises
    ------
    InvalidDataset
        If a name is not in ``class_map``, occurs twice in ``classes``, or is a number that cannot
        be an index.
    """
    found = sorted(set(names))
    if reading.class_map is not None:
        _refuse_unknown(found, reading.class_map, place=place)
        return ClassIndices(dict(reading.class_map), None)
    if reading.classes is not None and found and set(found) <= set(reading.classes):
        return ClassIndices(_by_position(found, reading.classes, place=place), None)
    if found and all(_NUMBER.fullmatch(name) for name in found):
        return _numbers(found, place=place, named_by=named_by)
    ordered = {name: index for index, name in enumerate(found)}
    whose = "their folders' names, as torchvision does" if named_by == "folders" else "their names"
    return ClassIndices(
        ordered,
        f"Classes were numbered in the order of {whose}: {_beginning(ordered)}; "
        "send class_map to say otherwise.",
        by_order=True,
    )


def _refuse_unknown(found: Sequence[str], class_map: Mapping[str, int], *, place: str) -> None:
    unknown = [name for name in found if name not in class_map]
    if unknown:
        more = len(unknown) - _SHOWN_NAMES
        raise InvalidDataset.at(
            place,
            f"expected classes that class_map names, got {_listed(unknown)}"
            + (f" and {more} more" if more > 0 else "")
            + "; give each of them an index",
        )


def _by_position(found: Sequence[str], classes: Sequence[str], *, place: str) -> dict[str, int]:
    counts = Counter(classes)
    for name in found:
        if counts[name] > 1:
            raise InvalidDataset.at(
                place,
                f"expected a class that `classes` names once, got {shown(name)}; "
                "send class_map to say which index it has",
            )
    return {name: index for index, name in enumerate(classes)}


def _numbers(found: Sequence[str], *, place: str, named_by: NamedBy) -> ClassIndices:
    """Return names that are numbers as indices, if they are valid ones."""
    fix = "send class_map to say which index each has"
    wrong = f"expected classes called by their indices, counted from 0, got {_listed(found)}"
    if not all(_INTEGER.fullmatch(name) for name in found):
        raise InvalidDataset.at(place, f"{wrong}; {fix}")
    numbers = {name: int(name) for name in found}
    values = sorted(numbers.values())
    if len(values) > 1 and values == list(range(1, len(values) + 1)):
        raise InvalidDataset.at(
            place,
            f"expected classes counted from 0, got 1 to {len(values)}, as if counted from 1; {fix}",
        )
    if len(set(values)) < len(values):
        raise InvalidDataset.at(place, f"{wrong}, of which two are the same number; {fix}")
    if named_by == "folders" and values != list(range(len(values))):
        missing = next(index for index, value in enumerate(values) if index != value)
        raise InvalidDataset.at(
            place,
            f"expected folders called 0 to {len(values) - 1} or by names, got {_listed(found)} "
            f"without {missing}; {fix}",
        )
    ordered = dict(sorted(numbers.items(), key=lambda item: item[1]))
    called = "folders are called" if named_by == "folders" else "labels are"
    return ClassIndices(ordered, f"Classes have the numbers that their {called}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in names[:_SHOWN_NAMES])


def _beginning(ordered: Mapping[str, int]) -> str:
    some = ", ".join(f"{shown(n)[1:-1]}={i}" for n, i in list(ordered.items())[:_SHOWN_NAMES])
    return some + (", …" if len(ordered) > _SHOWN_NAMES else "")


@dataclass(frozen=True)
class ClassLabels:
    """The class of each sample, and how the names of the classes were mapped to indices."""

    labels: Labels
    class_map: Mapping[str, int] | None = None
    is_numbered_by_name: bool = False
    notes: tuple[str, ...] = ()


def encode_names(names: Iterable[str]) -> tuple[list[str], Labels]:
    """Return the distinct names, and for each name its position among them."""
    code_of: dict[str, int] = {}
    codes = np.fromiter((code_of.setdefault(name, len(code_of)) for name in names), np.int64)
    return list(code_of), codes


def labels_by_name(
    names: Sequence[str],
    codes: Labels,
    reading: Reading,
    *,
    place: str,
    max_classes: int,
    named_by: NamedBy = "labels",
    more: Iterable[str] = (),
) -> ClassLabels:
    """Return labels that are given as positions in ``names``.

    ``more`` are classes without a sample.

    Raises
    ------
    InvalidDataset
        If a name has no index, or an invalid one.
    TooLarge
        If there are too many classes.
    """
    if len(names) > max_classes:
        raise TooLarge.at(place, f"expected at most {max_classes} classes, got {len(names)}")
    found = class_indices({*names, *more}, reading, place=place, named_by=named_by)
    for name in {*names, *more}:
        if not 0 <= found.map[name] < max_classes:
            raise InvalidDataset.at(
                place,
                f"expected a class from 0 to {max_classes - 1}, got {found.map[name]} for "
                f"{shown(name)}; classes are counted from 0",
            )
    index_of = np.array([found.map[name] for name in names], np.int64)
    notes = (found.note,) if found.note else ()
    return ClassLabels(index_of[codes], found.map, found.by_order, notes)
