"""The parent's side of the process that reads the sets of one upload."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from howsure.statistics.arrays import Labels
from service.errors import (
    DeadlineExceeded,
    InvalidDataset,
    OnnxModelCrashed,
    Overloaded,
)
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.dataset import Batch, DatasetInfo, batch_of, shard_rows
from service.runner.messages.frames import (
    ALIGNMENT,
    MAX_TENSORS,
    Frame,
    Kind,
)
from service.runner.messages.limits import GIBIBYTE, DatasetLimits
from service.runner.messages.packed import MAX_NAMES_BYTES
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.messages.set_checks import check_opened, check_rows
from service.runner.messages.set_messages import (
    MOST_TRIAL_BYTES,
    OpenedSet,
    ReadRequest,
    SetToRead,
    reading_of,
)
from service.runner.process import RunnerProcess
from service.runner.spawner import Spawner

# Address space on top of the libraries; a table of 100,000 columns takes half of it.
MEMORY_BYTES = 2 * GIBIBYTE
LABEL_BYTES = 8

T = TypeVar("T")

CRASHED = (
    "The file crashed the process that reads it, or needs more than 2 GiB of memory. Write it "
    "again with a current version of the library; send a table of many columns as .npz."
)
STOPPED = "The process that read the file was stopped. Try again."


class SetReader:
    """Starts a process for each upload; ``timeout`` is for each of its answers, in seconds."""

    def __init__(
        self, spawner: Spawner, *, sandbox: SandboxRules, timeout: float, threads: int
    ) -> None:
        self._spawner = spawner
        self._sandbox = replace(sandbox, memory_bytes=MEMORY_BYTES, file_bytes=0)
        self._timeout = timeout
        self._threads = threads

    @contextmanager
    def read(
        self, sets: Sequence[SetToRead], limits: DatasetLimits, *, seconds: float = math.inf
    ) -> Iterator[list["UploadedSet"]]:
        """Open the sets of one upload; they can be read until the block ends.

        Each answer of the process may take ``seconds``, at most the reader's timeout.

        Raises
        ------
        InvalidInput
            If a set breaks a rule, or its file crashes or exhausts the process.
        SandboxUnavailable
            If this kernel cannot sandbox processes.
        Overloaded
            If no process can be started now.
        """
        limits = replace(limits, max_threads=self._threads)
        request = ReadRequest(tuple(sets), limits, self._sandbox)
        with closing(self._spawner.take()) as process:
            yield _Reader(process, min(self._timeout, seconds)).open(request)


class UploadedSet:
    """An open set of an upload; ``trial`` are its first rows."""

    def __init__(self, reader: "_Reader", position: int, location: str, opened: OpenedSet) -> None:
        self.info: DatasetInfo = opened.info
        self.trial: Batch = opened.trial
        self._labels = opened.labels
        self._order: Labels | None = None
        self._reader = reader
        self._position = position
        self._location = location

    def labels(self) -> Labels:
        """Return the labels of all samples; meaningless zeros for an unlabelled set."""
        if self._labels is None:
            return np.zeros(self.info.n_samples, np.int64)
        return self._labels if self._order is None else self._order[self._labels]

    def name_classes(
        self, class_map: Mapping[str, int], order: Labels, notes: Sequence[str]
    ) -> None:
        """Give the classes other indices: label ``i`` becomes ``order[i]``."""
        if self._labels is None:
            return
        self.info = replace(
            self.info, class_map=class_map, is_numbered_by_name=False, notes=tuple(notes)
        )
        self._order = order
        self.trial = replace(self.trial, labels=order[self.trial.labels])

    def shards(self) -> Iterator[Batch]:
        """Yield all samples in order, one shard at a time.

        Every value is checked. The process reads the next shard while the caller stores this one.

        Raises
        ------
        InvalidDataset
            If a value breaks a rule or the file is damaged; the violation names array and row.
        """
        size = shard_rows(self.info)
        for start in range(0, self.info.n_samples, size):
            yield self._rows(start, min(size, self.info.n_samples - start))

    def _rows(self, start: int, n_rows: int) -> Batch:
        columns = n_rows * (LABEL_BYTES * (1 + len(self.info.supplied) + len(self.info.design)))

        def read(answer: Frame) -> Batch:
            batch = batch_of(answer.tensors, start=start)
            check_rows(batch, self.info, self._labels, start=start, n_rows=n_rows)
            return batch

        batch = self._reader.ask(
            Kind.ROWS,
            {"set": self._position, "start": start},
            read,
            self._location,
            doing=reading_of(start, n_rows),
            most_bytes=n_rows * self.info.row_bytes + columns,
        )
        return batch if self._order is None else replace(batch, labels=self._order[batch.labels])


class _Reader:
    def __init__(self, process: RunnerProcess, timeout: float) -> None:
        self._process = process
        self._timeout = timeout

    def open(self, request: ReadRequest) -> list[UploadedSet]:
        def read(answer: Frame) -> list[OpenedSet]:
            opened = [OpenedSet.of(answer.tensors, at) for at in range(len(request.sets))]
            for opened_set, to_read in zip(opened, request.sets, strict=True):
                check_opened(opened_set, to_read, request.limits)
            return opened

        a_set = LABEL_BYTES * request.limits.max_samples + MOST_TRIAL_BYTES + 2 * MAX_NAMES_BYTES
        opened = self.ask(
            Kind.READ,
            request,
            read,
            request.sets[0].location,
            doing="Reading the file",
            most_bytes=a_set * len(request.sets),
        )
        return [
            UploadedSet(self, at, asked.location, found)
            for at, (asked, found) in enumerate(zip(request.sets, opened, strict=True))
        ]

    def ask(
        self,
        kind: Kind,
        message: object,
        read: Callable[[Frame], T],
        location: str,
        *,
        doing: str,
        most_bytes: int,
    ) -> T:
        """Ask the process; ``doing`` is the operation, for messages."""
        request = ChildRequest(
            kind,
            message,
            read,
            self._timeout,
            tensors={},
            location=location,
            max_answer_bytes=most_bytes + ALIGNMENT * MAX_TENSORS,
        )
        try:
            return ask(self._process, request)
        except DeadlineExceeded as error:
            raise InvalidDataset.at(
                location, f"{doing} took longer than {self._timeout:g} s."
            ) from error
        except OnnxModelCrashed as error:
            if error.is_from_outside:
                raise Overloaded(STOPPED) from error
            raise InvalidDataset.at(location, CRASHED) from error
