"""A list of samples as CSV, for who looks them up and puts their labels right."""

import csv
import io
from typing import Any

from service.operations.csv_cell import csv_cell

COLUMNS = (
    "row",
    "label",
    "label_name",
    "predicted",
    "predicted_name",
    "probability",
    "lower",
    "upper",
    "bin",
    "uncertainty",
    "expected",
    "kept",
)


def samples_csv(document: dict[str, Any]) -> str:
    """Return one sample a line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sample in document["samples"]:
        lower, upper = sample["interval"]
        found = sample | {"lower": lower, "upper": upper, "kept": sample["inputs"] is not None}
        writer.writerow([csv_cell(found[name]) for name in COLUMNS])
    return text.getvalue()
