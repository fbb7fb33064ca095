"""What passes cost and bring, as Markdown: measures side by side, and each by its passes."""

from typing import Any

from service.operations.markdown_table import number, table_lines
from service.operations.report_comparison import COMPARED


def comparison_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return one table of an event's measures: cost beside quality."""
    judged = any(row[score]["evaluation"] is not None for row in rows for score in COMPARED)
    beside = " / on the evaluation set" if judged else ""
    cells = [
        [
            f"**{row['measure']}**" if row["served"] else row["measure"],
            "" if row["passes"] is None else str(row["passes"]),
            "" if row["ms_per_row"] is None else f"{row['ms_per_row']:.3g}",
            *(_cell(row[score], judged=judged) for score in COMPARED),
        ]
        for row in rows
    ]
    sentence = (
        "Runs of the model that an answer takes and their milliseconds, then scores: mean ± "
        f"standard deviation over folds, or † of all folds together{beside}."
    )
    return [
        "### Measures compared",
        "",
        sentence,
        "",
        *table_lines(["", "runs", "ms", *COMPARED], cells),
        "",
    ]


def passes_lines(by_set: dict[str, Any]) -> list[str]:
    """Return a table for each measure and set: what the first passes alone would do."""
    lines: list[str] = []
    for name, found in by_set.items():
        for measure, rows in found.get("passes", {}).items():
            lines += [f"### {measure}, by its passes, {name}", "", *_by_passes(found, rows), ""]
    return lines


def _by_passes(found: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Return the table, the model alone in its first row."""
    events = list(found["accuracy"])
    alone = ["the model", *(number(found["accuracy"][k]) for k in events), number(found["nll"])]
    shown = [
        [
            str(row["passes"]),
            *(number((row["accuracy"] or {}).get(k)) for k in events),
            number(row["nll"]),
            *(number(row["auroc"].get(k)) for k in events),
        ]
        for row in rows
    ]
    header = ["passes", *(f"Top-{k} right" for k in events), "nll"]
    return table_lines(
        [*header, *(f"auroc, Top-{k}" for k in events)], [alone + [""] * len(events), *shown]
    )


def _cell(score: dict[str, Any], *, judged: bool) -> str:
    spread = "" if score["std"] is None else f" ± {score['std']:.4f}"
    over = number(score["value"]) + spread + (" †" if score["pooled"] else "")
    return f"{over} / {number(score['evaluation']) or '-'}" if judged else over
