"""Score a file: ask for the parts that are missing, then write the result."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from service.cli.failure import CommandFailed
from service.cli.packed_folder import one_file
from service.cli.scoring.asking import answered
from service.cli.scoring.manifest import Manifest
from service.cli.scoring.parts import Parts
from service.cli.scoring.progress import RowsDone
from service.cli.scoring.source import (
    calibration_of,
    digest_of,
    opened_input,
    rows_of,
    told_of,
)
from service.cli.scoring.writers import Result, writer_of
from service.client import Client, HowsureError
from service.client.calibration import Calibration
from service.client.npz import Arrays
from service.datasets import Dataset, DatasetInfo
from service.datasets.dataset import Batch

DEFAULT_REQUESTS = 3
# Multiples of what runs through a model together: a row has the same neighbours in every run.
BLOCK_ROWS = 128
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
# A service that starts again is waited for, a minute or more.
RETRIES = 12


@dataclass(frozen=True)
class Scoring:
    """What is scored, by what, to where; None of ``rows`` is as many as suit."""

    calibration: str
    source: Path
    output: Path
    rows: int | None = None
    requests: int = DEFAULT_REQUESTS
    restart: bool = False

    @property
    def folder(self) -> Path:
        """Where the parts are until all are there."""
        return self.output.with_name(f"{self.output.name}.parts")


def score_file(http: httpx.Client, scoring: Scoring) -> int:
    """Answer every row of a file, write the result, and return how many rows it has.

    Raises
    ------
    CommandFailed
        If the file, the calibration or the parts of an earlier run do not allow it, or the service
        does not answer. Parts that are made stay, for the same command to go on with.
    """
    write = writer_of(scoring.output)
    client = Client(http=http, retries=RETRIES)
    calibration = calibration_of(http, scoring.calibration)
    try:
        with (
            one_file(scoring.source) as source,
            opened_input(source, calibration, called=scoring.source) as dataset,
        ):
            manifest = _manifest(scoring, source, calibration, dataset.info)
            with Parts.opened(scoring.folder, manifest, restart=scoring.restart) as parts:
                _make_missing(client, dataset, parts, scoring.requests)
                unfinished = scoring.folder / "result"
                write(unfinished, Result(parts, calibration.classes, calibration.reference))
                parts.publish(unfinished, scoring.output)
                parts.remove()
    except HowsureError as error:
        raise CommandFailed(_in_words(error)) from error
    except OSError as error:
        raise CommandFailed(f"{error.filename or scoring.folder}: {error.strerror}") from error
    return manifest.n_rows


def _manifest(
    scoring: Scoring, source: Path, calibration: Calibration, info: DatasetInfo
) -> Manifest:
    return Manifest(
        input_sha256=digest_of(source),
        calibration_id=calibration.id,
        calibration=calibration.reference,
        rows_per_part=scoring.rows or _fitting(info.row_bytes),
        n_rows=info.n_samples,
    )


def _fitting(row_bytes: int) -> int:
    """Return how many rows make a request of a fair size."""
    rows = max(1, min(MOST_ROWS, MOST_BYTES // max(row_bytes, 1)))
    return rows if rows < BLOCK_ROWS else rows - rows % BLOCK_ROWS


def _make_missing(client: Client, dataset: Dataset, parts: Parts, requests: int) -> None:
    manifest = parts.manifest

    def ask(batch: Batch) -> Arrays:
        found = client.predict(
            manifest.calibration_id,
            rows_of(batch),
            rows_per_request=manifest.rows_per_part,
        )
        return found.arrays

    with RowsDone(manifest.n_rows, done=parts.n_rows_made()) as done:
        for batch, arrays in answered(ask, _missing(dataset, parts), at_a_time=requests):
            part = batch.start // manifest.rows_per_part
            parts.keep(part, {**told_of(dataset, batch), **arrays})
            done.add(len(batch.labels))


def _missing(dataset: Dataset, parts: Parts) -> Iterator[tuple[Batch, bool]]:
    """Yield what no part answers; the last, which is shorter, to be asked alone."""
    size, n_parts = parts.manifest.rows_per_part, parts.manifest.n_parts
    if all(parts.is_made(part) for part in range(n_parts)):
        return
    for part, batch in enumerate(dataset.batches(size)):
        if not parts.is_made(part):
            yield batch, part == n_parts - 1


def _in_words(error: HowsureError) -> str:
    lines = [str(error)]
    if len(error.errors) > 1:
        lines += [f"  {entry['location']}: {entry['message']}" for entry in error.errors]
    return "\n".join(lines)
