"""Labels from a table beside the pictures: ``labels.csv``, or the hub's ``metadata.csv``."""

import csv
from array import array
from collections.abc import Iterator, Sequence
from io import BytesIO, TextIOWrapper

from service.datasets.pictures.archive import refuse_long_member
from service.datasets.pictures.class_folders import common_folders
from service.datasets.pictures.named_labels import NamedLabels
from service.datasets.pictures.picture_files import PictureFiles
from service.errors import InvalidDataset, shown

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
    found = [name for name in wanted if pictures.archive.names.find(name) is not None]
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
    codes = array("l", [_NONE]) * len(pictures.archive.names)
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
    labels = NamedLabels(location=pictures.archive.location, max_classes=max_classes)
    for position in pictures.positions:
        if codes[position] == _NONE:
            raise InvalidDataset.at(
                pictures.place(pictures.archive.names[position]),
                f"expected a row in {shown(table)}, got none; leave the picture out or label it",
            )
        labels.append(names[codes[position]])
    return labels


def _rows(pictures: PictureFiles, table: str, place: str) -> Iterator[list[str]]:
    position = pictures.archive.names.find(table)
    assert position is not None  # noqa: S101 - it was found by this name
    refuse_long_member(pictures.archive, position)
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
    position = pictures.archive.names.find(folder + plain)
    if position is None:
        raise InvalidDataset.at(
            place,
            f"expected the name of a file, from the table's folder on, got {shown(file)}, "
            "which is not there",
        )
    return position
