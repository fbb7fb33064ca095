"""Score a file: request its rows in order, several requests at a time, and write each answer."""

import asyncio
import hashlib
import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import MofNCompleteColumn, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

from howsure.client import AsyncClient, HowsureError
from howsure.client.predictions import Predictions
from howsure.client.resources import Calibration
from howsure.preprocessing import Preprocessing
from howsure.statistics.measures import SCORE
from howsure.statistics.records.pairs import CORRECT
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.columns import CORRECT_COLUMN
from service.child.reading.open_set import open_dataset
from service.child.reading.pictures.picture_dataset import PictureDataset
from service.cli.calibrate import one_file
from service.cli.connection import Address
from service.cli.console import progress_bar
from service.cli.failure import CommandFailed
from service.cli.scoring.writers import Columns, Result, writer_of
from service.errors import ServiceError
from service.runner.messages.dataset import PAIRS, Batch, Dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import SCORE_RANGE, TAKES_OTHER_COLUMNS, TEXTS, Reading

# The model runs this many rows at a time, or a multiple: few requests end in the middle of a run.
BLOCK_ROWS = 128
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
# These take a minute or more: a service that restarts answers again within it.
RETRIES = 12
# The caller's own file on the caller's own machine may be of any size.
LIMITS = DatasetLimits(max_samples=2**40, max_inflated_bytes=2**50)
TABLES = ("csv", "parquet")
OUT_OF_DISTRIBUTION = "out_of_distribution"


@dataclass(frozen=True)
class Scoring:
    """Calibration, input and output of a scoring; None for ``rows`` chooses a suitable number."""

    calibration: str
    source: Path
    output: Path
    rows: int | None = None
    requests: int = 3


@dataclass(frozen=True)
class Written:
    """The number of rows in a result, and how many of them are out of distribution.

    ``by_position`` tells that rows came without the column names that the calibration has.
    """

    n_rows: int = 0
    n_out_of_distribution: int = 0
    by_position: bool = False


def score_file(address: Address, scoring: Scoring) -> Written:
    """Predict every row of a file, write the result, and return what was written.

    Raises
    ------
    CommandFailed
        If the file or its format does not allow it; nothing is written then.
    HowsureError
        If the service refuses, or does not respond; nothing is written then.
    """
    return asyncio.run(_score_file(address, scoring))


async def _score_file(address: Address, scoring: Scoring) -> Written:
    writer, output = writer_of(scoring.output), scoring.output
    if output.exists() and output.samefile(scoring.source):
        raise CommandFailed(f"{output}: is the set itself; write to another file")
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
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
                writer(unfinished, _result(source, calibration, dataset)) as write,
                progress_bar(MofNCompleteColumn(), _Rate(), TimeRemainingColumn()) as progress,
            ):
                task = progress.add_task("scoring", total=dataset.info.n_samples)
                written = Written()
                async for batch, answer in _in_order(client, calibration, dataset, scoring):
                    arrays = _arrays(dataset, batch, answer, calibration)
                    write(arrays)
                    written = _counted(written, dataset, arrays, answer)
                    progress.advance(task, len(batch.labels))
            unfinished.replace(output)
        except ServiceError as error:
            raise CommandFailed(f"{scoring.source}: {error.message}") from error
        finally:
            unfinished.unlink(missing_ok=True)
    return written


def _result(source: Path, calibration: Calibration, dataset: Dataset) -> Result:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Result(calibration.reference, calibration.id, digest, dataset.info.n_samples)


def _fitting(row_bytes: int) -> int:
    """Return the number of rows that make a request of a suitable size."""
    rows = max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))
    return rows if rows < BLOCK_ROWS else rows - rows % BLOCK_ROWS


async def _in_order(
    client: AsyncClient, calibration: Calibration, dataset: Dataset, scoring: Scoring
) -> AsyncIterator[tuple[Batch, Predictions]]:
    """Yield batches with their answers in the order of the rows, while later ones are requested."""
    size = scoring.rows or _fitting(dataset.info.row_bytes)
    pending: deque[tuple[Batch, asyncio.Task[Predictions]]] = deque()
    # The first answer loads the model and tells the service the size of rows, by which requests
    # wait; so it is waited for alone.
    most = 1
    try:
        for batch in dataset.batches(size):
            request = _predict(client, calibration.id, batch, size)
            pending.append((batch, asyncio.create_task(request)))
            if len(pending) == most:
                first, answer = pending.popleft()
                yield first, await answer
                most = scoring.requests
        for batch, answer in pending:
            yield batch, await answer
    finally:
        for _, answer in pending:
            answer.cancel()
        await asyncio.gather(*(answer for _, answer in pending), return_exceptions=True)


async def _predict(
    client: AsyncClient, calibration_id: str, batch: Batch, size: int
) -> Predictions:
    supplied = {f"{SUPPLIED_PREFIX}{name}": column for name, column in batch.supplied.items()}
    try:
        return await client.predict(
            calibration_id, {**batch.arrays, **supplied}, rows_per_request=size
        )
    except HowsureError as error:
        error.renumber_rows(batch.start)
        raise


def _arrays(
    dataset: Dataset, batch: Batch, answer: Predictions, calibration: Calibration
) -> Columns:
    """Return the arrays of a batch: what the input says first, then classes, then the others."""
    rows = range(batch.start, batch.start + len(batch.labels))
    names = np.array(calibration.classes, dtype=np.str_)
    arrays: Columns = {"row": np.arange(rows.start, rows.stop, dtype=np.int64)}
    if isinstance(dataset, PictureDataset):
        arrays["file"] = dataset.file_names(rows.start, rows.stop)
    if dataset.info.labelled and dataset.info.kind == PAIRS:
        arrays[CORRECT_COLUMN] = batch.labels == CORRECT
    elif dataset.info.labelled:
        arrays |= {"true_class": batch.labels, "true_label": names[batch.labels]}
    if "class" in answer.arrays:
        index = answer.arrays["class"]
        arrays |= {"class": index, "label": names[index]}
    if dataset.info.kind == PAIRS:
        arrays[SCORE] = -answer.arrays.pop("top1_uncertainty")
    return arrays | answer.arrays


def _counted(written: Written, dataset: Dataset, arrays: Columns, answer: Predictions) -> Written:
    flags = arrays.get(OUT_OF_DISTRIBUTION)
    # Tables were read by the names of their columns before their rows were sent.
    by_position = answer.by_position and dataset.info.format not in TABLES
    return Written(
        written.n_rows + len(arrays["row"]),
        written.n_out_of_distribution + (0 if flags is None else int(np.count_nonzero(flags))),
        written.by_position or by_position,
    )


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
        known_texts=data.get(TEXTS, {}),
    )


class _Rate(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")
