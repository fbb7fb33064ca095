"""Files that must outlive a power failure."""

import os
from pathlib import Path


def flush_to_disk(path: Path, root: Path) -> None:
    """Wait until a file, and the folders that lead to it from ``root``, are on the disk.

    A database row that outlives the file it names would be worse than neither.
    """
    _flush(path)
    for folder in path.parents:
        _flush(folder)
        if folder == root:
            return


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
