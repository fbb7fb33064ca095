"""Class indices of the names in a set: given by the caller, or inferred and noted."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.arrays import NONE_OF_THESE, Labels
from service.child.reading.checks import check_labels, whole_labels
from service.errors import InvalidDataset, TooLarge, did_you_mean, shown
from service.runner.messages.dataset import AnyArray
from service.runner.messages.reading import Reading

# The source of class names: folders, or text labels.
NamedBy: TypeAlias = Literal["folders", "labels"]

_SHOWN_NAMES = 5
# Comparing names is slow.
_COMPARED = 1_000
_INTEGER = re.compile(r"[0-9]{1,18}")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_BOOLEANS = {"false": 0, "true": 1}
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")


@dataclass(frozen=True)
class ClassIndices:
    """The index of each class by name, and a note if names that are numbers are the indices.

    The map has all known names, also those of classes without a sample. ``by_order`` tells whether
    the indices follow from the order of the names alone, which `order_note` says.
    """

    map: dict[str, int]
    note: str | None
    by_order: bool = False


def class_indices(
    names: Iterable[str], reading: Reading, *, place: str, named_by: NamedBy = "labels"
) -> ClassIndices:
    """Return the indices of the classes that a set names; ``place`` begins every violation.

    The caller's ``class_map`` comes first and must have every name; then the caller's ``classes``,
    if they have any of the names. Names that are integers are the indices themselves, and so are
    booleans; those of folders must be 0 to K-1 without a gap. Other names are numbered in
    alphabetical order, as torchvision numbers folders. Where a model gives the names their indices
    later, labels that are no indices are numbered in their order until then.

    Raises
    ------
    InvalidDataset
        If a name is not in ``class_map``, occurs twice in ``classes``, is none of ``classes`` where
        others are, or is a number that cannot be an index.
    """
    found = sorted(set(names))
    if reading.class_map is not None:
        names = list(reading.class_map)
        fix = "give each an index in class_map"
        refuse_unknown_names(found, names, place=place, whose="classes", fix=fix)
        return ClassIndices(dict(reading.class_map), None)
    if not set(reading.classes or ()).isdisjoint(found):
        classes = reading.classes or ()
        refuse_unknown_names(found, classes, place=place, whose="`classes`")
        return ClassIndices(_by_position(found, classes, place=place), None)
    if named_by == "labels" and {name.casefold() for name in found} <= _BOOLEANS.keys():
        return ClassIndices({name: _BOOLEANS[name.casefold()] for name in found}, None)
    if found and all(_NUMBER.fullmatch(name) for name in found):
        if named_by == "folders" or reading.kind != "inputs" or _are_indices(found):
            return _numbers(found, place=place, named_by=named_by)
        found = sorted(found, key=float)
    ordered = {name: index for index, name in enumerate(found)}
    return ClassIndices(ordered, None, by_order=True)


def order_note(class_map: Mapping[str, int]) -> str:
    """Return the note that classes are numbered in the order of their names."""
    return (
        "Classes were numbered in the order of their names, as torchvision numbers folders: "
        f"{beginning(class_map)}; send class_map to say otherwise."
    )


def refuse_unknown_names(
    found: Sequence[str],
    classes: Sequence[str],
    *,
    place: str,
    whose: str,
    fix: str = "send class_map to say which index each name has",
) -> None:
    """Refuse names that are none of ``classes``, which are those of ``whose``.

    Raises
    ------
    InvalidDataset
        Naming them and the nearest class.
    """
    known = set(classes)
    unknown = [name for name in found if name not in known]
    if unknown:
        raise InvalidDataset.at(
            place,
            f"expected the names of {whose}, {_listed(classes)}"
            + (", …" if len(classes) > _SHOWN_NAMES else "")
            + f", got {_counted(unknown)}; write them alike, or {fix}"
            + did_you_mean(unknown[0], classes[:_COMPARED]),
        )


def _are_indices(found: Sequence[str]) -> bool:
    values = {int(name) if _INTEGER.fullmatch(name) else None for name in found}
    counts_from_one = len(values) > 1 and values == set(range(1, len(values) + 1))
    return None not in values and len(values) == len(found) and not counts_from_one


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
    if any(name.startswith("-") for name in found):
        fix += ", and leave out samples without a label"
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


def _counted(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN_NAMES
    return _listed(names) + (f" and {more} more" if more > 0 else "")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in names[:_SHOWN_NAMES])


def beginning(ordered: Mapping[str, int]) -> str:
    """Return the first classes with their indices, for notes."""
    some = ", ".join(f"{shown(n)[1:-1]}={i}" for n, i in list(ordered.items())[:_SHOWN_NAMES])
    return some + (", …" if len(ordered) > _SHOWN_NAMES else "")


@dataclass(frozen=True)
class ClassLabels:
    """The class of each sample, and how the names of the classes were mapped to indices."""

    labels: Labels
    class_map: Mapping[str, int] | None = None
    is_numbered_by_name: bool = False
    notes: tuple[str, ...] = ()


def none_of_these(reading: Reading, classes: Sequence[str] = ()) -> dict[str, int]:
    """Return the label of samples of none of the classes, by its name; empty if a set has none.

    A class may be called so, by the caller or among ``classes``.
    """
    label = str(NONE_OF_THESE)
    is_class = label in {*(reading.class_map or ()), *(reading.classes or ()), *classes}
    return {label: NONE_OF_THESE} if reading.may_be_none_of_these and not is_class else {}


def least_label(reading: Reading) -> int:
    """Return the least label that is an index, or stands for none of the classes."""
    return min(none_of_these(reading).values(), default=0)


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
    none = none_of_these(reading) if named_by == "labels" else {}
    of_classes = {*names, *more} - none.keys()
    found = class_indices(of_classes, reading, place=place, named_by=named_by)
    for name in of_classes:
        if not 0 <= found.map[name] < max_classes:
            raise InvalidDataset.at(
                place,
                f"expected a class from 0 to {max_classes - 1}, got {found.map[name]} for "
                f"{shown(name)}; classes are counted from 0",
            )
    indices = found.map | none
    index_of = np.array([indices[name] for name in names], np.int64)
    notes = (found.note,) if found.note else ()
    return ClassLabels(index_of[codes], found.map, found.by_order, notes)


def labels_of_numbers(
    values: AnyArray, reading: Reading, *, place: str, n_classes: int | None, max_classes: int
) -> ClassLabels:
    """Return labels that are numbers: indices of classes, or the integers that name them.

    They are names where the caller's ``class_map`` has integers only. Negative ones may be names
    that the model knows.

    Raises
    ------
    InvalidDataset
        If a number is not whole, no index, or no name.
    TooLarge
        If there are too many classes.
    """
    is_mapped = are_integers(reading.class_map)
    names_inputs = reading.kind == "inputs" and n_classes is None
    check = partial(check_labels, place=place, n_allowed=max_classes, least=least_label(reading))
    if not names_inputs and not is_mapped:
        return ClassLabels(check(values, n_classes=n_classes))
    whole = whole_labels(values, place=place)
    if is_mapped or (reading.class_map is None and whole.min() < least_label(reading)):
        used, codes = np.unique(whole, return_inverse=True)
        names = [str(value) for value in used.tolist()]
        return labels_by_name(names, codes, reading, place=place, max_classes=max_classes)
    return ClassLabels(check(whole, n_classes=None))


def are_integers(names: Iterable[str] | None) -> bool:
    """Tell whether there are names, and all of them are integers."""
    found = list(names or ())
    return bool(found) and all(_WHOLE.fullmatch(name) for name in found)
