"""Files of uploads, and .npz archives."""

import io
import mmap
import os
import random
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.client.frames import (
    INPUTS,
    OUTPUT_PREFIXES,
    SCORES,
    Frame,
    as_pandas,
    is_frame,
    output_array,
    output_table,
    parquet_bytes,
    with_labels,
)
from howsure.client.labels import label_array
from howsure.client.request import FilePart
from howsure.npz import write_npz

Arrays = dict[str, NDArray[Any]]


def read_npz(content: bytes) -> Arrays:
    """Return the arrays of an archive, in its order, without unpickling."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


_SEED = 0


def pack_folder(target: IO[bytes], folder: Path) -> None:
    """Write all files of a folder as a tar file, except those that begin with a dot.

    They are shuffled in a fixed order, so that the first few hundred pictures cover all classes.
    Files that differ only in their suffix, such as a picture and its label, stay together. Empty
    folders have an entry, because they are classes too. Owners and times are omitted.

    Raises
    ------
    ValueError
        If there are no files, or an entry is neither file nor folder.
    OSError
        If a file cannot be read, or there is no space.
    """
    files, empty_folders = _found(folder)
    for name in empty_folders:
        target.write(_header(name, tarfile.DIRTYPE))
    for name in _shuffled(files):
        _add(target, folder, name)
    target.write(bytes(2 * tarfile.BLOCKSIZE))
    target.flush()  # so that the operating system reports the full size


def _found(folder: Path) -> tuple[list[str], list[str]]:
    """Return the files and the empty folders below a folder, by relative name."""
    files: list[str] = []
    empty_folders: list[str] = []
    below = [""]
    while below:
        prefix = below.pop()
        entries = [e for e in os.scandir(folder / prefix) if not e.name.startswith(".")]
        if prefix and not entries:
            empty_folders.append(prefix.rstrip("/"))
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append(f"{name}/")
            elif entry.is_file(follow_symlinks=False):
                files.append(name)
            else:
                raise ValueError(
                    f"{folder / name} is neither file nor folder; replace links by copies (cp -RL)"
                )
    if not files:
        raise ValueError(f"{folder} contains no files")
    return files, sorted(empty_folders)


def _shuffled(files: list[str]) -> Iterator[str]:
    """Yield groups of files that differ only in their suffix, in no particular order."""
    groups: dict[str, list[str]] = {}
    for name in sorted(files):
        groups.setdefault(os.path.splitext(name)[0], []).append(name)  # noqa: PTH122 - text, in an archive
    keys = list(groups)
    random.Random(_SEED).shuffle(keys)  # noqa: S311 - nothing secret hangs on it
    for key in keys:
        yield from groups[key]


def _add(packed: IO[bytes], folder: Path, name: str) -> None:
    # Not by `TarFile`, which keeps an object for each file. A link that has replaced the file since
    # then is not followed.
    descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{folder / name} is no longer a file")
        packed.write(_header(name, tarfile.REGTYPE, status.st_size))
        start = packed.tell()
        shutil.copyfileobj(file, packed)
        if packed.tell() - start != status.st_size:
            raise ValueError(f"{folder / name} changed while it was packed; try again")
        packed.write(bytes(-status.st_size % tarfile.BLOCKSIZE))


def _header(name: str, kind: bytes, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.size = size
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8")


class Serialisable(Protocol):
    """A model in memory, such as ``onnx.load`` and ``skl2onnx.to_onnx`` return."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf calls it
        """Return the bytes of the model."""


Source: TypeAlias = str | os.PathLike[str] | bytes | IO[bytes]
Model: TypeAlias = Source | Serialisable
Models: TypeAlias = Model | Sequence[Model] | None
NamedSamples: TypeAlias = Source | Mapping[str, ArrayLike] | Frame
Samples: TypeAlias = NamedSamples | tuple[ArrayLike, ArrayLike]
LabelsGiven: TypeAlias = Source | ArrayLike
ClassIndices: TypeAlias = Mapping[str, int] | None
LABELS = "labels"
FILES = (str, bytes, os.PathLike)
Companions: TypeAlias = Source | Mapping[str, Source] | Sequence[Source]


def model_parts(models: Models, files: ExitStack) -> list[FilePart]:
    """Return the parts ``model``: one model, or the members of an ensemble."""
    members = _members(models)
    parts: list[FilePart] = []
    for number, member in enumerate(members, start=1):
        name = "model.onnx" if len(members) == 1 else f"model_{number}.onnx"
        if isinstance(member, Mapping) or hasattr(member, "__array__"):
            raise TypeError(
                f"model: expected an ONNX file, got {type(member).__name__}; pass samples as "
                "calibration=, after the model or without one"
            )
        serialise = getattr(member, "SerializeToString", None)
        source: Source = serialise() if serialise is not None else member  # type: ignore[assignment]  # told apart by the method
        parts.append(("model", _opened(source, name, files)))
    return parts


def _members(models: Models) -> Sequence[Model]:
    if models is None:
        return ()
    is_several = isinstance(models, Sequence) and not isinstance(models, (str, bytes))
    return models if is_several else (models,)  # type: ignore[return-value]  # told apart above


