"""Sets of samples: one reader per format, chosen by what a file holds and never by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from service.datasets import csv, npy, npz, parquet
from service.datasets.dataset import ArrayInfo, Batch, Dataset, DatasetInfo, DatasetKind
from service.datasets.limits import DatasetLimits
from service.datasets.pictures import formats as pictures
from service.datasets.pictures.tar_archive import is_tar
from service.datasets.reading import AS_IT_IS, Reading
from service.datasets.unsupported import HEAD_BYTES, unsupported
from service.datasets.zip_kind import holds_pictures
from service.errors import InvalidDataset

__all__ = [
    "FORMATS",
    "ArrayInfo",
    "Batch",
    "Dataset",
    "DatasetFormat",
    "DatasetInfo",
    "DatasetKind",
    "DatasetLimits",
    "Reading",
    "open_dataset",
]


class OpenDataset(Protocol):
    """Open a file of one format."""

    def __call__(
        self,
        path: Path,
        *,
        location: str,
        limits: DatasetLimits,
        labels_required: bool,
        reading: Reading,
    ) -> Dataset: ...


@dataclass(frozen=True)
class DatasetFormat:
    """A format: how its first bytes look, and its reader; ``recognises`` may look further."""

    recognises: Callable[[bytes, Path], bool]
    open: OpenDataset


FORMATS: dict[str, DatasetFormat] = {
    # First: its first bytes are the name of a file, which may be any other's.
    pictures.TAR_FORMAT: DatasetFormat(is_tar, pictures.open_tar),
    pictures.ZIP_FORMAT: DatasetFormat(holds_pictures, pictures.open_zip),
    npz.FORMAT: DatasetFormat(npz.is_npz, npz.open_npz),
    npy.FORMAT: DatasetFormat(npy.is_npy, npy.open_npy),
    parquet.FORMAT: DatasetFormat(parquet.is_parquet, parquet.open_parquet),
    csv.FORMAT: DatasetFormat(csv.is_csv, csv.open_csv),
}


def open_dataset(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool = True,
    reading: Reading = AS_IT_IS,
) -> Dataset:
    """Open a set of samples after checking all that can be checked without reading its values.

    Shapes, dtypes, names, sizes and every label are checked here; the values of inputs, outputs
    and supplied columns as their batches pass. ``location`` is the part or argument that begins
    every violation. A set without labels is refused unless ``labels_required`` is false; labels
    that are there are checked either way. ``reading`` says what the file leaves open.

    Raises
    ------
    UnsupportedFormat
        If the file is of no format that is read here.
    InvalidDataset
        If it breaks a rule, or is damaged.
    TooLarge
        If it claims more than ``limits`` allow.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for name, known in FORMATS.items():
        if known.recognises(head, path):
            if reading.labels is not None and name != npy.FORMAT:
                raise InvalidDataset.at(
                    f"{location}_labels",
                    f"expected labels beside an .npy array alone; {location} is a file of the "
                    f"format {name}, which has its own",
                )
            return known.open(
                path,
                location=location,
                limits=limits,
                labels_required=labels_required,
                reading=reading,
            )
    raise unsupported(head, location=location)
