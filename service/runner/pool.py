"""Child processes that keep ONNX models loaded, for all threads of the service."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Self, TypeVar

from howsure.statistics.records.records import Records, concatenate
from service.errors import InvalidDataset, InvalidInput
from service.runner.devices import Device, DeviceFinder, LatePlacement, usable_cpus
from service.runner.loaded_models import Answered, KeptModels
from service.runner.messages.frames import Array
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.onnx_models import (
    ExportedOnnxModel,
    HeadOutputs,
    LoadedOnnxModel,
    OnnxModelFiles,
    PassPlan,
    read_exported,
)
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.sandbox_rules import DEFAULT_RULES, SandboxRules
from service.runner.messages.set_messages import SetToRead
from service.runner.model_output import check_planned, expected_of
from service.runner.predict_requests import BatchLimits
from service.runner.process import RunnerProcess
from service.runner.questions import (
    RECORDED_ROWS,
    Question,
    Questions,
    check_inputs,
    check_labels,
    chunks,
)
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.set_reader import SetReader, UploadedSet
from service.runner.slots import Patience
from service.runner.spawner import Spawner, StartChild

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
        ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or several, as ``cuda:0,cuda:1``: models that are
        served go to all of them, others to the first.
    threads
        Threads of one model's run; 0 or None: as many as this process may use.
    load_timeout_s
        For loading a model and running its trial rows.
    run_timeout_s
        For each batch of rows (256, or the model's fixed batch).
    queue_timeout_s
        For getting hold of a child, which others may be using.
    read_timeout_s
        For opening the sets of an upload, and for reading each shard of them.
    max_classes
        Most classes of a model.
    max_nodes
        Most nodes of a model, with those of its functions counted at each call.
    sandbox
        What the process of a model may do.
    answered
        Told of each answer of a child: what was asked, of how many rows, the seconds it took.
    start_child
        Starts a child process.
    """

    def __init__(  # noqa: PLR0913 - what an operator may set
        self,
        device: str = "auto",
        threads: int | None = None,
        *,
        max_processes: int = 4,
        load_timeout_s: float = 120.0,
        run_timeout_s: float = 30.0,
        queue_timeout_s: float = 60.0,
        read_timeout_s: float = 300.0,
        max_classes: int = 100_000,
        max_nodes: int = 50_000,
        sandbox: SandboxRules = DEFAULT_RULES,
        answered: Answered = lambda *_: None,
        start_child: StartChild = RunnerProcess.start,
    ) -> None:
        self._questions = Questions(
            load_timeout=load_timeout_s,
            run_timeout=run_timeout_s,
            max_classes=max_classes,
            max_nodes=max_nodes,
            threads=threads or usable_cpus(),
            sandbox=sandbox,
        )
        self._answered = answered
        self._spawner = Spawner(start_child)
        self._kept = KeptModels(
            self._spawner, size=max_processes, queue_timeout=queue_timeout_s, answered=answered
        )
        self._finder = DeviceFinder(device, self._spawner)
        self._reader = SetReader(
            self._spawner,
            sandbox=sandbox,
            timeout=read_timeout_s,
            threads=usable_cpus(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Start a spare child without waiting for it, so that the first request need not."""
        self._spawner.prepare()

    def close(self) -> None:
        """Kill all children; requests under way fail with `Overloaded`, as do later ones."""
        self._kept.close()
        self._spawner.close()

    def serve(
        self,
        *,
        limits: BatchLimits,
        room: ServingRoom,
        bounds: QueueBounds,
    ) -> ServedModels:
        """Return models that answer requests of the running event loop, with children of their own.

        They are to be closed before this pool is.
        """
        return ServedModels(
            self._spawner,
            self._questions,
            placement=LatePlacement(self.devices),
            limits=limits,
            room=room,
            bounds=bounds,
            answered=self._answered,
        )

    def read_sets(
        self, sets: Sequence[SetToRead], limits: DatasetLimits, *, seconds: float = math.inf
    ) -> AbstractContextManager[list[UploadedSet]]:
        """Open the sets of one upload in a process of its own, which lives as long as the block.

        Each of its answers may take ``seconds``, at most those of the pool.

        Raises
        ------
        InvalidInput
            If a set breaks a rule, or its file ends or exhausts the process that reads it.
        SandboxUnavailable
            If processes cannot be locked in here.
        Overloaded
            If no process can be started at this time.
        """
        return self._reader.read(sets, limits, seconds=seconds)

    def count_loaded(self) -> int:
        """Return how many models are loaded at this time."""
        return self._kept.count_loaded()

    @property
    def allows_unsandboxed(self) -> bool:
        """Whether models run where the kernel cannot lock their processes in."""
        return self._questions.sandbox.allow_unsandboxed

    def devices(self) -> tuple[Device, ...]:
        """Return all devices that models run on; as `device`."""
        return self._finder.devices()

    def device(self) -> Device:
        """Return the first device that models run on; found out at the first call.

        Raises
        ------
        InferenceFailed
            If CUDA was asked for by name and cannot be used.
        Overloaded
            If no child process can be started at this time.
        """
        return self._finder.device()

    def inspect(
        self,
        files: OnnxModelFiles,
        *,
        output: Mapping[str, str | None] | None = None,
        top_k: Sequence[int],
        scalar_outputs: Sequence[str] = (),
        passes: Sequence[PassPlan] = (),
        preprocessing: Preprocessing | None = None,
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
        scalar_outputs
            Outputs of the graph with one number a sample, which are passed through as columns.
        passes
            Measures that run the model more than once.
        preprocessing
            What makes the model's input of an array called ``pixels``, uint8 of shape (n, height,
            width, channels), also in what is asked later.
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
        question = self._questions.try_out(
            files,
            {name: array[:TRIAL_ROWS] for name, array in trial.items()},
            output=output or {},
            top_k=top_k,
            scalar_outputs=scalar_outputs,
            passes=passes,
            preprocessing=preprocessing,
            device=self.device().name,
            location=location,
        )
        return self._kept.load_new(
            question,
            lambda loaded: files.key(loaded.resolved),
            partial(
                check_planned,
                asked=passes,
                n_models=1 + len(files.members),
                preprocessing=preprocessing,
            ),
        )

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
        expected = expected_of(resolved)

        def question(rows: slice, part: dict[str, Array]) -> Question:
            return self._questions.predict(
                part, expected, start=start + rows.start, location=location
            )

        def read(rows: slice, answer: Mapping[str, Array]) -> HeadOutputs:
            return expected.head_outputs(answer, rows.stop - rows.start)

        parts = chunks(inputs, fixed_batch=expected.fixed_batch, start=start)
        return HeadOutputs.concatenate(self._ask(files, resolved, parts, question, read))

    def record(  # noqa: PLR0913 - what a record depends on
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        inputs: Mapping[str, Array],
        labels: Array,
        *,
        seed: int,
        start: int = 0,
        location: str = "calibration",
        device: Device | None = None,
        while_waiting: Callable[[], None] | None = None,
    ) -> Records:
        """Return the record of each row; the same for a row whatever rows come with it.

        As `predict`; ``start`` also tells a row's place in its batch, and ``seed`` is that of the
        tie keys. ``device`` is one of `devices`, the first if none is named. With
        ``while_waiting``, which is called again and again and may raise, also between two parts of
        the rows, there is no end to the waiting for a child that others use.

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
        expected = expected_of(resolved)
        checked = check_labels(
            labels,
            n_rows=len(next(iter(inputs.values()))),
            n_classes=expected.n_classes,
            location=location,
            start=start,
        )

        def question(rows: slice, part: dict[str, Array]) -> Question:
            return self._questions.record(
                part,
                checked[rows],
                expected,
                seed=seed,
                start=start + rows.start,
                location=location,
            )

        def read(rows: slice, answer: Mapping[str, Array]) -> Records:
            return expected.records(answer, checked[rows])

        parts = chunks(
            inputs, fixed_batch=expected.fixed_batch, start=start, at_a_time=RECORDED_ROWS
        )
        return concatenate(
            self._ask(
                files,
                resolved,
                parts,
                question,
                read,
                device=device,
                while_waiting=while_waiting,
            )
        )

    def export(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        spec: Mapping[str, Any],
        rows: Mapping[str, Array],
        *,
        location: str = "calibration",
    ) -> ExportedOnnxModel:
        """Write a calibrated model as one file, and run that file on these rows.

        Parameters
        ----------
        spec
            `service.graph.export_spec.ExportSpec.as_dict`.

        Raises
        ------
        InvalidOnnxModel, InvalidConfig
            If it cannot be written.
        InferenceFailed
            If the child died or took too long.
        Overloaded
            If no child is free.
        """
        check_inputs(rows, location, InvalidDataset)
        n_rows = len(next(iter(rows.values())))
        question = self._questions.export(
            files, resolved, spec, rows, device=self.device().name, location=location
        )
        return self._kept.ask_once(question, lambda tensors: read_exported(tensors, n_rows))

    def _ask(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        parts: Iterable[tuple[slice, dict[str, Array]]],
        question: Callable[[slice, dict[str, Array]], Question],
        read: Callable[[slice, Mapping[str, Array]], T],
        *,
        device: Device | None = None,
        while_waiting: Callable[[], None] | None = None,
    ) -> list[T]:
        """Ask about some rows after the others; between two parts others get their turn."""
        key: Hashable = files.key(resolved)
        if device is not None and device != self.device():
            key = (key, device.name)

        def loading() -> Question:
            return self._questions.load(files, resolved, device=(device or self.device()).name)

        def patience() -> Patience:
            if while_waiting is None:
                return self._kept.patience()
            return Patience(float("inf"), while_waiting)

        answers: list[T] = []
        with self._kept.hold(key, patience()) as slot:
            for rows, part in parts:
                if while_waiting is not None:
                    while_waiting()
                answers.append(
                    self._kept.ask(
                        slot, loading, question(rows, part), partial(read, rows), patience()
                    )
                )
        return answers
