"""Score a file: request the missing parts, then write the result."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from howsure.client import AsyncClient, HowsureError
from howsure.client.resources import Calibration
from howsure.client.uploads import Arrays
from howsure.statistics.records.pairs import CORRECT
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.columns import CORRECT_COLUMN
from service.child.reading.open_set import open_dataset
from service.child.reading.pictures.picture_dataset import PictureDataset
from service.cli.calibrate import one_file
from service.cli.connection import Address
from service.cli.failure import CommandFailed
from service.cli.scoring.parts import Manifest, Parts
from service.cli.scoring.writers import FILE, TRUE_CLASS, Result, writer_of
from service.errors import ServiceError
from service.runner.messages.dataset import PAIRS, Batch, Dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.reading import SCORE_RANGE, TAKES_OTHER_COLUMNS, Reading

# The model runs this many rows at a time, or a multiple: few parts end in the middle of a run.
BLOCK_ROWS = 128
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
# These take a minute or more: a service that restarts answers again within it.
RETRIES = 12
# The caller's own file on the caller's own machine may be of any size.
LIMITS = DatasetLimits(max_samples=2**40, max_inflated_bytes=2**50)


@dataclass(frozen=True)
class Scoring:
    """Calibration, input and output of a scoring; None for ``rows`` chooses a suitable number."""

    calibration: str
    source: Path
    output: Path
    rows: int | None = None
    requests: int = 3
    restart: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the parts, while some are missing."""
        return self.output.with_name(f"{self.output.name}.parts")


TABLES = ("csv", "parquet")


@dataclass(frozen=True)
class Written:
    """The number of rows in a result, and how many of them are out of distribution.

    ``by_position`` tells that rows came without the column names that the calibration has.
    """

    n_rows: int
    n_out_of_distribution: int
    by_position: bool = False


def score_file(address: Address, scoring: Scoring) -> Written:
    """Predict every row of a file, write the result, and return what was written.

    Parts that were made stay if the command fails, and the same command continues with them.

    Raises
    ------
    CommandFailed
        If the file, its format or the parts of an earlier run do not allow it.
    HowsureError
        If the service refuses, or does not respond.
    """
    return asyncio.run(_score_file(address, scoring))


async def _score_file(address: Address, scoring: Scoring) -> Written:
    write = writer_of(scoring.output)
    if scoring.output.exists() and scoring.output.samefile(scoring.source):
        raise CommandFailed(f"{scoring.output}: is the set itself; write to another file")
    async with address.async_client() as http:
        client = AsyncClient(http=http, retries=RETRIES)
        calibration = await client.get(scoring.calibration)
        try:
            with (
                one_file(scoring.source) as source,
                open_dataset(
                    source,
                    location="input",
                    limits=LIMITS,
                    labels_required=False,
                    reading=_reading(calibration),
                ) as dataset,
            ):
                manifest = _manifest(scoring, source, calibration, dataset)
                with Parts.opened(scoring.folder, manifest, restart=scoring.restart) as parts:
                    by_position = await _make_missing(client, dataset, parts, scoring.requests)
                    unfinished = scoring.folder / "result"
                    result = Result(parts, calibration.classes)
                    write(unfinished, result)
                    written = Written(manifest.n_rows, result.n_out_of_distribution(), by_position)
                    parts.publish(unfinished, scoring.output)
                    parts.remove()
        except ServiceError as error:
            raise CommandFailed(f"{scoring.source}: {error.message}") from error
    return written


def _manifest(
    scoring: Scoring, source: Path, calibration: Calibration, dataset: Dataset
) -> Manifest:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Manifest(
        input_sha256=digest,
        calibration_id=calibration.id,
        calibration=calibration.reference,
        rows_per_part=scoring.rows or _fitting(dataset.info.row_bytes),
        n_rows=dataset.info.n_samples,
    )


def _fitting(row_bytes: int) -> int:
    """Return the number of rows that make a request of a suitable size."""
    rows = max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))
    return rows if rows < BLOCK_ROWS else rows - rows % BLOCK_ROWS


async def _make_missing(client: AsyncClient, dataset: Dataset, parts: Parts, requests: int) -> bool:
    """Request the parts that are not there; return whether rows came without column names."""
    by_position = False
    manifest, missing = parts.manifest, _missing(dataset, parts)
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task("scoring", total=manifest.n_rows, completed=parts.n_rows_made())

    async def request_parts(most: int | None = None) -> None:
        nonlocal by_position
        for part, batch in islice(missing, most):
            try:
                found = await client.predict(
                    manifest.calibration_id,
                    _sent_arrays(batch),
                    rows_per_request=manifest.rows_per_part,
                )
            except HowsureError as error:
                error.renumber_rows(batch.start)
                if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
                    # Another file will be sent, whose parts these are not.
                    parts.remove()
                raise
            parts.keep(part, {**_input_columns(dataset, batch), **found.arrays})
            # Tables were read by the names of their columns before their rows were sent.
            by_position |= found.by_position and dataset.info.format not in TABLES
            progress.advance(task, len(batch.labels))

    with progress:
        # Its answer loads the model and tells the service the size of rows, by which requests wait.
        await request_parts(1)
        # The first failure ends the command, and asyncio.run cancels the other requests.
        await asyncio.gather(*(request_parts() for _ in range(requests)))
    return by_position


def _missing(dataset: Dataset, parts: Parts) -> Iterator[tuple[int, Batch]]:
    """Yield the number and the rows of each part that is not there."""
    if parts.n_rows_made() < parts.manifest.n_rows:
        for part, batch in enumerate(dataset.batches(parts.manifest.rows_per_part)):
            if not parts.is_made(part):
                yield part, batch


def _sent_arrays(batch: Batch) -> Arrays:
    supplied = {f"{SUPPLIED_PREFIX}{name}": column for name, column in batch.supplied.items()}
    return {**batch.arrays, **supplied}


def _input_columns(dataset: Dataset, batch: Batch) -> Arrays:
    """Return the columns of a batch that come from the input: file names, labels, `correct`."""
    found: Arrays = {}
    if isinstance(dataset, PictureDataset):
        names = dataset.file_names(batch.start, batch.start + len(batch.labels))
        found[FILE] = np.array(names, dtype=np.str_)
    if dataset.info.labelled and dataset.info.kind == PAIRS:
        found[CORRECT_COLUMN] = batch.labels == CORRECT
    elif dataset.info.labelled:
        found[TRUE_CLASS] = batch.labels
    return found


def _reading(calibration: Calibration) -> Reading:
    config, data = calibration.resource["config"], calibration.resource["data"]
    kind = data.get("kind")
    preprocessing = config.get("preprocessing")
    return Reading(
        preprocessing=None if preprocessing is None else Preprocessing.from_dict(preprocessing),
        class_map=config.get("class_map"),
        classes=calibration.classes or None,
        columns=config.get("columns"),
        takes_other_columns=data.get(TAKES_OTHER_COLUMNS, True),
        wants_labels=kind != PAIRS,
        kind=kind if kind in {"inputs", "logits", "probabilities", "pairs"} else None,
        score_range=data.get(SCORE_RANGE),
    )


class _Rate(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")
