"""Indices of the classes that a set names, once the names of the model's classes are known."""

from collections.abc import Mapping, Sequence

import numpy as np

from howsure.statistics.arrays import Labels
from service.calibrations.config import CalibrationConfig
from service.child.reading.class_indices import (
    are_integers,
    beginning,
    class_indices,
    order_note,
    refuse_unknown_names,
)
from service.errors import InvalidConfig, InvalidDataset, shown
from service.runner.messages.dataset import DatasetInfo
from service.runner.messages.reading import AS_IT_IS
from service.runner.set_reader import UploadedSet

SHOWN_NAMES = 5


def check_class_names(config: CalibrationConfig, own_names: Sequence[str] | None) -> None:
    """Refuse names for the classes that the model itself gives to other classes.

    Capitals make no difference here.

    Raises
    ------
    InvalidConfig
        Naming the first such name.
    """
    index_of = {name.casefold(): index for index, name in enumerate(own_names or ())}
    for index, name in enumerate(config.classes or ()):
        own = index_of.get(name.casefold(), index)
        if own_names and own != index and name not in own_names[index : index + 1]:
            order = ", ".join(shown(known) for known in own_names[:SHOWN_NAMES])
            more = ", …" if len(own_names) > SHOWN_NAMES else ""
            raise InvalidConfig.at(
                f"config.classes[{index}]",
                f"expected the names in the model's own order, {order}{more}, got {shown(name)}, "
                f"which is class {own} of the model; leave classes out, or write its order",
            )


def settle_class_indices(
    found: UploadedSet,
    location: str,
    config: CalibrationConfig,
    own_names: Sequence[str] | None,
) -> None:
    """Give the labels of a set the indices that the model has for their names.

    The caller's ``class_map`` was applied already. Names must all be among the caller's
    ``classes``, or all among the model's own names. Integers are names if those of the model are
    integers other than 0 to K-1. Only names that nobody knows keep the order of their names.

    Raises
    ------
    InvalidDataset
        Naming the labels that are no name of a class.
    """
    info = found.info
    if config.class_map is not None or not info.labelled or info.kind != "inputs":
        return
    index_of = {name: index for index, name in enumerate(own_names or ())}
    integers = None if info.class_map else _named_by_integers(found.labels(), index_of)
    current = info.class_map or integers
    if integers and not config.classes:
        _refuse_unknown_integers(found.labels(), index_of, location)
    if current and current.keys() <= index_of.keys():
        note = f"Labels are read as the model's own names of its classes: {beginning(index_of)}."
        found.name_classes(index_of, _order(current, index_of), [*info.notes, note])
    elif info.is_numbered_by_name and info.class_map:
        names = list(info.class_map)
        expected = config.classes or own_names
        if expected:
            whose = "`classes`" if config.classes else "the model's classes"
            refuse_unknown_names(names, expected, place=location, whose=whose)
        # Refuses integers, which are no names that could be ordered.
        class_indices(names, AS_IT_IS, place=location)


def notes_of(info: DatasetInfo) -> list[str]:
    """Return what was inferred of a set whose class indices are settled."""
    by_order = info.class_map if info.is_numbered_by_name else None
    return [*info.notes, *([order_note(by_order)] if by_order else [])]


def _named_by_integers(labels: Labels, index_of: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return the labels by name, if all are integers that name a class of the model."""
    if not are_integers(index_of):
        return None
    return {str(label): label for label in np.unique(labels).tolist()}


def _refuse_unknown_integers(labels: Labels, index_of: Mapping[str, int], location: str) -> None:
    """Refuse integers that are no name of a class where the model's names are integers.

    They are no indices either: the names would be 0 to K-1 then.
    """
    is_known = np.isin(labels, [int(name) for name in index_of])
    if is_known.all():
        return
    row = int(np.argmin(is_known))
    n_alike = int(np.count_nonzero(labels == labels[row]))
    names = ", ".join(list(index_of)[:SHOWN_NAMES]) + (", …" if len(index_of) > SHOWN_NAMES else "")
    raise InvalidDataset.at(
        f"{location}.labels[{row}]",
        f"expected one of the model's own classes, {names}, got {labels[row]}, as have {n_alike} "
        "samples; leave these samples out, or send class_map to say which index each label has",
    )


def _order(current: Mapping[str, int], wanted: Mapping[str, int]) -> Labels:
    order = np.zeros(max(current.values()) + 1, np.int64)
    for name, index in current.items():
        order[index] = wanted[name]
    return order
