"""Labels from folders: ``cat/1.jpg`` is a picture of a cat, also below folders common to all."""

from collections.abc import Iterable
from itertools import takewhile

from service.datasets.pictures.named_labels import NamedLabels
from service.datasets.pictures.picture_files import MAC_FOLDER, PictureFiles
from service.datasets.reading import Reading
from service.errors import InvalidDataset, shown

_SPLITS = frozenset(
    {"dev", "eval", "test", "testing", "train", "training", "val", "valid", "validation"}
)


def common_folders(pictures: PictureFiles) -> list[str]:
    """Return the folders, from the top, that all pictures lie in."""
    common: list[str] | None = None
    for name in pictures.names():
        folders = name.split("/")[:-1]
        common = folders if common is None else _beginning_of_both(common, folders)
        if not common:
            return []
    return common or []


def labels_of_folders(
    pictures: PictureFiles, reading: Reading, *, max_classes: int
) -> NamedLabels | None:
    """Return the folder that each picture lies in, below what is common to all; None without any.

    Empty folders beside them are classes too. A single folder is a class only if the caller names
    it: it could as well be that of the whole set.

    Raises
    ------
    InvalidDataset
        If some pictures lie beside the folders of others, or the folders are those of several
        sets.
    """
    location = pictures.archive.location
    common = common_folders(pictures)
    depth = len(common)
    if common and _names_all([common[-1]], reading):
        depth -= 1
    inside = [name.count("/") > depth for name in pictures.names()]
    if not any(inside):
        return None
    prefix = "".join(f"{folder}/" for folder in common[:depth])
    found = NamedLabels(
        location=location, max_classes=max_classes, more=_empty_folders(pictures, prefix)
    )
    for name in pictures.names():
        if name.count("/") == depth:
            raise InvalidDataset.at(
                pictures.place(name),
                "expected a picture in the folder of its class, as others are; "
                "move it there, or leave it out",
            )
        found.append(name.split("/", depth + 1)[depth])
    if found.names <= _SPLITS and not _names_all(found.names, reading):
        names = ", ".join(shown(name) for name in sorted(found.names))
        raise InvalidDataset.at(
            location, f"expected the folders of one set's classes, got {names}; send one of them"
        )
    return found


def _beginning_of_both(one: list[str], other: list[str]) -> list[str]:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return [folder for folder, _ in pairs]


def _names_all(names: Iterable[str], reading: Reading) -> bool:
    """Tell whether the caller named classes so."""
    known = {*(reading.class_map or ()), *(reading.classes or ())}
    return known.issuperset(names)


def _empty_folders(pictures: PictureFiles, prefix: str) -> set[str]:
    """Return the folders beside those of the classes that nothing lies in.

    They were counted where the model was trained on such folders, and torchvision counts them.
    """
    archive = pictures.archive
    depth = prefix.count("/")
    beside = {
        name[len(prefix) :]
        for name in archive.folders
        if name.startswith(prefix) and name.count("/") == depth
    } - {MAC_FOLDER}
    for names in (archive.names, archive.folders):
        for name in names:
            if not beside:
                return beside
            if name.startswith(prefix) and name.count("/") > depth:
                beside.discard(name.split("/", depth + 1)[depth])
    return beside
