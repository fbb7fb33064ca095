"""From the files of an ONNX model to one that answers."""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import EncodeError
from onnx import ModelProto

from service.core.measures import output_column
from service.errors import InferenceFailed, InvalidOnnxModel, TooLarge
from service.graph.choose import choose_output
from service.graph.describe import describe_onnx_model
from service.graph.description import OnnxModelDescription
from service.graph.external import attach_external_data
from service.graph.load import load_onnx_model
from service.graph.names import PREFIX
from service.graph.output import OutputChoice
from service.graph.plan import OutputPlan, plan_output
from service.graph.probe import HOOK, OUTPUT, SCALAR, probe_graph
from service.graph.serving import build_serving_graph
from service.runner.child.input_arrays import by_input, check_input_types, fit_inputs
from service.runner.child.loaded_model import LoadedModel, batch_rows, run_batches
from service.runner.child.onnx_session import OnnxSession
from service.runner.child.verify_head import verify_head, verify_scalar
from service.runner.child.watchdog import Watchdog
from service.runner.frames import Array

MAX_TRIAL_SCORES = 2**23


@dataclass(frozen=True)
class Bytes:
    """The contents of a model's files."""

    onnx_model: bytes
    companions: Mapping[str, memoryview]


@dataclass(frozen=True)
class LoadOptions:
    """What a load request says beside the files."""

    top_k: tuple[int, ...]
    max_classes: int
    device: str
    threads: int
    location: str
    output_name: str | None
    output_kind: Any
    scalar_outputs: tuple[str, ...]
    resolved: OutputChoice | None


def read_files(path: str, companions: Mapping[str, str]) -> Bytes:
    """Read the ONNX file and map its companions; nothing looks at the bytes yet.

    Raises
    ------
    InferenceFailed
        If a file cannot be read.
    """
    try:
        return Bytes(
            Path(path).read_bytes(), {name: _map(Path(at)) for name, at in companions.items()}
        )
    except OSError as error:
        raise InferenceFailed("The files of the ONNX model cannot be read.") from error


def load(
    files: Bytes, options: LoadOptions, trial: Mapping[str, Array], watchdog: Watchdog
) -> LoadedModel:
    """Load the model with its uncertainty head.

    Without a resolved choice, its output is chosen on the trial rows, and the head's answers to
    them are compared with the model's own.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig
        If the model cannot be served, or not as the caller wants.
    InvalidInput
        If the trial rows do not suit it.
    """
    loader = _Loader(load_onnx_model(files.onnx_model), files, options, watchdog)
    if options.resolved is not None:
        return loader.serve(options.resolved)
    return loader.resolve(trial)


class _Loader:
    def __init__(
        self, model: ModelProto, files: Bytes, options: LoadOptions, watchdog: Watchdog
    ) -> None:
        self._model = model
        self._options = options
        self._watchdog = watchdog
        self._description: OnnxModelDescription = describe_onnx_model(model)
        check_input_types(self._description.inputs)
        in_memory = attach_external_data(model, files.companions)
        self._scalars = {output_column(name): name for name in options.scalar_outputs}
        self._weights = {name: files.companions[name] for name in in_memory}

    def resolve(self, trial: Mapping[str, Array]) -> LoadedModel:
        """Choose the output on the trial rows, and check the head on them."""
        options = self._options
        plan = plan_output(
            self._model,
            name=options.output_name,
            kind=options.output_kind,
            scalars=options.scalar_outputs,
        )
        probe = self._session(probe_graph(self._model, plan))
        specs = self._description.inputs
        inputs = fit_inputs(by_input(trial, specs), specs, location=options.location, start=0)
        outputs = self._try(probe, inputs)
        n_rows = len(outputs[OUTPUT])
        choice = choose_output(plan, outputs, n_samples=n_rows)
        del probe
        loaded = self.serve(choice)
        rows = {name: array[:n_rows] for name, array in inputs.items()}
        head = loaded.answer(rows, location=options.location, start=0, refuse=False)
        verify_head(choice, _chosen_values(plan, choice, outputs), head)
        for position, column in enumerate(self._scalars):
            verify_scalar(outputs[f"{SCALAR}{position}"], head[PREFIX + column])
        return loaded

    def serve(self, choice: OutputChoice) -> LoadedModel:
        """Load the model with the head on the chosen output."""
        self._refuse_too_many(choice.n_classes)
        top_k = tuple(k for k in self._options.top_k if k < choice.n_classes)
        graph = build_serving_graph(
            self._model, choice, top_k=top_k or (1,), scalars=self._scalars, with_scores=True
        )
        return LoadedModel(
            self._session(graph), self._description, choice, top_k or (1,), self._scalars
        )

    def _session(self, model: ModelProto) -> OnnxSession:
        try:
            data = model.SerializeToString()
        except (EncodeError, ValueError) as error:
            raise InvalidOnnxModel.at(
                "model", "2 GiB is the limit of one ONNX file; save it with external weights"
            ) from error
        return OnnxSession(
            data,
            weights=self._weights,
            device=self._options.device,
            threads=self._options.threads,
            watchdog=self._watchdog,
        )

    def _try(self, probe: OnnxSession, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the probe: one row first, since it tells how many classes a batch must hold."""
        fixed = self._description.fixed_batch
        one = {name: array[:1] for name, array in inputs.items()}
        first = self._run(probe, one, fixed or 1)
        n_classes = int(np.prod(first[OUTPUT].shape[1:]))
        self._refuse_too_many(n_classes)
        most = max(1, MAX_TRIAL_SCORES // max(n_classes, 1))
        rows = {name: array[:most] for name, array in inputs.items()}
        return self._run(probe, rows, batch_rows(rows, max(n_classes, 1), fixed))

    def _run(self, probe: OnnxSession, rows: Mapping[str, Array], size: int) -> dict[str, Array]:
        pad = self._description.fixed_batch is not None
        location = self._options.location
        names = probe.output_names
        parts = [
            part
            for _, part in run_batches(
                probe, names, rows, size=size, pad=pad, location=location, start=0
            )
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in names}

    def _refuse_too_many(self, n_classes: int) -> None:
        if n_classes > self._options.max_classes:
            raise TooLarge.at(
                "model",
                f"expected at most {self._options.max_classes} classes, got {n_classes}",
            )


def _chosen_values(plan: OutputPlan, choice: OutputChoice, outputs: Mapping[str, Array]) -> Array:
    """Return the values of the tensor that the head reads, as the probe showed them."""
    hooked = choice.raw or choice.tensor != plan.tensor
    return outputs[HOOK] if hooked else outputs[OUTPUT]


def _map(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
