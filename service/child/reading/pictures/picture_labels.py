"""Labels of pictures: from a table, from files beside them, or from their folders.

Each source yields the name of the class of each picture, in the archive's order.
"""

import csv
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO, TextIOWrapper

import msgspec

from service.child.reading.pictures.picture_files import MAC_FOLDER, PictureFiles
from service.errors import InvalidDataset, TooLarge, shown
from service.runner.messages.reading import Reading

CLASS_FILE, JSON_FILE = ".cls", ".json"

_SPLITS = frozenset(
    {"dev", "eval", "test", "testing", "train", "training", "val", "valid", "validation"}
)
_TABLES = ("labels.csv", "metadata.csv")
_FILE_COLUMNS = ("file_name", "filename", "file", "image", "path")
_CLASS_COLUMNS = ("label", "class")
_NONE = -1
_MAX_CLASS_BYTES = 1024
_MAX_JSON_BYTES = 1024**2
_KEYS = ("label", "cls", "class")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LABEL = msgspec.json.Decoder(int | str)


def class_folders(
    pictures: PictureFiles, reading: Reading
) -> tuple[Iterator[str] | None, set[str]]:
    """Return the class folder of each picture, below the folders common to all; None without any.

    Also return the empty folders beside them: they are classes without a picture. A single folder
    is a class only if the caller names it; otherwise it may be the folder of the set.

    Raises
    ------
    InvalidDataset
        If some pictures lie beside the folders of others, or the folders are those of several
        sets.
    """
    common = pictures.common_folders()
    depth = len(common)
    if common and _names_all([common[-1]], reading):
        depth -= 1
    beside = next((name for name in pictures.names() if name.count("/") == depth), None)
    if beside is not None:
        if all(name.count("/") == depth for name in pictures.names()):
            return None, set()
        raise InvalidDataset.at(
            pictures.place(beside),
            "expected a picture in the folder of its class, as others are; "
            "move it there, or leave it out",
        )
    empty = _empty_folders(pictures, "".join(f"{folder}/" for folder in common[:depth]))
    found = empty | {name.split("/", depth + 1)[depth] for name in pictures.names()}
    if found <= _SPLITS and not _names_all(found, reading):
        names = ", ".join(shown(name) for name in sorted(found))
        raise InvalidDataset.at(
            pictures.location,
            f"expected the folders of one set's classes, got {names}; send one of them",
        )
    return (name.split("/", depth + 1)[depth] for name in pictures.names()), empty


def _names_all(names: Iterable[str], reading: Reading) -> bool:
    """Tell whether the caller named classes like this."""
    known = {*(reading.class_map or ()), *(reading.classes or ())}
    return known.issuperset(names)


def _empty_folders(pictures: PictureFiles, prefix: str) -> set[str]:
    """Return the empty folders beside those of the classes.

    A model that was trained on such folders counts them as classes, as torchvision does.
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


def find_label_files(pictures: PictureFiles) -> str | None:
    """Return the ending of files with labels, if a picture has one: ``.cls``, else ``.json``.

    JSON beside a picture may hold other data: the first file decides.
    """
    for ending in (CLASS_FILE, JSON_FILE):
        positions = (pictures.find(_stem(name) + ending) for name in pictures.names())
        first = next((position for position in positions if position is not None), None)
        if first is not None and (ending == CLASS_FILE or _is_label(pictures, first)):
            return ending
    return None


def labels_of_files(pictures: PictureFiles, ending: str) -> Iterator[str]:
    """Yield the class in the file beside each picture.

    Raises
    ------
    InvalidDataset
        If a picture has none, or it has no class in it.
    """
    read = _class_text if ending == CLASS_FILE else _class_field
    for name in pictures.names():
        file = _stem(name) + ending
        position = pictures.find(file)
        if position is None:
            raise InvalidDataset.at(
                pictures.place(name),
                f"expected its label in {shown(file)}, got no such file; "
                "leave the picture out or label it",
            )
        yield read(pictures, position)


def _stem(name: str) -> str:
    return name[: name.rindex(".")]


def _class_text(pictures: PictureFiles, position: int) -> str:
    text = pictures.archive.read(position, _MAX_CLASS_BYTES).decode("utf-8", "replace").strip()
    if not text or not text.isprintable() or "\ufffd" in text:
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


def find_label_table(pictures: PictureFiles) -> str | None:
    """Return the name of the table, which lies in one of the folders that contain all pictures.

    Raises
    ------
    InvalidDataset
        If there are several.
    """
    common = pictures.common_folders()
    prefixes = ["".join(f"{folder}/" for folder in common[:n]) for n in range(len(common) + 1)]
    wanted = [prefix + table for prefix in prefixes for table in _TABLES]
    found = [name for name in wanted if pictures.find(name) is not None]
    if len(found) > 1:
        raise InvalidDataset.at(
            pictures.place(found[1]),
            f"expected one table of labels, got {shown(found[0])} too; leave one of them out",
        )
    return found[0] if found else None


def labels_of_table(pictures: PictureFiles, table: str, *, required: bool) -> Iterator[str] | None:
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
    for position in pictures.positions:
        if codes[position] == _NONE:
            raise InvalidDataset.at(
                pictures.place(pictures.archive.names.files[position]),
                f"expected a row in {shown(table)}, got none; leave the picture out or label it",
            )
    names = list(code_of)
    return (names[codes[position]] for position in pictures.positions)


def _rows(pictures: PictureFiles, table: str, place: str) -> Iterator[list[str]]:
    position = pictures.find(table)
    assert position is not None  # noqa: S101 - it was found by this name
    text = TextIOWrapper(BytesIO(pictures.archive.read(position)), "utf-8-sig", newline="")
    try:
        # A blank line is no row.
        yield from filter(None, csv.reader(text, strict=True))
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
