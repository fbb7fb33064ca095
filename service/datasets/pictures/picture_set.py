"""What an archive's pictures are labelled by: a table, files beside them, or their folders."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Labels
from service.datasets.class_indices import ClassIndices, NamedBy, class_indices
from service.datasets.limits import DatasetLimits
from service.datasets.pictures.archive import Archive
from service.datasets.pictures.class_folders import labels_of_folders
from service.datasets.pictures.label_files import find_label_files, labels_of_files
from service.datasets.pictures.label_table import find_label_table, labels_of_table
from service.datasets.pictures.named_labels import NamedLabels
from service.datasets.pictures.picture_files import PictureFiles, left_out, picture_files
from service.datasets.reading import Reading
from service.errors import InvalidDataset


@dataclass(frozen=True)
class PictureSet:
    """An archive's pictures and their labels, zeros if it has none, in the archive's order."""

    pictures: PictureFiles
    labels: Labels
    labelled: bool
    class_map: dict[str, int] | None
    is_numbered_by_name: bool
    notes: tuple[str, ...]


def picture_set(
    archive: Archive, reading: Reading, *, limits: DatasetLimits, labels_required: bool
) -> PictureSet:
    """Find the pictures of an archive and the class of each.

    Raises
    ------
    InvalidDataset
        If there are no pictures, a picture has no label where others have one or labels are
        required, or a class has no index.
    TooLarge
        If there are too many classes.
    """
    pictures = picture_files(archive)
    found, named_by, others = _labels(pictures, reading, limits, required=labels_required)
    if found is None:
        if labels_required:
            raise InvalidDataset.at(
                archive.location,
                "expected a class for each picture: a folder for each of at least two classes "
                "(`cat/1.jpg`), a table `labels.csv` with the columns file and label, or files "
                "`1.cls` or `1.json` beside `1.jpg`",
            )
        indices, labels = None, np.zeros(len(pictures.positions), np.int64)
    else:
        indices = class_indices(found.names, reading, place=archive.location, named_by=named_by)
        labels = found.indices(indices.map)
    return PictureSet(
        pictures,
        labels,
        labelled=found is not None,
        class_map=indices.map if indices else None,
        is_numbered_by_name=indices is not None and indices.by_order,
        notes=_notes(indices, others),
    )


def _labels(
    pictures: PictureFiles, reading: Reading, limits: DatasetLimits, *, required: bool
) -> tuple[NamedLabels | None, NamedBy, str | None]:
    """Return the classes' names, where they come from, and what to tell of the other files."""
    most, n_pictures = limits.max_classes, len(pictures.positions)
    if not reading.wants_labels:
        return None, "folders", None
    if table := find_label_table(pictures):
        found = labels_of_table(pictures, table, max_classes=most, required=required)
        return found, "labels", left_out(pictures, 1, table)
    if ending := find_label_files(pictures):
        found = labels_of_files(pictures, ending, max_classes=most)
        return found, "labels", left_out(pictures, n_pictures, ending)
    found = labels_of_folders(pictures, reading, max_classes=most)
    return found, "folders", left_out(pictures, 0, None)


def _notes(indices: ClassIndices | None, others: str | None) -> tuple[str, ...]:
    said = indices.note if indices else None
    return tuple(note for note in (said, others) if note)
