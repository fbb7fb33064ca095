"""Labels of pictures: from a table, from files beside them, or from the folders they lie in."""

import csv
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO, TextIOWrapper
from itertools import takewhile

import msgspec

from service.child.reading.class_indices import NamedLabels
from service.child.reading.pictures.picture_files import MAC_FOLDER, PictureFiles, stem
from service.errors import InvalidDataset, TooLarge, shown
from service.runner.messages.reading import Reading

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
    location = pictures.location
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
    members = pictures.archive.names
    depth = prefix.count("/")
    beside = {
        name[len(prefix) :]
        for name in members.folders
        if name.startswith(prefix) and name.count("/") == depth
    } - {MAC_FOLDER}
    for names in (members.files, members.folders):
        for name in names:
            if not beside:
                return beside
            if name.startswith(prefix) and name.count("/") > depth:
                beside.discard(name.split("/", depth + 1)[depth])
    return beside


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
        if not any(name.endswith(ending) for name in pictures.archive.names.files):
            continue
        for name in pictures.names():
            position = pictures.find(stem(name) + ending)
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
    labels = NamedLabels(location=pictures.location, max_classes=max_classes)
    for name in pictures.names():
        file = stem(name) + ending
        position = pictures.find(file)
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
    content = pictures.archive.read(position, _MAX_CLASS_BYTES)
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        raise InvalidDataset.at(
            pictures.place(pictures.archive.names.files[position]),
            "expected a class as an integer or its name in UTF-8, on one line",
        )
    return text


def _class_field(pictures: PictureFiles, position: int) -> str:
    place = pictures.place(pictures.archive.names.files[position])
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
    try:
        return _FIELDS.decode(pictures.archive.read(position, _MAX_JSON_BYTES))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidDataset.at(
            pictures.place(pictures.archive.names.files[position]),
            f"expected a JSON object with {', '.join(_KEYS)}",
        ) from error


TABLES = ("labels.csv", "metadata.csv")

_FILE_COLUMNS = ("file_name", "filename", "file", "image", "path")
_CLASS_COLUMNS = ("label", "class")
_NONE = -1


def find_label_table(pictures: PictureFiles) -> str | None:
    """Return the name of the table, which lies at or above the folder that all pictures are in.

    Raises
    ------
    InvalidDataset
        If there are several.
    """
    common = common_folders(pictures)
    prefixes = ["".join(f"{folder}/" for folder in common[:n]) for n in range(len(common) + 1)]
    wanted = [prefix + table for prefix in prefixes for table in TABLES]
    found = [name for name in wanted if pictures.find(name) is not None]
    if len(found) > 1:
        raise InvalidDataset.at(
            pictures.place(found[1]),
            f"expected one table of labels, got {shown(found[0])} too; leave one of them out",
        )
    return found[0] if found else None


def labels_of_table(
    pictures: PictureFiles, table: str, *, max_classes: int, required: bool
) -> NamedLabels | None:
    """Return the class that the table has for each picture; None if it has no classes at all.

    Raises
    ------
    InvalidDataset
        If the table is no CSV in UTF-8, lacks a column, names a file that is not there or one
        twice, or has no class for a picture.
    """
    place = pictures.place(table)
    rows = _rows(pictures, table, place)
    header = [column.strip().lower() for column in next(rows, [])]
    if not required and not set(header) & set(_CLASS_COLUMNS):
        return None
    columns = _column(header, _FILE_COLUMNS, place), _column(header, _CLASS_COLUMNS, place)
    codes = array("l", [_NONE]) * len(pictures.archive.names.files)
    code_of: dict[str, int] = {}
    for row, cells in enumerate(rows):
        row_place = f"{place}[{row}]"
        if len(cells) != len(header):
            raise InvalidDataset.at(row_place, f"expected {len(header)} values, got {len(cells)}")
        file, name = (cells[column].strip() for column in columns)
        position = _position(pictures, table, file, row_place)
        if codes[position] != _NONE:
            raise InvalidDataset.at(row_place, f"expected each file once, got {shown(file)} twice")
        if not name:
            raise InvalidDataset.at(
                row_place, "expected a class, got an empty value; leave the picture out"
            )
        codes[position] = code_of.setdefault(name, len(code_of))
    return _in_order(pictures, table, codes, list(code_of), max_classes)


def _in_order(
    pictures: PictureFiles, table: str, codes: "array[int]", names: Sequence[str], max_classes: int
) -> NamedLabels:
    labels = NamedLabels(location=pictures.location, max_classes=max_classes)
    for position in pictures.positions:
        if codes[position] == _NONE:
            raise InvalidDataset.at(
                pictures.place(pictures.archive.names.files[position]),
                f"expected a row in {shown(table)}, got none; leave the picture out or label it",
            )
        labels.append(names[codes[position]])
    return labels


def _rows(pictures: PictureFiles, table: str, place: str) -> Iterator[list[str]]:
    position = pictures.find(table)
    assert position is not None  # noqa: S101 - it was found by this name
    content = BytesIO(pictures.archive.read(position))
    try:
        # A blank line is no row.
        yield from filter(
            None, csv.reader(TextIOWrapper(content, "utf-8-sig", newline=""), strict=True)
        )
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataset.at(
            place, "expected rows of UTF-8 text with a value for each column, between commas"
        ) from error


def _column(header: Sequence[str], known: Sequence[str], place: str) -> int:
    found = [index for index, column in enumerate(header) if column in known]
    if len(found) != 1:
        some = ", ".join(shown(column) for column in header[:10]) or "none"
        raise InvalidDataset.at(
            place,
            f"expected one of the columns {', '.join(known)}, and no second one, got {some}",
        )
    return found[0]


def _position(pictures: PictureFiles, table: str, file: str, place: str) -> int:
    """Return the member that a row names, relative to the table's own folder."""
    folder = table[: table.rfind("/") + 1]
    plain = file.replace("\\", "/").removeprefix("./")
    position = pictures.find(folder + plain)
    if position is None:
        raise InvalidDataset.at(
            place,
            f"expected the name of a file, from the table's folder on, got {shown(file)}, "
            "which is not there",
        )
    return position
