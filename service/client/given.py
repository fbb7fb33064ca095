"""Models and sets as callers give them, opened to be sent: paths, bytes, open files or arrays."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from service.client.npz import write_npz
from service.client.packed_folder import pack_folder
from service.client.request import FilePart


class Serialisable(Protocol):
    """A model in memory, as ``onnx.load`` and ``skl2onnx.to_onnx`` return one."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf calls it
        """Return its bytes."""


Source: TypeAlias = str | os.PathLike[str] | bytes | IO[bytes]
Model: TypeAlias = Source | Serialisable
Models: TypeAlias = Model | Sequence[Model] | None
Samples: TypeAlias = Source | Mapping[str, ArrayLike] | tuple[ArrayLike, ArrayLike]
LabelsGiven: TypeAlias = Source | ArrayLike
Companions: TypeAlias = Source | Mapping[str, Source] | Sequence[Source]


def model_parts(models: Models, files: ExitStack) -> list[FilePart]:
    """Return the parts ``model``: one, or the members of an ensemble."""
    if models is None:
        return []
    members = (
        models
        if isinstance(models, Sequence) and not isinstance(models, (str, bytes))
        else (models,)
    )
    parts: list[FilePart] = []
    for number, member in enumerate(members, start=1):
        name = "model.onnx" if len(members) == 1 else f"model_{number}.onnx"
        serialise = getattr(member, "SerializeToString", None)
        source: Source = serialise() if serialise is not None else member  # type: ignore[assignment]  # told apart by the method
        parts.append(("model", _opened(source, name, files)))
    return parts


def companion_parts(companions: Companions, files: ExitStack) -> list[FilePart]:
    """Return the parts ``model_data``, under the names by which the models know them."""
    if isinstance(companions, Mapping):
        named = [_opened(source, name, files, keep=name) for name, source in companions.items()]
    elif isinstance(companions, Sequence) and not isinstance(companions, (str, bytes)):
        named = [_opened(source, "model.onnx.data", files) for source in companions]
    else:
        named = [_opened(companions, "model.onnx.data", files)]
    return [("model_data", part) for part in named]


def samples_part(part: str, samples: Samples, files: ExitStack) -> FilePart:
    """Return a set as a part: arrays as an .npz, a folder as a zip archive, in a temporary file.

    A pair is ``inputs`` and ``labels``.

    Raises
    ------
    ValueError
        If arrays are of objects, which nobody unpickles.
    """
    if isinstance(samples, tuple):
        inputs, labels = samples
        samples = {"inputs": inputs, "labels": labels}
    if isinstance(samples, Mapping):
        packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        write_npz(packed, samples)
        return part, (f"{part}.npz", packed)
    if isinstance(samples, (str, os.PathLike)) and Path(samples).is_dir():
        packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        pack_folder(packed, Path(samples))
        return part, (f"{part}.tar", packed)
    return part, _opened(samples, part, files)


def labels_part(part: str, labels: LabelsGiven, files: ExitStack) -> FilePart:
    """Return labels that lie beside a set as a part; an array as .npy."""
    if isinstance(labels, (str, os.PathLike, bytes)) or hasattr(labels, "read"):
        source: Source = labels  # type: ignore[assignment]  # told apart by the method
        return part, _opened(source, part, files)
    packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    np.lib.format.write_array(packed, np.asarray(labels), allow_pickle=False)
    return part, (f"{part}.npy", packed)


def _opened(
    source: Source, name: str, files: ExitStack, *, keep: str | None = None
) -> tuple[str, IO[bytes] | bytes]:
    """Return a file's name and its content, to be read while it is sent."""
    if isinstance(source, bytes):
        return name, source
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return keep or path.name, files.enter_context(path.open("rb"))
    if not source.seekable():
        raise ValueError(f"{name}: an open file must be one that can be read again, not a pipe")
    called = getattr(source, "name", name)
    return keep or (Path(called).name if isinstance(called, str) else name), source
