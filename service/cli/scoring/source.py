"""The file that is scored, read as the sets of its calibration are."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from howsure.client.resources import Calibration
from howsure.client.uploads import Arrays
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.open_set import open_dataset
from service.child.reading.pictures.picture_dataset import PictureDataset
from service.cli.failure import CommandFailed
from service.errors import ServiceError
from service.runner.messages.dataset import Batch, Dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.reading import Reading

LOCATION = "input"
FILE, TRUE_LABEL = "file", "true_label"
# The caller's own file on the caller's own machine: as large as it likes.
LIMITS = DatasetLimits(max_samples=2**40, max_inflated_bytes=2**50)


@contextmanager
def opened_input(path: Path, calibration: Calibration, *, called: Path) -> Iterator[Dataset]:
    """Open a file, which failures call otherwise, as the calibration's configuration says.

    Raises
    ------
    CommandFailed
        If it is of no format that is read, or breaks a rule, also while it is read.
    """
    try:
        with open_dataset(
            path,
            location=LOCATION,
            limits=LIMITS,
            labels_required=False,
            reading=_reading(calibration),
        ) as dataset:
            yield dataset
    except ServiceError as error:
        raise CommandFailed(f"{called}: {error.message}") from error


def rows_of(batch: Batch) -> Arrays:
    """Return the arrays that are sent for a batch, with supplied uncertainties."""
    supplied = {f"{SUPPLIED_PREFIX}{name}": column for name, column in batch.supplied.items()}
    return {**batch.arrays, **supplied}


def input_columns(dataset: Dataset, batch: Batch) -> Arrays:
    """Return the columns of a batch that come from the input: file names and labels."""
    found: Arrays = {}
    n_rows = len(batch.labels)
    if isinstance(dataset, PictureDataset):
        names = dataset.file_names(batch.start, batch.start + n_rows)
        found[FILE] = np.array(names, dtype=np.str_)
    if dataset.info.labelled:
        found[TRUE_LABEL] = batch.labels
    return found


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reading(calibration: Calibration) -> Reading:
    config, data = calibration.resource["config"], calibration.resource["data"]
    preprocessing: dict[str, Any] | None = config.get("preprocessing")
    kind = data.get("kind")
    return Reading(
        preprocessing=None if preprocessing is None else Preprocessing.from_dict(preprocessing),
        class_map=config.get("class_map"),
        classes=calibration.classes or None,
        columns=config.get("columns"),
        kind=kind if kind in {"inputs", "logits", "probabilities"} else None,
    )
