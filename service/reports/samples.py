"""Wrong predictions on a calibration set, with the stored data of each sample."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure.statistics.bins.table import BinTable
from howsure.statistics.error_samples import posterior_of_others
from howsure.statistics.measures import SCORE
from howsure.statistics.measures.scale import scale_of
from howsure.statistics.plain import to_plain
from service.errors import InvalidInput
from service.jobs.record_set import require_records
from service.jobs.samples import KeptSamples, PickedSample
from service.reports.csv_table import csv_text
from service.reports.error_samples import MOST, ErrorSamples, Kind, find_errors, record_parts
from service.runner.messages.dataset import PAIRS
from service.storage.fit_results import core_table, read_fitted
from service.workspace import Workspace

SHOWN_NUMBERS = 8
WHY: Mapping[Kind, str] = {
    "mislabelled": (
        "The label says that the answer is wrong. Samples from the most reliable bins come first: "
        "where answers are rarely wrong, the label may be."
    ),
    "surest_errors": "The label says that the answer is wrong. The most certain come first.",
}


@dataclass(frozen=True, eq=False)
class ListedSamples:
    """A list as plain data, and its stored samples by row number."""

    document: dict[str, Any]
    kept: Mapping[int, PickedSample]


def list_samples(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    reference: str,
    *,
    kind: Kind,
    k: int | None = None,
    limit: int = MOST,
) -> ListedSamples:
    """Return samples of the calibration set for which an event, the first by default, fails.

    Raises
    ------
    NotFound
        If there is no such calibration.
    Conflict
        If it has not succeeded, or keeps no records.
    InvalidInput
        If the event is none of the calibration's.
    """
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, reference)
    row, tables = fitted.row, {table.k: table for table in fitted.served}
    require_records(row)
    event = next(iter(tables)) if k is None else k
    if event not in tables:
        known = ", ".join(map(str, tables))
        raise InvalidInput.at("k", f"expected an event of the calibration: {known}")
    table, column = core_table(tables[event]), tables[event].column
    missed = workspace.missed.get_or_load(
        (row.id, kind, event),
        lambda: find_errors(record_parts(workspace.artifacts, row), kind, event, column, table),
    )
    found = missed.take(np.arange(min(limit, len(missed.numbers))))
    stored = KeptSamples.of(workspace.artifacts, row)
    kept = {} if stored is None else stored.pick(found.numbers.tolist())
    document = {
        "calibration": {"id": str(row.id), "name": row.name, "version": row.version},
        "kind": kind,
        "why": WHY[kind],
        "top_k": list(tables),
        "k": event,
        "measure": tables[event].measure,
        "n_samples": row.data["samples"],
        "n_errors": found.n_errors,
        "samples": _entries(found, column, table, row.config["classes"], kept),
    }
    return ListedSamples(document, kept)


def _entries(
    found: ErrorSamples,
    column: str,
    table: BinTable,
    names: Sequence[str],
    kept: Mapping[int, PickedSample],
) -> list[dict[str, Any]]:
    records = found.records
    uncertainty = records.uncertainty[column]
    stated = table.look_up(uncertainty)
    expected = posterior_of_others(uncertainty, table)
    entries = []
    for place, number in enumerate(found.numbers.tolist()):
        label, predicted = int(records.label[place]), int(records.top_classes[place, 0])
        entries.append(
            {
                "row": number,
                "label": label,
                "label_name": names[label],
                "predicted": predicted,
                "predicted_name": names[predicted],
                "probability": float(stated.probability[place]),
                "interval": [float(stated.lower[place]), float(stated.upper[place])],
                "bin": int(stated.bin[place]),
                "uncertainty": float(uncertainty[place]),
                "expected": float(expected[place]),
                "inputs": _shown(kept.get(number)),
            }
        )
    return entries


def _shown(sample: PickedSample | None) -> dict[str, Any] | None:
    """Return the shape and first numbers of each input of a stored sample."""
    if sample is None:
        return None
    if PAIRS in sample.inputs:  # stored as the logits of a wrong and a correct answer
        return {SCORE: {"shape": [], "first": [-sample.supplied[SCORE]]}}
    return {
        name: {"shape": list(values.shape), "first": to_plain(values.ravel()[:SHOWN_NUMBERS])}
        for name, values in sample.inputs.items()
    }


CLASSES = ("label", "label_name", "predicted", "predicted_name")
STATED = ("probability", "lower", "upper", "bin")


def samples_csv(document: dict[str, Any]) -> str:
    """Return one sample per line; pairs without classes."""
    rows, measure = [], document["measure"]
    scale = scale_of(measure)
    classes = () if measure == scale.name else CLASSES
    columns = ("row", *classes, *STATED, scale.name, "expected", "kept")
    for sample in document["samples"]:
        lower, upper = sample["interval"]
        found = sample | {"lower": lower, "upper": upper, "kept": sample["inputs"] is not None}
        found[scale.name] = scale.of(sample["uncertainty"])
        rows.append([found[name] for name in columns])
    return csv_text(columns, rows)
