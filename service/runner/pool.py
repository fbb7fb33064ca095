"""Child processes that keep ONNX models loaded, for all threads of the service."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Self, TypeVar

from service.core.records import Records, concatenate
from service.errors import InvalidDataset, InvalidInput, OnnxModelCrashed, Overloaded
from service.runner.answers import Expected
from service.runner.arrays import check_inputs, check_labels, chunks
from service.runner.asking import Question, ask
from service.runner.cpus import usable_cpus
from service.runner.description import HeadOutputs, LoadedOnnxModel, OnnxModelFiles
from service.runner.device import Device, probe_device
from service.runner.frames import LABELS, Array, Frame, Kind
from service.runner.slots import Slot, Slots
from service.runner.spawner import Spawner

TRIAL_ROWS = 256

T = TypeVar("T")


class RunnerPool:
    """Loads ONNX models in child processes and asks them; safe to use from many threads.

    A model stays loaded until ``max_processes`` others were used more recently; one more child
    waits in reserve. A child that dies, hangs or answers nonsense costs the request it was on one
    error, and the next request gets another child.

    Parameters
    ----------
    device
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    threads
        Threads of one model's run; 0 or None: as many as this process may use.
    load_timeout_s
        For loading a model and running its trial rows.
    run_timeout_s
        For each batch of rows (256, or the model's fixed batch).
    queue_timeout_s
        For getting hold of a child, which others may be using.
    max_classes
        Most classes of a model.
    """

    def __init__(
        self,
        device: str = "auto",
        threads: int | None = None,
        *,
        max_processes: int = 4,
        load_timeout_s: float = 120.0,
        run_timeout_s: float = 30.0,
        queue_timeout_s: float = 60.0,
        max_classes: int = 100_000,
    ) -> None:
        self._requested_device = device
        self._threads = threads or usable_cpus()
        self._load_timeout = load_timeout_s
        self._run_timeout = run_timeout_s
        self._queue_timeout = queue_timeout_s
        self._max_classes = max_classes
        self._spawner = Spawner()
        self._slots = Slots(max_processes)
        self._device: Device | None = None
        self._device_lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Start a spare child without waiting for it, so that the first request need not."""
        self._spawner.prepare()

    def close(self) -> None:
        """Kill all children; requests under way fail with `Overloaded`, as do later ones."""
        self._slots.close()
        self._spawner.close()

    def device(self) -> Device:
        """Return the device that models run on; found out at the first call.

        Raises
        ------
        InferenceFailed
            If CUDA was asked for by name and cannot be used.
        Overloaded
            If no child process can be started at this time.
        """
        with self._device_lock:
            if self._device is None:
                self._device = probe_device(self._requested_device, self._spawner)
            return self._device

    def inspect(
        self,
        files: OnnxModelFiles,
        *,
        output: Mapping[str, str | None] | None = None,
        top_k: Sequence[int],
        trial: Mapping[str, Array],
        location: str = "calibration",
    ) -> LoadedOnnxModel:
        """Load a model, try it on real rows and say what it is; it stays loaded.

        Parameters
        ----------
        output
            The caller's choice: ``name`` and ``kind``, each optional.
        top_k
            Events asked for; those that the number of classes makes certain are left out.
        trial
            First rows of the calibration set, by input name; at most 256 are used.
        location
            What the rows are called in errors.

        Raises
        ------
        InvalidOnnxModel, InvalidConfig, TooLarge
            If the model cannot be served, or not as asked.
        InvalidDataset
            If the rows do not suit it.
        InferenceFailed
            If it died or took too long.
        Overloaded
            If no child is free.
        """
        check_inputs(trial, location, InvalidDataset)
        question = self._question(
            Kind.LOAD,
            self._load_fields(files, top_k) | {"output": dict(output or {}), "resolved": None},
            {name: array[:TRIAL_ROWS] for name, array in trial.items()},
            location=location,
        )
        with self._slots.hold(object(), timeout=self._queue_timeout) as slot, slot.lock:
            loaded = self._load(slot, question)
            self._slots.rename(slot, _key(files, loaded.resolved))
            return loaded

    def predict(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        inputs: Mapping[str, Array],
        *,
        start: int = 0,
        location: str = "inputs",
    ) -> HeadOutputs:
        """Return top classes and uncertainties of each row.

        Parameters
        ----------
        resolved
            `LoadedOnnxModel.resolved` of these files.
        start
            Number of the first row, for errors.

        Raises
        ------
        InvalidInput
            If the inputs do not suit the model, or a row's output is not finite.
        InferenceFailed
            If the model died or took too long.
        Overloaded
            If no child is free.
        """
        check_inputs(inputs, location, InvalidInput)
        key = _key(files, resolved)
        expected = _expected(key[-1])
        parts: list[HeadOutputs] = []
        with self._slots.hold(key, timeout=self._queue_timeout) as slot:
            for rows, part in chunks(inputs, fixed_batch=expected.fixed_batch, start=start):
                n_rows = rows.stop - rows.start
                answer = self._ask_loaded(
                    slot,
                    files,
                    resolved,
                    self._question(
                        Kind.PREDICT,
                        {"start": start + rows.start},
                        part,
                        location=location,
                        invalid=InvalidInput,
                        max_answer_bytes=expected.most_bytes(n_rows),
                    ),
                    partial(expected.head_outputs, n_rows=n_rows),
                )
                parts.append(answer)
        return parts[0] if len(parts) == 1 else HeadOutputs.concatenate(parts)

    def record(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        inputs: Mapping[str, Array],
        labels: Array,
        *,
        seed: int,
        start: int = 0,
        location: str = "calibration",
    ) -> Records:
        """Return the record of each row; the same for a row whatever rows come with it.

        Parameters
        ----------
        resolved
            `LoadedOnnxModel.resolved` of these files.
        seed
            Of the tie keys.
        start
            Number of the first row, for errors.

        Raises
        ------
        InvalidDataset
            If inputs or labels do not suit the model, or a row's output is not finite.
        InferenceFailed
            If the model died or took too long.
        Overloaded
            If no child is free.
        """
        check_inputs(inputs, location, InvalidDataset)
        key = _key(files, resolved)
        expected = _expected(key[-1])
        checked = check_labels(
            labels,
            n_rows=len(next(iter(inputs.values()))),
            n_classes=expected.n_classes,
            location=location,
            start=start,
        )
        parts: list[Records] = []
        with self._slots.hold(key, timeout=self._queue_timeout) as slot:
            for rows, part in chunks(inputs, fixed_batch=expected.fixed_batch, start=start):
                answer = self._ask_loaded(
                    slot,
                    files,
                    resolved,
                    self._question(
                        Kind.RECORD,
                        {"start": start + rows.start, "seed": seed},
                        {**part, LABELS: checked[rows]},
                        location=location,
                        max_answer_bytes=expected.most_bytes(rows.stop - rows.start),
                    ),
                    partial(expected.records, labels=checked[rows]),
                )
                parts.append(answer)
        return concatenate(parts)

    def _question(
        self,
        kind: Kind,
        fields: Mapping[str, Any],
        tensors: Mapping[str, Array],
        *,
        location: str,
        invalid: type[InvalidInput] = InvalidDataset,
        max_answer_bytes: int = 0,
    ) -> Question:
        timeout = self._load_timeout if kind is Kind.LOAD else self._run_timeout
        return Question(kind, fields, tensors, location, invalid, timeout, max_answer_bytes)

    def _load_fields(self, files: OnnxModelFiles, top_k: Sequence[int]) -> dict[str, Any]:
        return {
            "path": str(files.path.absolute()),
            "companions": {name: str(at.absolute()) for name, at in files.companions.items()},
            "top_k": list(top_k),
            "max_classes": self._max_classes,
            "device": self.device().name,
            "threads": self._threads,
        }

    def _ask_loaded(
        self,
        slot: Slot,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        question: Question,
        read: Callable[[Mapping[str, Array]], T],
    ) -> T:
        """Ask the slot's child, which gets the model first if it does not have it."""
        with self._locked(slot):
            if slot.process is None or not slot.process.is_alive():
                fields = self._load_fields(files, resolved["top_k"])
                fields |= {"output": {}, "resolved": dict(resolved)}
                self._load(slot, self._question(Kind.LOAD, fields, {}, location="model"))
            return self._ask(slot, question, lambda answer: read(answer.tensors))

    def _load(self, slot: Slot, question: Question) -> LoadedOnnxModel:
        slot.drop()
        slot.process = self._spawner.take()
        try:
            return self._ask(
                slot, question, lambda answer: LoadedOnnxModel.from_fields(answer.fields)
            )
        except BaseException:
            slot.drop()
            raise

    def _ask(self, slot: Slot, question: Question, read: Callable[[Frame], T]) -> T:
        process = slot.process
        if process is None or self._slots.is_closed:
            # Either this thread sees that the pool is closed, or `close` sees the process.
            slot.drop()
            raise Overloaded("The service is shutting down.")
        try:
            return ask(process, question, read)
        except OnnxModelCrashed as error:
            if self._slots.is_closed:
                raise Overloaded("The service is shutting down.") from error
            raise
        finally:
            if not process.is_alive():
                slot.drop()

    @contextmanager
    def _locked(self, slot: Slot) -> Iterator[None]:
        if not slot.lock.acquire(timeout=self._queue_timeout):
            raise Overloaded("The ONNX model is busy with other requests.")
        try:
            yield
        finally:
            slot.lock.release()


def _key(files: OnnxModelFiles, resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a loaded model is known by."""
    return (*files.identity(), json.dumps(resolved, sort_keys=True))


@lru_cache(maxsize=256)
def _expected(resolved: str) -> Expected:
    return Expected.from_resolved(json.loads(resolved))
