"""Kept samples that are picked by their numbers in the set, for a person to look at."""

import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from service.operations.kept_samples import INDEX, INPUT, RECORD, KeptSamples
from service.runner.frames import Array

_LABEL = f"{RECORD}label"
# As `service.core.measures.column` calls a column that came with the samples.
_SUPPLIED = f"{RECORD}uncertainty_supplied_"
_NPY = ".npy"


@dataclass(frozen=True, eq=False)
class PickedSample:
    """One sample: its inputs by name, without an axis for rows, its label and its own columns."""

    inputs: Mapping[str, Array]
    label: int
    supplied: Mapping[str, float]


def kept_numbers(kept: KeptSamples) -> NDArray[np.int64]:
    """Return the numbers of the samples that are kept, ascending.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    with _opened(kept) as archive:
        return _index(archive)


def pick_samples(kept: KeptSamples, numbers: Collection[int]) -> dict[int, PickedSample]:
    """Return those of these samples that are kept, by number; no other one is read.

    Raises
    ------
    ArtifactDamaged
        If they are not what was stored.
    """
    with _opened(kept) as archive:
        index = _index(archive)
        places = np.flatnonzero(np.isin(index, list(numbers)))
        found = {
            name.removesuffix(_NPY): _rows(archive, name, places)
            for name in archive.namelist()
            if name.startswith((INPUT, _SUPPLIED, _LABEL + _NPY))
        }
    return {
        int(index[place]): PickedSample(
            inputs=_below(INPUT, found, row),
            label=int(found[_LABEL][row]),
            supplied={name: float(value) for name, value in _below(_SUPPLIED, found, row).items()},
        )
        for row, place in enumerate(places)
    }


@contextmanager
def _opened(kept: KeptSamples) -> Iterator[zipfile.ZipFile]:
    with (
        kept.artifacts.local_path(kept.artifact.key, kept.artifact.sha256) as path,
        zipfile.ZipFile(path) as archive,
    ):
        yield archive


def _index(archive: zipfile.ZipFile) -> NDArray[np.int64]:
    with archive.open(INDEX + _NPY) as stream:
        index: NDArray[np.int64] = npy_format.read_array(stream, allow_pickle=False)
    return index


def _rows(archive: zipfile.ZipFile, name: str, places: NDArray[np.intp]) -> Array:
    """Return these rows, ascending, of an array, and read little else of it."""
    with archive.open(name) as stream:
        npy_format.read_magic(stream)
        shape, _, dtype = npy_format.read_array_header_1_0(stream)
        begin = stream.tell()
        n_bytes = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
        rows = [_read(stream, begin + int(place) * n_bytes, n_bytes) for place in places]
    return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), *shape[1:])


def _read(stream: IO[bytes], at: int, n_bytes: int) -> bytes:
    stream.seek(at)
    return stream.read(n_bytes)


def _below(prefix: str, found: Mapping[str, Array], row: int) -> dict[str, Array]:
    """Return a row of each array whose name begins so, by the rest of the name."""
    return {
        name.removeprefix(prefix): array[row]
        for name, array in found.items()
        if name.startswith(prefix)
    }
