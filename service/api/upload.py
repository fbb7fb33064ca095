"""What an upload may bring, and what lies on disk once it has been received."""

import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GIBIBYTE = 1024**3
MAX_LABEL_LENGTH = 255
UNNAMED = "unnamed"


@dataclass(frozen=True)
class UploadLimits:
    """Bytes of one file by what it is, bytes of the whole body, and the number of its parts."""

    max_model_bytes: int
    max_model_data_bytes: int
    max_dataset_bytes: int
    max_total_bytes: int = 256 * GIBIBYTE
    max_parts: int = 256


@dataclass(frozen=True)
class PartRule:
    """What a part of a given name may be. Files go to disk and may repeat, texts stay in memory."""

    max_bytes: int
    repeatable: bool
    is_file: bool

    def __post_init__(self) -> None:
        if self.repeatable and not self.is_file:
            raise ValueError("a text part cannot be repeatable")


@dataclass(frozen=True)
class SpooledFile:
    """A received file. ``label`` is what the sender calls it: for people, never for paths."""

    path: Path
    label: str
    sha256: str
    size: int


class SpooledUpload:
    """The parts of a received form; whoever holds it discards it."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, Sequence[SpooledFile]],
        texts: Mapping[str, str],
    ) -> None:
        self._folder = folder
        self._files = files
        self._texts = texts

    def files(self, name: str) -> list[SpooledFile]:
        """Return the files of this part's name, in the order they were sent."""
        return list(self._files.get(name, ()))

    def text(self, name: str) -> str | None:
        """Return the text of this part, or None where it was not sent."""
        return self._texts.get(name)

    def discard(self) -> None:
        """Remove everything from disk; doing it again does no harm."""
        shutil.rmtree(self._folder, ignore_errors=True)


def file_label(name: str) -> str:
    """Return a sender's file name without folders and without characters that do not show."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    # Categories C*: controls, the marks that turn text around, surrogates, unassigned ones.
    shown = "".join(c for c in last if not unicodedata.category(c).startswith("C")).strip()
    if shown in ("", ".", ".."):
        return UNNAMED
    return shown[:MAX_LABEL_LENGTH]
