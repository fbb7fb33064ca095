"""A folder of pictures as one zip archive, to be sent: the same bytes whenever it is packed."""

import os
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_CHUNK_BYTES = 2**16


def pack_folder(target: IO[bytes], folder: Path) -> None:
    """Pack all files of a folder but those that begin with a dot, without their dates.

    They are shuffled, always in the same way, so that the first few hundred pictures are of all
    classes; those that differ in their ending alone, as a picture and its label do, stay
    together. Folders without a file have an entry: they are classes, too.

    Raises
    ------
    ValueError
        If there are no files.
    """
    files, empty = _found(folder)
    if not files:
        raise ValueError(f"{folder} holds no files")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in empty:
            archive.writestr(zipfile.ZipInfo(f"{name}/"), b"")
        for name in _shuffled(files):
            _add(archive, folder, name)


def _found(folder: Path) -> tuple[list[str], list[str]]:
    """Return the files of a folder, and the folders in it that are empty, by their names in it."""
    files: list[str] = []
    empty: list[str] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        shown = sorted(name for name in names if not name.startswith("."))
        below = Path(root).relative_to(folder)
        files += [(below / name).as_posix() for name in shown]
        if not shown and not folders and below.parts:
            empty.append(below.as_posix())
    return files, empty


def _shuffled(files: list[str]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name in files:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    stems = sorted(groups)
    random.Random(0).shuffle(stems)  # noqa: S311 - nothing secret hangs on it
    for stem in stems:
        yield from groups[stem]


def _add(archive: zipfile.ZipFile, folder: Path, name: str) -> None:
    with (
        (folder / name).open("rb") as file,
        archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member,
    ):
        while chunk := file.read(_CHUNK_BYTES):
            member.write(chunk)
