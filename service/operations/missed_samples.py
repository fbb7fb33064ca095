"""Samples of a calibration set whose label an answer misses, those most worth a look.

All records are read, a shard at a time: memory holds one shard and what was found.
"""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

import models
from service.core.bins.table import BinTable
from service.core.mislabelled import mislabelled_candidates
from service.core.records import Records, concatenate
from service.core.surest_errors import surest_errors
from service.operations.record_files import read_records
from service.storage.artifacts import ArtifactStore

Kind: TypeAlias = Literal["mislabelled", "surest_errors"]

MOST = 200
MOST_HELD = 64


@dataclass(frozen=True, eq=False)
class MissedSamples:
    """Their records, in the order of the list, and their numbers in the set.

    ``n_errors`` counts all for which the event fails.
    """

    records: Records
    numbers: NDArray[np.int64]
    n_errors: int

    def take(self, rows: NDArray[np.int64]) -> "MissedSamples":
        """Return these of them."""
        return MissedSamples(self.records.take(rows), self.numbers[rows], self.n_errors)

    def with_more(self, more: Self) -> "MissedSamples":
        """Return them and then others."""
        return MissedSamples(
            concatenate([self.records, more.records]),
            np.concatenate([self.numbers, more.numbers]),
            self.n_errors + more.n_errors,
        )


def find_missed(
    parts: Iterable[Records], kind: Kind, k: int, column: str, table: BinTable
) -> MissedSamples:
    """Return the first `MOST` of the list: those of a shard that are none of its first are none.

    Raises
    ------
    ArtifactDamaged
        If records are not what was stored.
    """

    def first(records: Records) -> NDArray[np.int64]:
        if kind == "surest_errors":
            return surest_errors(records, k, column, n=MOST)
        candidates = mislabelled_candidates(records, k, column, table, n=MOST)
        return np.array([candidate.index for candidate in candidates], np.int64)

    found: MissedSamples | None = None
    start = 0
    for part in parts:
        rows = first(part)
        n_errors = int(np.count_nonzero(~part.hits(k)))
        here = MissedSamples(part.take(rows), rows + start, n_errors)
        both = here if found is None else found.with_more(here)
        found = both.take(first(both.records))
        start += part.n_samples
    assert found is not None  # noqa: S101 - a calibration has samples, and so a shard
    return found


def record_parts(artifacts: ArtifactStore, row: models.Calibration) -> Iterator[Records]:
    """Yield the records of the calibration set, shard by shard."""
    parts = sorted(
        (found for found in row.artifacts if found.role == "records"),
        key=lambda part: part.position,
    )
    for part in parts:
        yield read_records(artifacts, part.key, part.sha256)


class MissedCache:
    """Lists of finished calibrations, which never change: those asked for last."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[uuid.UUID, Kind, int], MissedSamples] = OrderedDict()

    def get(
        self, calibration_id: uuid.UUID, kind: Kind, k: int, find: Callable[[], MissedSamples]
    ) -> MissedSamples:
        """Return a list, found if it is not held."""
        key = calibration_id, kind, k
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                self._held.move_to_end(key)
                return held
        found = find()
        with self._lock:
            self._held[key] = found
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return found
