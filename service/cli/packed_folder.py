"""Sets as files to be sent: a folder is packed for as long as it takes."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.cli.failure import CommandFailed
from service.client.packed_folder import pack_folder


@contextmanager
def one_file(path: Path) -> Iterator[Path]:
    """Return a file as it is, and a folder packed."""
    if path.is_dir():
        with packed_folder(path) as packed:
            yield packed
    else:
        yield path


@contextmanager
def packed_folder(folder: Path) -> Iterator[Path]:
    """Pack a folder into a temporary tar file, and remove that at the end.

    Raises
    ------
    CommandFailed
        If there are no files, something is neither file nor folder, or a file cannot be read.
    """
    with tempfile.NamedTemporaryFile(prefix="howsure-", suffix=".tar") as packed:
        try:
            pack_folder(packed.file, folder)
        except ValueError as error:
            raise CommandFailed(str(error)) from error
        except OSError as error:
            raise CommandFailed(
                f"{folder} cannot be packed: {error.strerror or error}"
                + (f": {error.filename}" if error.filename else "")
            ) from error
        yield Path(packed.name)
