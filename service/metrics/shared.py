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
OF_THE_DATABASE = frozenset({"howsure_jobs", "howsure_queue_age_seconds", "howsure_database_up"})
# A restart of any process is to be seen.
LATEST = frozenset({"process_start_time_seconds"})
OF_A_CALIBRATION = frozenset({"calibration", "version"})


def merged(of_processes: Sequence[Sequence[Family]]) -> list[Family]:
    """Return the families of all processes as one.

    All values are summed by their labels, gauges too, because each process has its own. Exceptions
    are the start time, which is the latest, and values from the database, which come from the
    first process.
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
                rule = max if family.name in LATEST else operator.add
                values = _joined(known.values, family.values, rule)
                families[family.name] = msgspec.structs.replace(known, values=values)
    return list(families.values())


def counts_of(families: Sequence[Family], most: int = MOST_CALIBRATIONS) -> list[Family]:
    """Return the counts that a restart must keep, of the first ``most`` calibrations."""
    found = (_calibration(labels) for family in families for _, labels in family.values)
    kept = {(), *list(dict.fromkeys(labels for labels in found if labels))[:most]}
    return [
        msgspec.structs.replace(
            family, values={s: v for s, v in family.values.items() if _calibration(s[1]) in kept}
        )
        for family in families
        if family.type in CUMULATIVE
    ]


def _calibration(labels: Labels) -> Labels:
    return tuple(label for label in labels if label[0] in OF_A_CALIBRATION)


def _joined(
    first: dict[Series, float],
    second: dict[Series, float],
    rule: Callable[[float, float], float],
) -> dict[Series, float]:
    values = dict(first)
    for series, value in second.items():
        values[series] = rule(values[series], value) if series in values else value
    return values


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
        """Write regularly while the event loop runs; for the supervisor this is a sign of life."""
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            try:
                self.write()
            except OSError:  # such as a full disk, of which this process does not die
                os.utime(self._path)

    def text(self) -> bytes:
        """Return the sum of all processes in the text format of Prometheus.

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
