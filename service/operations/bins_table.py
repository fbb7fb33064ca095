"""A bins document as one flat table, a row a bin: its columns, and the same as CSV."""

import csv
import io
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from service.operations.bins_document import Bin, BinsDocument, Table

ColumnType: TypeAlias = Literal["string", "bool", "int64", "float32", "float64"]

# The order is fixed: columns are added at the end alone.
COLUMNS: dict[str, ColumnType] = {
    "event": "int64",
    "measure": "string",
    "served": "bool",
    "bin": "int64",
    "lower": "float32",
    "upper": "float32",
    "count": "int64",
    "hits": "int64",
    "weight": "float64",
    "probability": "float64",
    "interval_lower": "float64",
    "interval_upper": "float64",
    "mean_uncertainty": "float64",
    "odds_ratio": "float64",
    "lookup": "string",
    "monotone": "bool",
    "requested_bins": "int64",
    "quantile_bins": "int64",
    "interval_method": "string",
    "interval_level": "float64",
    "interval_simultaneous": "bool",
    "prior_accuracy": "float64",
    "prior_strength": "float64",
    "prior_degenerate": "bool",
    "model_sha256": "string",
    "data_sha256": "string",
    "content_sha256": "string",
}


def bin_rows(document: BinsDocument) -> Iterator[list[Any]]:
    """Yield every bin of every table, its values in the order of the columns."""
    digests = [document.model_sha256, document.data_sha256, document.content_sha256]
    for table in document.tables:
        about = _about(table)
        for index, found in enumerate(table.bins):
            head = [table.event, table.measure, table.served, index]
            yield [*head, *_numbers(found), *about, *digests]


def bins_csv(document: BinsDocument) -> str:
    """Return one bin a line; an edge without limit is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(bin_rows(document))
    return text.getvalue()


def _numbers(found: Bin) -> list[Any]:
    return [
        *(found.lower, found.upper, found.count, found.hits, found.weight),
        *(found.probability, *found.interval, found.mean_uncertainty, found.odds_ratio),
    ]


def _about(table: Table) -> list[Any]:
    interval, prior = table.interval, table.prior
    return [
        *(table.lookup, table.monotone, table.requested_bins, table.quantile_bins),
        *(interval.method, interval.level, interval.simultaneous),
        *(prior.accuracy, prior.strength, prior.degenerate),
    ]
