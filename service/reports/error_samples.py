"""Errors of a calibration set that are most worth inspecting.

All records are read, one shard at a time, so that memory holds one shard and the result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

import models
from howsure.statistics.bins.table import BinTable
from howsure.statistics.error_samples import mislabelled_candidates, most_confident_errors
from howsure.statistics.records.records import Records, concatenate
from service.storage.artifact_rows import parts_of
from service.storage.artifact_store import ArtifactStore
from service.storage.shards import learned_columns, read_records

Kind: TypeAlias = Literal["mislabelled", "surest_errors"]

MOST = 200


@dataclass(frozen=True, eq=False)
class ErrorSamples:
    """Records in the order of the list, and their row numbers in the set.

    ``n_errors`` is the number of all samples for which the event fails.
    """

    records: Records
    numbers: NDArray[np.int64]
    n_errors: int

    def take(self, rows: NDArray[np.int64]) -> "ErrorSamples":
        """Return some of them."""
        return ErrorSamples(self.records.take(rows), self.numbers[rows], self.n_errors)

    def with_more(self, more: Self) -> "ErrorSamples":
        """Return them, followed by others."""
        return ErrorSamples(
            concatenate([self.records, more.records]),
            np.concatenate([self.numbers, more.numbers]),
            self.n_errors + more.n_errors,
        )


def find_errors(
    parts: Iterable[Records], kind: Kind, k: int, column: str, table: BinTable
) -> ErrorSamples:
    """Return the first `MOST` samples of the list, from the first ones of each shard.

    Raises
    ------
    ArtifactDamaged
        If a stored file is damaged.
    """

    def first(records: Records) -> NDArray[np.int64]:
        if kind == "surest_errors":
            return most_confident_errors(records, k, column, n=MOST)
        candidates = mislabelled_candidates(records, k, column, table, n=MOST)
        return np.array([candidate.index for candidate in candidates], np.int64)

    def of_shards() -> Iterator[ErrorSamples]:
        start = 0
        for part in parts:
            rows = first(part)
            n_errors = int(np.count_nonzero(~part.hits(k)))
            yield ErrorSamples(part.take(rows), rows + start, n_errors)
            start += part.n_samples

    def merged(found: ErrorSamples, more: ErrorSamples) -> ErrorSamples:
        both = found.with_more(more)
        return both.take(first(both.records))

    return reduce(merged, of_shards())


def record_parts(artifacts: ArtifactStore, row: models.Calibration) -> Iterator[Records]:
    """Yield the records of the calibration set with the learned measure, shard by shard."""
    learned, start = learned_columns(artifacts, row), 0
    for part in parts_of(row.artifacts, "records"):
        records = read_records(artifacts, part.key, part.sha256)
        end = start + records.n_samples
        yield records.with_uncertainty({name: found[start:end] for name, found in learned.items()})
        start = end
