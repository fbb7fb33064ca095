"""Metrics of several server processes: each writes its own to a file that the others read."""

import asyncio
import operator
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from service.errors import Overloaded
from service.metrics.answers import MOST_CALIBRATIONS
from service.metrics.families import Family, Labels, Series, as_text
from service.metrics.metrics import Metrics

CUMULATIVE = frozenset({"counter", "histogram", "summary"})
# Every process reads the same values; the scraped process has just read them.
OF_THE_DATABASE = frozenset({"howsure_jobs", "howsure_database_up"})
# A restart of any process is to be seen.
LATEST = frozenset({"process_start_time_seconds"})
OF_A_CALIBRATION = frozenset({"calibration", "version"})


def merged(of_processes: Sequence[Sequence[Family]]) -> list[Family]:
    """Return the families of all processes as one.

    Counts, histograms and summaries are summed by their labels, and so are gauges: each is of its
    own process. The latest start is kept, and what the database holds is taken from the first
    process alone.
    """
    families: dict[str, Family] = {}
    for position, found in enumerate(of_processes):
        for family in found:
            if position > 0 and family.name in OF_THE_DATABASE:
                continue
            known = families.get(family.name)
            if known is None:
                families[family.name] = family
            else:
                values = _joined(known.values, family.values, _rule(family))
                families[family.name] = _with(known, values)
    return list(families.values())


def counts_of(families: Sequence[Family], most: int = MOST_CALIBRATIONS) -> list[Family]:
    """Return the counts that a restart must keep, of the first ``most`` calibrations."""
    found = (_calibration(labels) for family in families for _, labels in family.values)
    kept = {(), *list(dict.fromkeys(labels for labels in found if labels))[:most]}
    return [
        _with(family, {s: v for s, v in family.values.items() if _calibration(s[1]) in kept})
        for family in families
        if family.type in CUMULATIVE
    ]


def _calibration(labels: Labels) -> Labels:
    return tuple(label for label in labels if label[0] in OF_A_CALIBRATION)


def _rule(family: Family) -> Callable[[float, float], float]:
    return max if family.name in LATEST else operator.add


def _joined(
    first: dict[Series, float],
    second: dict[Series, float],
    rule: Callable[[float, float], float],
) -> dict[Series, float]:
    values = dict(first)
    for series, value in second.items():
        values[series] = rule(values[series], value) if series in values else value
    return values


def _with(family: Family, values: dict[Series, float]) -> Family:
    return Family(family.name, family.documentation, family.type, values)


WRITE_SECONDS = 1.0
# The gauges of a process that has not written for so long are out of date.
STALE_SECONDS = 5.0

_decoder = msgspec.msgpack.Decoder(list[Family])


class SharedMetrics:
    """The metrics of this process and its siblings, in a folder that only they use.

    A process continues the counts of its predecessor, whose file it finds. It writes before it
    answers a scrape, so that no later scrape of any process shows less.

    Parameters
    ----------
    metrics
        Those of this process; they render the sum of all from now on.
    path
        The file of this process, beside those of its siblings.
    """

    def __init__(self, metrics: Metrics, path: Path) -> None:
        self._metrics = metrics
        self._path = path
        self._writing = threading.Lock()
        self._inherited = counts_of(_decoder.decode(path.read_bytes())) if path.exists() else []
        metrics.share(self.text)

    def write(self) -> list[Family]:
        """Write the metrics of this process, and return them."""
        with self._writing:
            families = merged([self._metrics.families(), self._inherited])
            unfinished = self._path.with_name(f".{self._path.name}")
            unfinished.write_bytes(msgspec.msgpack.encode(families))
            unfinished.replace(self._path)
        return families

    async def write_each_second(self) -> None:
        """Write as long as the event loop runs; the supervisor takes it for a sign of life."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            try:
                self.write()
            except OSError:  # such as a full disk, of which this process does not die
                os.utime(self._path)

    def text(self) -> bytes:
        """Return the sum of all processes, as a scraper reads it.

        Raises
        ------
        Overloaded
            If the files cannot be written or read.
        """
        try:
            siblings = self._path.parent.glob("[!.]*")
            found = [_current(path) for path in sorted(siblings) if path != self._path]
            return as_text(merged([self.write(), *found]))
        except OSError as error:
            raise Overloaded(f"The metrics cannot be exchanged ({error.strerror}).") from error


def _current(path: Path) -> list[Family]:
    families = _decoder.decode(path.read_bytes())
    is_stale = time.time() - path.stat().st_mtime > STALE_SECONDS
    return counts_of(families) if is_stale else families
