"""Where the files of one job lie: the shards of its sets, and the records of each shard."""

import re
from dataclasses import dataclass
from typing import Self
from uuid import UUID, uuid4

from models import ArtifactRole

_ROW_DIGITS = 10
_RECORDS = re.compile(r"(?P<role>[a-z_]+)-(?P<row>[0-9]{10})-(?P<sha256>[0-9a-f]{64})")


@dataclass(frozen=True)
class JobFiles:
    """Keys below one prefix, which nobody writes to but who accepts the job and who runs it."""

    prefix: str

    @classmethod
    def of(cls, calibration_id: UUID, evaluation_id: UUID | None = None) -> Self:
        """Return those of a calibration, or of the evaluation of it that is named."""
        within = "sets" if evaluation_id is None else f"evaluations/{evaluation_id}"
        return cls(f"calibrations/{calibration_id}/{within}")

    def shard(self, role: ArtifactRole, start: int) -> str:
        """Return the key of the shard that begins with this row of the set."""
        return f"{self.prefix}/{role}-{start:0{_ROW_DIGITS}}"

    def samples(self) -> str:
        """Return a new key for the samples that are kept."""
        return f"{self.prefix}/samples-{uuid4()}"

    def records(self, role: ArtifactRole, start: int, sha256: str) -> str:
        """Return the key of a shard's records.

        It tells their digest, so that another attempt can use them: no row knows of them before
        the job has succeeded.
        """
        return f"{self.shard(role, start)}-{sha256}"


def first_row(key: str) -> int:
    """Return the row of the set that a shard begins with; 0 for a set that is one file."""
    return int(key.rpartition("-")[2])


def recorded(keys: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    """Return key and digest of the records that lie there, by role and first row."""
    found = {}
    for key in keys:
        match = _RECORDS.fullmatch(key.rpartition("/")[2])
        if match is not None:
            found[match["role"], int(match["row"])] = (key, match["sha256"])
    return found