def companion_parts(
    companions: Companions | None, models: Models, files: ExitStack
) -> list[FilePart]:
    """Return the parts ``model_data``, under their names in the models.

    If ``companions`` is None, they are the files beside the models that the models name.
    """
    if companions is None:
        found = (path for model in _members(models) for path in _companions_of(model))
        companions = list(dict.fromkeys(found))
    if isinstance(companions, Mapping):
        named = [_opened(source, name, files, keep=name) for name, source in companions.items()]
    elif isinstance(companions, Sequence) and not isinstance(companions, (str, bytes)):
        named = [_opened(source, "model.onnx.data", files) for source in companions]
    else:
        named = [_opened(companions, "model.onnx.data", files)]
    return [("model_data", part) for part in named]


# The place of a tensor's values in a protobuf message: a key, and the length of a short name.
LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])")


def _companions_of(model: Model) -> list[Path]:
    """Return the files with external weights beside a model on disk, whatever they are called."""
    if not isinstance(model, (str, os.PathLike)) or not Path(model).stat().st_size:
        return []
    path = Path(model)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        # The model holds their plain names, so no parser is needed to find them.
        places = {content[m.end() : m.end() + m[1][0]] for m in LOCATION.finditer(content)}
    names = {os.fsdecode(place) for place in places if b"/" not in place and b"\0" not in place}
    return sorted(path.parent / name for name in names if (path.parent / name).is_file())


def _samples_part(
    part: str, samples: NamedSamples, files: ExitStack, indices: ClassIndices
) -> FilePart:
    """Return a set as a part: arrays as an .npz, a folder as a tar, in a temporary file.

    A data frame is sent as a table with its column names. ``indices`` has the index of each class
    by name, for labels of arrays that are names.

    Raises
    ------
    ValueError
        If an array contains objects, or a label is not known.
    """
    if is_frame(samples):
        return part, (f"{part}.parquet", parquet_bytes(samples))
    if isinstance(samples, Mapping):
        if LABELS in samples:
            samples = {**samples, LABELS: label_array(samples[LABELS], indices)}
        packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        write_npz(packed, samples)
        return part, (f"{part}.npz", packed)
    if isinstance(samples, (str, os.PathLike)) and Path(samples).is_dir():
        packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        pack_folder(packed, Path(samples))
        return part, (Path(samples).resolve().name or f"{part}.tar", packed)
    return part, _opened(samples, part, files)


def _pair(part: str, samples: tuple[Any, ...]) -> tuple[Any, Any]:
    match samples:
        case (inputs, labels) if not any(isinstance(one, FILES) for one in samples):
            return inputs, labels
    raise TypeError(
        f"{part}: expected a pair of arrays, (inputs, labels); pass one file as {part}, and labels "
        "in a file as labels="
    )


def set_parts(
    part: str,
    samples: Samples,
    labels: LabelsGiven | None,
    files: ExitStack,
    indices: ClassIndices = None,
    kind: str = INPUTS,
) -> list[FilePart]:
    """Return the parts of a set: of arrays or a data frame one, with the labels inside.

    ``kind`` is that of the calibration: arrays without a name, alone or in a pair, are of it.
    """
    is_file = isinstance(labels, FILES) or hasattr(labels, "read")
    inside: Any = None if is_file else labels
    named: NamedSamples = as_pandas(samples)
    if isinstance(samples, tuple):
        rows, own = _pair(part, samples)
        named = _named(as_pandas(rows), own, kind)
    elif is_frame(named) or hasattr(named, "__array__"):
        named, labels = _named(named, inside, kind), labels if is_file else None
    elif inside is not None and isinstance(named, Mapping) and LABELS not in named:
        named, labels = {**named, LABELS: inside}, None
    parts = [_samples_part(part, named, files, indices)]
    if labels is not None:
        parts.append(_labels_part(f"{part}_labels", labels, files, indices))
    return parts


def _named(rows: ArrayLike | Frame, labels: ArrayLike | None, kind: str) -> NamedSamples:
    """Return rows of a kind with their labels: a table of named columns, or arrays by name."""
    if is_frame(rows) and (kind != SCORES or labels is None):  # which may be in one of its columns
        frame = output_table(rows, kind) if kind in OUTPUT_PREFIXES else rows
        return frame if labels is None else with_labels(frame, labels)
    name, label = ("score", "correct") if kind == SCORES else (kind, LABELS)
    arrays = {name: rows if kind == INPUTS else output_array(rows, kind)}
    return arrays if labels is None else {**arrays, label: labels}


def _labels_part(
    part: str, labels: LabelsGiven, files: ExitStack, indices: ClassIndices
) -> FilePart:
    """Return the separate labels of a set as a part; an array becomes .npy."""
    if isinstance(labels, FILES) or hasattr(labels, "read"):
        source: Source = labels  # type: ignore[assignment]  # told apart by the method
        return part, _opened(source, part, files)
    packed = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    found = label_array(cast("ArrayLike", labels), indices)
    np.lib.format.write_array(packed, found, allow_pickle=False)
    packed.flush()  # so that the operating system reports the full size
    return part, (f"{part}.npy", packed)


def _opened(
    source: Source, name: str, files: ExitStack, *, keep: str | None = None
) -> tuple[str, IO[bytes] | bytes]:
    """Return a file's name and its content, which is read during the upload."""
    if isinstance(source, bytes):
        return name, source
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        return keep or path.name, files.enter_context(path.open("rb"))
    if not hasattr(source, "read"):
        kind = type(source).__name__
        raise TypeError(f"{name}: expected a path, bytes or an open file, got {kind}")
    if not source.seekable():
        raise ValueError(f"{name}: an open file must be seekable, not a pipe")
    called = getattr(source, "name", name)
    return keep or (Path(called).name if isinstance(called, str) else name), source
