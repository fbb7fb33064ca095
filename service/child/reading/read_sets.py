"""Reads the sets of one upload: opens their files, drops its rights, then parses them."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from service.child.lockdown.lock_down import lock_down
from service.child.reading.open_set import read_set
from service.child.reading.set_file import SetFile
from service.errors import InferenceFailed, InvalidDataset, ServiceError, TooLarge
from service.runner.messages.convert import FieldError, convert
from service.runner.messages.dataset import Batch, Dataset, batch_tensors, shard_rows
from service.runner.messages.frames import Array
from service.runner.messages.limits import GIBIBYTE, MEBIBYTE
from service.runner.messages.packed import MAX_NAMES_BYTES
from service.runner.messages.reading import Reading, SetContext
from service.runner.messages.set_messages import (
    OpenedSet,
    ReadRequest,
    SetToRead,
    reading_of,
    trial_rows,
)

NICE = 10
NOTHING = -1
READING_THE_FILE = "Reading the file"
NAMES_TOO_LONG = (
    f"expected names of columns and classes of at most {MAX_NAMES_BYTES // MEBIBYTE} MiB in all; "
    "send fewer, or shorten them"
)

Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


class SetReading:
    """The sets of one upload; a process reads one upload in its life."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        request = convert(fields, ReadRequest)
        files = [SetFile(asked.path) for asked in request.sets]
        paths = [asked.reading.labels for asked in request.sets]
        labels = [None if path is None else SetFile(path) for path in paths]
        os.nice(NICE)
        lock_down(request.sandbox, uses_cuda=False)
        self._request = request
        self._files = list(zip(request.sets, files, labels, strict=True))
        self._datasets: list[Dataset] = []
        self._rows: Iterator[Batch] = iter(())
        self._reads = NOTHING
        self._next_row = 0
        self._ahead: Batch | ServiceError | None = None

    def read(self) -> Answer:
        """Return what each set holds, with all of its labels and its first rows.

        Raises
        ------
        ServiceError
            For the first set that breaks a rule.
        """
        tensors: dict[str, Array] = {}
        for position, (asked, file, labels) in enumerate(self._files):
            tensors |= self._open(asked, file, labels).as_tensors(position)
            try:
                OpenedSet.of(tensors, position)
            except FieldError as error:
                # The parent would treat it as a protocol error and kill this process.
                raise TooLarge.at(asked.location, NAMES_TOO_LONG) from error
        return {}, tensors

    def rows(self, position: int, start: int) -> Answer:
        """Return the shard that begins at row ``start`` of a set; 0 begins anew.

        Raises
        ------
        ServiceError
            If its rows break a rule.
        """
        if start == 0 and (position != self._reads or self._next_row > 0):
            self._begin(position)
        if (position, start) != (self._reads, self._next_row):
            raise InferenceFailed("The service asked for rows in another order.")
        found = self._next() if self._ahead is None else self._ahead
        self._ahead = None
        if isinstance(found, ServiceError):
            raise found
        self._next_row += len(found.labels)
        dataset = self._datasets[position]
        return {"start": found.start}, batch_tensors(found, labelled=dataset.info.labelled)

    def work_ahead(self) -> None:
        """Read the next shard before it is asked for, while the service stores the last one."""
        if self._reads == NOTHING or self._ahead is not None or self._next_row == 0:
            return
        if self._next_row < self._datasets[self._reads].info.n_samples:
            self._ahead = self._next()

    def _open(self, asked: SetToRead, file: SetFile, labels_file: SetFile | None) -> OpenedSet:
        try:
            reading = self._by_name(asked.reading)
            ctx = SetContext(asked.location, self._request.limits, reading, asked.labels_required)
            dataset = read_set(file, labels_file, ctx)
            self._datasets.append(dataset)
            _check_n_samples(dataset.info.n_samples, asked.least_samples, ctx)
            labels = dataset.labels() if dataset.info.labelled else None
            batches = dataset.batches(trial_rows(dataset.info))
            return OpenedSet(dataset.info, labels, next(batches))
        except Exception as error:
            raise self._failure(error, asked.location, READING_THE_FILE) from error

    def _by_name(self, reading: Reading) -> Reading:
        """Return the options of a further set: columns and classes are those of the first."""
        if not self._datasets:
            return reading
        first = self._datasets[0].info
        reading = replace(reading, score_range=first.score_range, known_texts=first.texts)
        if first.columns:
            return replace(
                reading,
                columns={**first.columns, **(reading.columns or {})},
                takes_other_columns=bool(reading.input_columns),
            )
        if first.kind != "inputs" and first.class_map:
            return replace(reading, class_map=first.class_map)
        return reading

    def _begin(self, position: int) -> None:
        dataset = self._datasets[position]
        self._rows = dataset.batches(shard_rows(dataset.info))
        self._reads, self._next_row, self._ahead = position, 0, None

    def _next(self) -> Batch | ServiceError:
        (asked, _, _), info = self._files[self._reads], self._datasets[self._reads].info
        n_rows = min(shard_rows(info), info.n_samples - self._next_row)
        try:
            return next(self._rows)
        except Exception as error:  # noqa: BLE001 - a stranger's file
            doing = reading_of(self._next_row, n_rows)
            return self._failure(error, asked.location, doing)

    def _failure(self, error: Exception, location: str, doing: str) -> ServiceError:
        """Return the error for the sender, which never contains a library's message."""
        if isinstance(error, ServiceError):
            return error
        if isinstance(error, MemoryError):
            most = self._request.sandbox.memory_bytes / GIBIBYTE
            return TooLarge.at(
                location,
                f"{doing} needs more than {most:g} GiB of memory. In Parquet, write smaller row "
                "groups (row_group_size=10_000); send a wide CSV as .npz.",
            )
        print(f"{type(error).__name__}: {error}"[:500], flush=True)  # noqa: T201 - to the log
        return InvalidDataset.at(location, "The file is damaged. Write it again and resend.")


def _check_n_samples(n_samples: int, least: int, ctx: SetContext) -> None:
    if n_samples < least:
        raise ctx.invalid(f"expected at least {least} samples, got {n_samples}")
