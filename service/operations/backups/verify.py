"""Whether a backup is what was written: every part, and every stored file."""

import hashlib
from pathlib import Path

from service.operations.backups.manifest import Manifest, damaged
from service.operations.backups.parts import KeptFile, missing, read_files, read_part
from service.operations.backups.progress import Tell


def verify(folder: Path, manifest: Manifest, tell: Tell) -> None:
    """Read all of a backup.

    Raises
    ------
    InvalidInput
        If a part is missing or not what was written; the sentence names it.
    """
    for part in (*(table.part for table in manifest.tables), manifest.files.part):
        for _ in read_part(folder, part):
            pass
    done, total = 0, manifest.files.bytes
    for file in read_files(folder, manifest):
        _verify_file(folder, file)
        done += file.size
        tell("checking", done, total)


def _verify_file(folder: Path, file: KeptFile) -> None:
    try:
        with (folder / file.path).open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise missing(file.path) from error
    if digest != file.sha256:
        raise damaged(file.path)
