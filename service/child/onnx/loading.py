"""Loads the files of an ONNX model, and tries the model on rows of the calibration set."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from howsure.bins_document.pass_plan import ENSEMBLE
from service.child.onnx.averaged_model import Ensemble, StochasticGraph
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.onnx_file import OnnxFile
from service.child.onnx.single_loader import SingleLoader
from service.child.onnx.trial import fitted_trial
from service.child.onnx.watchdog import Watchdog
from service.errors import InferenceFailed
from service.runner.messages.frames import Array
from service.runner.messages.requests import LoadRequest


@dataclass(frozen=True)
class Bytes:
    """The contents of a model's files; an ensemble has several ``onnx_models``."""

    onnx_models: Sequence[bytes]
    companions: Mapping[str, memoryview]


def read_files(paths: Sequence[str], companions: Mapping[str, str]) -> Bytes:
    """Read the ONNX files and map their companions, without looking at the bytes.

    Raises
    ------
    InferenceFailed
        If a file cannot be read.
    """
    try:
        return Bytes(
            [Path(path).read_bytes() for path in paths],
            {name: _map(Path(at)) for name, at in companions.items()},
        )
    except OSError as error:
        raise InferenceFailed("The files of the ONNX model cannot be read.") from error


def load(
    files: Bytes, request: LoadRequest, trial: Mapping[str, Array], watchdog: Watchdog
) -> LoadedModel:
    """Load the model with its uncertainty head.

    Without choices of an earlier load, the output is chosen on the trial rows, and the head's
    answers to them are compared with the model's own.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig
        If the model cannot be served, or not as the caller wants.
    InvalidInput
        If the model does not take the trial rows.
    """
    opened = [OnnxFile(data, files.companions, request, watchdog) for data in files.onnx_models]
    loader: Ensemble | StochasticGraph | SingleLoader
    if len(opened) > 1:
        loader = Ensemble(opened, request)
    elif request.plan(ENSEMBLE) is not None:
        loader = StochasticGraph(opened[0], request)
    else:
        loader = SingleLoader(opened[0], request)
    if request.choices:
        opened[0].refuse_too_many(request.choices[0].n_classes)
        return loader.build(request.choices, request.passes)
    # The first load: probe, plan, build and try the model, in this order.
    inputs = fitted_trial(trial, opened[0].inputs, request.location)
    probes = loader.probe(inputs)
    plans = loader.plan(probes, inputs)
    loaded = loader.build([probed.choice for probed in probes], plans)
    costs = loader.try_out(loaded, probes, inputs)
    found = replace(loaded.found, costs=costs, labels=probes[0].labels)
    return replace(loaded, found=found)


def _map(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
