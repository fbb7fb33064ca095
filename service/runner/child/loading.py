"""From the files of an ONNX model to one that answers."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.errors import InferenceFailed
from service.runner.child.load_ensemble import load_ensemble
from service.runner.child.load_options import LoadOptions
from service.runner.child.load_single import load_single
from service.runner.child.load_stochastic import load_stochastic
from service.runner.child.loaded_model import LoadedModel
from service.runner.child.onnx_file import OnnxFile
from service.runner.child.watchdog import Watchdog
from service.runner.frames import Array
from service.runner.pass_plan import ENSEMBLE


@dataclass(frozen=True)
class Bytes:
    """The contents of a model's files; ``onnx_models`` are several for an ensemble."""

    onnx_models: Sequence[bytes]
    companions: Mapping[str, memoryview]


def read_files(paths: Sequence[str], companions: Mapping[str, str]) -> Bytes:
    """Read the ONNX files and map their companions; nothing looks at the bytes yet.

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
    opened = [OnnxFile(data, files.companions, options, watchdog) for data in files.onnx_models]
    if len(opened) > 1:
        return load_ensemble(opened, options, trial)
    if options.plan(ENSEMBLE) is not None:
        return load_stochastic(opened[0], options, trial)
    return load_single(opened[0], options, trial)


def _map(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
