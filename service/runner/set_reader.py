"""The parent's side of the process that reads the sets of one upload."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from howsure.statistics.arrays import Labels
from service.errors import (
    DeadlineExceeded,
    InvalidDataset,
    OnnxModelCrashed,
    Overloaded,
    ServiceError,
    TooLarge,
)
from service.runner.messages.dataset import Batch, DatasetInfo, batch_of, shard_rows
from service.runner.messages.failures import raise_failure
from service.runner.messages.frames import (
    ALIGNMENT,
    MAX_TENSOR_BYTES,
    MAX_TENSORS,
    Frame,
    FrameError,
    Kind,
    Status,
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

CRASHED = (
    "The file crashed the process that reads it. Write it again with a current version of the "
    "library."
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
        process = self._spawner.take()
        try:
            reader = _Reader(process, min(self._timeout, seconds))
            yield reader.open(request)
        finally:
            process.close()


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
        answer = self._reader.ask(
            Kind.ROWS,
            {"set": self._position, "start": start},
            self._location,
            doing=reading_of(start, n_rows),
            most_bytes=n_rows * self.info.row_bytes + columns,
        )
        with self._reader.killed_for_protocol_error(self._location):
            batch = batch_of(answer.tensors, start=start)
            check_rows(batch, self.info, self._labels, start=start, n_rows=n_rows)
        return batch if self._order is None else replace(batch, labels=self._order[batch.labels])


class _Reader:
    def __init__(self, process: RunnerProcess, timeout: float) -> None:
        self._process = process
        self._timeout = timeout

    def open(self, request: ReadRequest) -> list[UploadedSet]:
        a_set = LABEL_BYTES * request.limits.max_samples + MOST_TRIAL_BYTES + 2 * MAX_NAMES_BYTES
        location = request.sets[0].location
        answer = self.ask(
            Kind.READ,
            request.as_fields(),
            location,
            doing="Reading the file",
            most_bytes=a_set * len(request.sets),
        )
        with self.killed_for_protocol_error(location):
            opened = [OpenedSet.of(answer.tensors, at) for at in range(len(request.sets))]
            for found, asked in zip(opened, request.sets, strict=True):
                check_opened(found, asked, request.limits)
        return [
            UploadedSet(self, at, asked.location, found)
            for at, (asked, found) in enumerate(zip(request.sets, opened, strict=True))
        ]

    def ask(
        self,
        kind: Kind,
        fields: Mapping[str, Any],
        location: str,
        *,
        doing: str,
        most_bytes: int,
    ) -> Frame:
        """Ask the process; ``doing`` is the operation, for messages."""
        most_bytes += ALIGNMENT * MAX_TENSORS
        try:
            answer = self._process.call(
                kind,
                fields,
                timeout=self._timeout,
                max_tensor_bytes=min(most_bytes, MAX_TENSOR_BYTES),
            )
        except DeadlineExceeded as error:
            raise InvalidDataset.at(
                location, f"{doing} took longer than {self._timeout:g} s."
            ) from error
        except OnnxModelCrashed as error:
            raise _crashed(error, location) from error
        except FrameError as error:
            raise TooLarge.at("config", "expected shorter lists of names") from error
        if answer.status is Status.FAILED:
            self._fail(answer, location)
        return answer

    @contextmanager
    def killed_for_protocol_error(self, location: str) -> Iterator[None]:
        """Kill the process if the block refuses its answer."""
        try:
            yield
        except ValueError as error:
            raise _crashed(self._process.kill_for_protocol_error(str(error)), location) from error

    def _fail(self, answer: Frame, location: str) -> NoReturn:
        with self.killed_for_protocol_error(location):
            raise_failure(answer, invalid=InvalidDataset)


def _crashed(error: OnnxModelCrashed, location: str) -> ServiceError:
    if error.is_from_outside:
        return Overloaded(STOPPED)
    return InvalidDataset.at(location, CRASHED)
