"""Score a file: request the missing parts, then write the result."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx
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

from howsure.client import Client
from howsure.client.resources import Calibration
from howsure.client.uploads import Arrays
from service.cli.calibrate import one_file
from service.cli.failure import one_sentence
from service.cli.scoring.parts import Manifest, Parts
from service.cli.scoring.source import digest_of, input_columns, opened_input, rows_of
from service.cli.scoring.writers import Result, writer_of
from service.runner.messages.dataset import Batch, Dataset, DatasetInfo


class _Rate(ProgressColumn):
    """Rows a second."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


class RowsDone:
    """A bar on standard error, gone when it is done; ``done`` rows were so before."""

    def __init__(self, n_rows: int, *, done: int) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("scoring", total=n_rows, completed=done)

    def add(self, rows: int) -> None:
        """Count rows that were done now."""
        self._progress.advance(self._task, rows)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


A = TypeVar("A")
B = TypeVar("B")


def answered(
    ask: Callable[[A], B], asked: Iterable[tuple[A, bool]], *, at_a_time: int
) -> Iterator[tuple[A, B]]:
    """Yield each item with its response, in order of arrival; at most so many run at a time.

    An item that comes with true is sent alone, after the responses to all items before it.
    """
    under_way: dict[Future[B], A] = {}
    for thing, alone in asked:
        while under_way and (alone or len(under_way) == at_a_time):
            yield from _come(under_way)
        under_way[_begun(ask, thing)] = thing
    while under_way:
        yield from _come(under_way)


def _begun(ask: Callable[[A], B], thing: A) -> Future[B]:
    """Run in a daemon thread: after an interrupt, Python does not wait for it."""
    future: Future[B] = Future()

    def work() -> None:
        try:
            future.set_result(ask(thing))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is taken
            future.set_exception(error)

    threading.Thread(target=work, name="asking", daemon=True).start()
    return future


def _come(under_way: dict[Future[B], A]) -> Iterator[tuple[A, B]]:
    """Wait for the next, and yield all that are there."""
    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
        yield under_way.pop(future), future.result()


# Parts are multiples of a model run, so that a row has the same neighbours in every run.
BLOCK_ROWS = 128
MOST_ROWS = 1024
MOST_BYTES = 8 * 2**20
# A service that starts again is waited for, a minute or more.
RETRIES = 12


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
    with one_sentence():
        calibration = client.get(scoring.calibration)
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
            parts.keep(part, {**input_columns(dataset, batch), **arrays})
            done.add(len(batch.labels))


def _missing(dataset: Dataset, parts: Parts) -> Iterator[tuple[Batch, bool]]:
    """Yield the batches without a part; the last one, which is shorter, is to be sent alone."""
    size, n_parts = parts.manifest.rows_per_part, parts.manifest.n_parts
    if all(parts.is_made(part) for part in range(n_parts)):
        return
    for part, batch in enumerate(dataset.batches(size)):
        if not parts.is_made(part):
            yield batch, part == n_parts - 1
