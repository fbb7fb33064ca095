"""Keys of artifacts, which the server chooses: each is below the key of its calibration."""

import re
from dataclasses import dataclass
from typing import Self
from uuid import UUID, uuid4

from models import ArtifactRole

ROOT = "calibrations"
MAX_KEY_CHARACTERS = 500
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_KEY = re.compile(rf"{ROOT}/{_UUID}(?:/{_PART})+")
_PREFIX = re.compile(rf"{ROOT}(?:/{_UUID}(?:/{_PART})*)?")
# A store in a folder writes to such a name until the file is complete; no key contains `#`.
_UNFINISHED = re.compile(rf"({_KEY.pattern})#[0-9]+")


def checked_key(key: str) -> str:
    """Return a key after checking it.

    Raises
    ------
    ValueError
        If the server cannot have made it.
    """
    if not is_key(key):
        raise ValueError(f"not an artifact key: {key!r}")
    return key


def checked_prefix(prefix: str) -> str:
    """Return a prefix of keys that ends at a level, after checking it.

    Raises
    ------
    ValueError
        If no key has it.
    """
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError(f"not a prefix of artifact keys: {prefix!r}")
    return prefix


def is_key(key: str) -> bool:
    """Tell whether a file name is an artifact key."""
    return _KEY.fullmatch(key) is not None and len(key) <= MAX_KEY_CHARACTERS


def is_unfinished(name: str) -> bool:
    """Tell whether a file name is that of an unfinished artifact in a folder."""
    return _UNFINISHED.fullmatch(name) is not None


def calibration_of(key: str) -> UUID:
    """Return the calibration that a key, or an unfinished one, is below."""
    return UUID(key.split("/")[1])


def keys_of(calibration_id: UUID) -> str:
    """Return the prefix of a calibration's keys."""
    return f"{ROOT}/{calibration_id}"


_ROW_DIGITS = 10
_RECORDS = re.compile(r"(?P<role>[a-z_]+)-(?P<row>[0-9]{10})-(?P<sha256>[0-9a-f]{64})")


@dataclass(frozen=True)
class JobFiles:
    """Artifact keys of one job. Only the upload handler and the worker write them."""

    prefix: str

    @classmethod
    def of(cls, calibration_id: UUID, evaluation_id: UUID | None = None) -> Self:
        """Return the files of a calibration, or of one of its evaluations."""
        within = "sets" if evaluation_id is None else f"evaluations/{evaluation_id}"
        return cls(f"calibrations/{calibration_id}/{within}")

    def shard(self, role: ArtifactRole, start: int) -> str:
        """Return the key of the shard that begins with this row of the set."""
        return f"{self.prefix}/{role}-{start:0{_ROW_DIGITS}}"

    def samples(self) -> str:
        """Return a new key for the kept samples."""
        return f"{self.prefix}/samples-{uuid4()}"

    def learned(self) -> str:
        """Return a new key for the learned measure of a set."""
        return f"{self.prefix}/learned-{uuid4()}"

    def records(self, role: ArtifactRole, start: int, sha256: str) -> str:
        """Return the key of a shard's records.

        It contains their digest, so that a later attempt can use them: until the job succeeds no
        row names them.
        """
        return f"{self.shard(role, start)}-{sha256}"


def first_row(key: str) -> int:
    """Return the row of the set that a shard begins with; 0 for a set that is one file."""
    return int(key.rpartition("-")[2])


def recorded(keys: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    """Return key and digest of the records among the keys, by role and first row."""
    found = {}
    for key in keys:
        match = _RECORDS.fullmatch(key.rpartition("/")[2])
        if match is not None:
            found[match["role"], int(match["row"])] = (key, match["sha256"])
    return found
