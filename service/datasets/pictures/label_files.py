"""Labels from files beside the pictures, as WebDataset has them: ``key.jpg`` and ``key.cls``."""

import msgspec

from service.datasets.pictures.archive import refuse_long_member
from service.datasets.pictures.named_labels import NamedLabels
from service.datasets.pictures.picture_files import PictureFiles, stem
from service.errors import InvalidDataset, TooLarge, shown

CLASS_FILE = ".cls"
JSON_FILE = ".json"

_MAX_CLASS_BYTES = 1024
_MAX_JSON_BYTES = 1024**2
_KEYS = ("label", "cls", "class")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LABEL = msgspec.json.Decoder(int | str)


def find_label_files(pictures: PictureFiles) -> str | None:
    """Return how the files with labels end, if a picture has one: ``.cls``, else ``.json``.

    JSON beside a picture may be about anything: the first of it decides.
    """
    for ending in (CLASS_FILE, JSON_FILE):
        if not any(name.endswith(ending) for name in pictures.archive.names):
            continue
        for name in pictures.names():
            position = pictures.archive.names.find(stem(name) + ending)
            if position is None:
                continue
            if ending == CLASS_FILE or _is_label(pictures, position):
                return ending
            break
    return None


def labels_of_files(pictures: PictureFiles, ending: str, *, max_classes: int) -> NamedLabels:
    """Return the class in the file beside each picture.

    Raises
    ------
    InvalidDataset
        If a picture has none, or it has no class in it.
    """
    labels = NamedLabels(location=pictures.archive.location, max_classes=max_classes)
    for name in pictures.names():
        file = stem(name) + ending
        position = pictures.archive.names.find(file)
        if position is None:
            raise InvalidDataset.at(
                pictures.place(name),
                f"expected its label in {shown(file)}, got no such file; "
                "leave the picture out or label it",
            )
        if ending == CLASS_FILE:
            labels.append(_class_text(pictures, position))
        else:
            labels.append(_class_field(pictures, position))
    return labels


def _class_text(pictures: PictureFiles, position: int) -> str:
    refuse_long_member(pictures.archive, position, _MAX_CLASS_BYTES)
    content = pictures.archive.read(position)
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        raise InvalidDataset.at(
            pictures.place(pictures.archive.names[position]),
            "expected a class as an integer or its name in UTF-8, on one line",
        )
    return text


def _class_field(pictures: PictureFiles, position: int) -> str:
    place = pictures.place(pictures.archive.names[position])
    fields = _fields(pictures, position)
    found = [key for key in _KEYS if key in fields]
    if len(found) != 1:
        got = " and ".join(found) or "none of them"
        raise InvalidDataset.at(place, f"expected one of {', '.join(_KEYS)}, got {got}")
    try:
        label = str(_LABEL.decode(fields[found[0]]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        label = ""
    if not label.strip():
        raise InvalidDataset.at(f"{place}.{found[0]}", "expected a class as an integer or its name")
    return label


def _is_label(pictures: PictureFiles, position: int) -> bool:
    try:
        return not _fields(pictures, position).keys().isdisjoint(_KEYS)
    except (InvalidDataset, TooLarge):
        return False


def _fields(pictures: PictureFiles, position: int) -> dict[str, msgspec.Raw]:
    refuse_long_member(pictures.archive, position, _MAX_JSON_BYTES)
    try:
        return _FIELDS.decode(pictures.archive.read(position))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidDataset.at(
            pictures.place(pictures.archive.names[position]),
            f"expected a JSON object with {', '.join(_KEYS)}",
        ) from error
