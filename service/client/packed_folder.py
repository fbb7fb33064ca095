"""A folder of pictures as one tar file, to be sent: the same bytes whenever it is packed."""

import os
import random
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_SEED = 0


def pack_folder(target: IO[bytes], folder: Path) -> None:
    """Write all files of a folder, but those that begin with a dot, as a tar file.

    They are shuffled, always in the same way, so that the first few hundred pictures are of all
    classes; those that differ in their ending alone, as a picture and its label do, stay together.
    Folders without a file have an entry: they are classes, too. Nothing tells whose files they
    were, or of when.

    Raises
    ------
    ValueError
        If there are no files, or something is neither file nor folder.
    OSError
        If a file cannot be read, or there is no space.
    """
    files, empty_folders = _found(folder)
    for name in empty_folders:
        target.write(_header(name, tarfile.DIRTYPE))
    for name in _shuffled(files):
        _add(target, folder, name)
    target.write(bytes(2 * tarfile.BLOCKSIZE))
    target.flush()  # whoever asks the operating system for its size is told all of it


def _found(folder: Path) -> tuple[list[str], list[str]]:
    """Return the files of a folder, and the folders in it that are empty, by their names in it."""
    files: list[str] = []
    empty_folders: list[str] = []
    below = [""]
    while below:
        prefix = below.pop()
        entries = [e for e in os.scandir(folder / prefix) if not e.name.startswith(".")]
        if prefix and not entries:
            empty_folders.append(prefix.rstrip("/"))
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append(f"{name}/")
            elif entry.is_file(follow_symlinks=False):
                files.append(name)
            else:
                raise ValueError(
                    f"{folder / name} is neither file nor folder; "
                    "put a copy in its place where it is a link (cp -RL)"
                )
    if not files:
        raise ValueError(f"{folder} holds no files")
    return files, sorted(empty_folders)


def _shuffled(files: list[str]) -> Iterator[str]:
    """Yield files by groups that differ in their ending alone, the groups in no order."""
    groups: dict[str, list[str]] = {}
    for name in sorted(files):
        groups.setdefault(os.path.splitext(name)[0], []).append(name)  # noqa: PTH122 - text, in an archive
    keys = list(groups)
    random.Random(_SEED).shuffle(keys)  # noqa: S311 - nothing secret hangs on it
    for key in keys:
        yield from groups[key]


def _add(packed: IO[bytes], folder: Path, name: str) -> None:
    # `TarFile` would keep an object of each.
    # A link that has taken the file's place since is not followed.
    descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{folder / name} is no longer a file")
        packed.write(_header(name, tarfile.REGTYPE, status.st_size))
        start = packed.tell()
        shutil.copyfileobj(file, packed)
        if packed.tell() - start != status.st_size:
            raise ValueError(f"{folder / name} changed while it was packed; try again")
        packed.write(bytes(-status.st_size % tarfile.BLOCKSIZE))


def _header(name: str, kind: bytes, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.size = size
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8")
