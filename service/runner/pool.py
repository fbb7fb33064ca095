"""The pool of child processes that keep ONNX models loaded, for all threads of the service."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

from howsure.events import HeadOutputs
from howsure.onnx_head.spec import ExportSpec
from howsure.statistics.records.records import Records, concatenate
from service.runner.child_requests import ChildRequest, ChildRequests
from service.runner.devices import Device, DeviceFinder, Placement, usable_cpus
from service.runner.fitter import Fitter
from service.runner.loaded_models import Answered, Deadline, LoadedModels
from service.runner.messages.frames import Array
from service.runner.messages.input_rows import RECORDED_ROWS, chunks
from service.runner.messages.onnx_models import LoadedOnnxModel, OnnxModelFiles
from service.runner.messages.requests import ExportedOnnxModel
from service.runner.messages.sandbox_rules import DEFAULT_RULES, SandboxRules
from service.runner.messages.set_messages import TRIAL_ROWS
from service.runner.model_output import OutputMatrix, output_spec
from service.runner.predict_requests import BatchLimits
from service.runner.process import RunnerProcess
from service.runner.queue_bounds import QueueBounds
from service.runner.served_models import ServedModels, ServingRoom
from service.runner.set_reader import SetReader
from service.runner.spawner import Spawner, StartChild

T = TypeVar("T")


class RunnerPool:
    """Loads ONNX models in child processes and asks them; safe to use from many threads.

    A model stays loaded until ``max_processes`` others were used more recently; a spare child
    is kept ready. If a child dies, hangs or sends an invalid response, its request fails, and the
    next request gets a new child.

    Parameters
    ----------
    device
        ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or several, as ``cuda:0,cuda:1``: served models
        are spread over all of them, others use the first.
    threads
        Threads of one run of a model; 0 or None: all processors that this process may use.
    load_timeout_s
        Time to load a model and run its trial rows.
    trial_timeout_s
        The same for a small uploaded model; each 16 MiB add a second, up to ``load_timeout_s``.
    run_timeout_s
        Time for each batch of rows (256, or the model's fixed batch).
    queue_timeout_s
        Time to wait for a child that other requests use.
    read_timeout_s
        Time to open the sets of an upload, and to read each shard of them.
    fit_timeout_s
        Time for one fit.
    max_classes
        Maximum number of classes of a model.
    max_nodes
        Maximum number of nodes of a model; those of its functions count at each call.
    sandbox
        The rights of a model's process.
    answered
        Called after each answer of a child, with the operation, the number of rows and the seconds.
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
        trial_timeout_s: float = 20.0,
        run_timeout_s: float = 30.0,
        queue_timeout_s: float = 60.0,
        read_timeout_s: float = 300.0,
        max_classes: int = 100_000,
        max_nodes: int = 50_000,
        fit_timeout_s: float = 3600.0,
        sandbox: SandboxRules = DEFAULT_RULES,
        answered: Answered = lambda *_: None,
        start_child: StartChild = RunnerProcess.start,
    ) -> None:
        self._requests = ChildRequests(
            load_timeout=load_timeout_s,
            trial_timeout=trial_timeout_s,
            run_timeout=run_timeout_s,
            max_classes=max_classes,
            max_nodes=max_nodes,
            threads=threads or usable_cpus(),
            sandbox=sandbox,
        )
        self._answered = answered
        self._spawner = Spawner(start_child)
        self._queue_timeout_s = queue_timeout_s
        self._loaded = LoadedModels(self._spawner, size=max_processes, answered=answered)
        self._finder = DeviceFinder(device, self._spawner)
        self.fitter = Fitter(self._spawner, sandbox, fit_timeout_s)
        self.sandbox = sandbox
        self.reader = SetReader(
            self._spawner, sandbox=sandbox, timeout=read_timeout_s, threads=usable_cpus()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all children; running and later requests fail with `Overloaded`."""
        self._loaded.close()
        self._spawner.close()

    def serve(self, *, limits: BatchLimits, room: ServingRoom, bounds: QueueBounds) -> ServedModels:
        """Return models that answer requests of the running event loop in children of their own.

        The caller closes them before this pool.
        """
        return ServedModels(
            self._spawner,
            self._requests,
            placement=Placement(self.devices),
            limits=limits,
            room=room,
            bounds=bounds,
            answered=self._answered,
        )

    def count_loaded(self) -> int:
        """Return the number of loaded models."""
        return self._loaded.count_loaded()

    def devices(self) -> tuple[Device, ...]:
        """Return all devices that models run on; raises as `device`."""
        return self._finder.devices()

    def device(self) -> Device:
        """Return the first device that models run on; the first call probes it.

        Raises
        ------
        InferenceFailed
            If CUDA was requested by name and cannot be used.
        Overloaded
            If no child process can be started now.
        """
        return self._finder.devices()[0]

    def inspect(
        self,
        files: OnnxModelFiles,
        trial: Mapping[str, Array],
        **choices: Any,  # noqa: ANN401 - the fields of a request
    ) -> LoadedOnnxModel:
        """Load a model, run it on real rows and describe it; it stays loaded.

        Parameters
        ----------
        trial
            First rows of the calibration set, by input name; at most 256 are used.
        choices
            The caller's, by field of `LoadRequest`.

        Raises
        ------
        InvalidOnnxModel, InvalidConfig, TooLarge
            If the model cannot be served, or not as requested.
        InvalidDataset
            If the model does not take the rows.
        InferenceFailed
            If the child died or took too long.
        Overloaded
            If no child is free.
        """
        message = replace(
            self._requests.message(files, self.device().name), location="calibration", **choices
        )
        request = self._requests.try_out(
            message, {name: array[:TRIAL_ROWS] for name, array in trial.items()}
        )
        return self._loaded.load_new(
            request, lambda loaded: files.key(loaded.resolved), self._deadline()
        )

    def predict(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        inputs: Mapping[str, Array],
        *,
        start: int = 0,
        location: str = "inputs",
        of_rows: int | None = None,
    ) -> HeadOutputs:
        """Return top classes and uncertainties of each row.

        Parameters
        ----------
        resolved
            `LoadedOnnxModel.resolved` of these files.
        start, of_rows
            Number of the first row, and of the rows of the whole set, for errors.

        Raises
        ------
        InvalidInput
            If the model does not take the inputs, or a row's output is not finite.
        InferenceFailed
            If the child died or took too long.
        Overloaded
            If no child is free.
        """
        spec = output_spec(resolved)
        requests = (
            self._requests.predict(
                part, spec, start=start + rows.start, location=location, of_rows=of_rows
            )
            for rows, part in chunks(inputs, fixed_batch=spec.model.fixed_batch, start=start)
        )
        return OutputMatrix.joined(self._ask(files, resolved, requests)).outputs

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
        """Return the record of each row; a row's record does not depend on the rows beside it.

        See `predict`. ``start`` also determines a row's place in its batch, ``seed`` the tie keys.
        ``device`` is one of `devices`, by default the first. With ``while_waiting``, the wait for
        a child has no limit; ``while_waiting`` is called repeatedly, also between two parts of
        the rows, and may raise.

        Raises
        ------
        InvalidDataset
            If the model does not take inputs or labels, or a row's output is not finite.
        InferenceFailed
            If the child died or took too long.
        Overloaded
            If no child is free.
        """
        spec = output_spec(resolved)
        parts = chunks(
            inputs, fixed_batch=spec.model.fixed_batch, start=start, at_a_time=RECORDED_ROWS
        )
        requests = (
            self._requests.record(
                part, labels[rows], spec, seed=seed, start=start + rows.start, location=location
            )
            for rows, part in parts
        )
        return concatenate(
            self._ask(files, resolved, requests, device=device, while_waiting=while_waiting)
        )

    def export(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        spec: ExportSpec,
        rows: Mapping[str, Array],
        *,
        location: str = "calibration",
    ) -> ExportedOnnxModel:
        """Write a calibrated model as one file, and run that file on these rows.

        Raises
        ------
        InvalidOnnxModel, InvalidConfig
            If the model cannot be written.
        InferenceFailed
            If the child died or took too long.
        Overloaded
            If no child is free.
        """
        request = self._requests.export(
            files, resolved, spec, rows, device=self.device().name, location=location
        )
        return self._loaded.ask_once(request, self._deadline())

    def _ask(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        requests: Iterable[ChildRequest[T]],
        *,
        device: Device | None = None,
        while_waiting: Callable[[], None] | None = None,
    ) -> list[T]:
        """Send requests one after the other to one child."""
        key: Hashable = files.key(resolved)
        if device is not None and device != self.device():
            key = (key, device.name)

        def load() -> ChildRequest[LoadedOnnxModel]:
            return self._requests.load(files, resolved, device=(device or self.device()).name)

        results: list[T] = []
        with self._loaded.child(key, self._deadline(while_waiting)) as child:
            for request in requests:
                if while_waiting is not None:
                    while_waiting()
                results.append(self._loaded.ask(child, load, request))
        return results

    def _deadline(self, while_waiting: Callable[[], None] | None = None) -> Deadline:
        if while_waiting is None:
            return Deadline(self._queue_timeout_s)
        return Deadline(math.inf, while_waiting)
