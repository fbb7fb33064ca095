"""One event of the report as Markdown."""

from typing import Any

from service.operations.markdown_passes import comparison_lines
from service.operations.markdown_table import edge, number, table_lines

SHOWN = ("ece", "ece_15", "brier", "nll", "auroc", "aurc", "eor", "conditional_entropy")
COMPARED = ("nll", "brier")
MISLABELLED_SHOWN = 10


def event_lines(k: str, event: dict[str, Any]) -> list[str]:
    """Return the section of an event: verdict, scores, and what the served table found."""
    served = event["served"]
    table = event["measures"][served]
    lines = [f"## Top-{k}", "", f"Right {event['accuracy']:.4f} of the time on the data.", ""]
    if event["verdict"] is not None:
        lines += [event["verdict"]["sentence"], ""]
    lines += comparison_lines(event["comparison"])
    lines += _scores(event)
    lines += _differences(event["baselines"])
    lines += _bins(served, table)
    lines += _decisions(table)
    lines += _mislabelled(event["mislabelled"])
    return lines


def _scores(event: dict[str, Any]) -> list[str]:
    judged = {**event["measures"], **event["baselines"]}
    rows = [
        [f"**{name}** (served)" if name == event["served"] else name]
        + [_fold(found, score) for score in SHOWN]
        for name, found in judged.items()
    ]
    lines = ["Cross-validated scores, mean ± standard deviation over folds:", ""]
    lines += [*table_lines(["", *SHOWN], rows), ""]
    if any(found["evaluation"] for found in judged.values()):
        rows = [
            [name, *(number((found["evaluation"] or {}).get(score)) for score in SHOWN)]
            for name, found in judged.items()
        ]
        lines += ["Scores on the evaluation set:", "", *table_lines(["", *SHOWN], rows), ""]
    return lines


def _differences(baselines: dict[str, Any]) -> list[str]:
    """Return the paired differences from the bins served, by phase."""
    phases = [
        phase
        for phase in ("cross_validation", "evaluation")
        if any(found["difference"][phase] for found in baselines.values())
    ]
    if not phases:
        return []
    header = [f"{score}, {phase.replace('_', '-')}" for phase in phases for score in COMPARED]
    rows = [
        [name] + [_difference(found["difference"][phase], s) for phase in phases for s in COMPARED]
        for name, found in baselines.items()
    ]
    return [
        "Baselines less the bins served, pair by pair, ± standard error (negative: better):",
        "",
        *table_lines(["", *header], rows),
        "",
    ]


def _bins(served: str, table: dict[str, Any]) -> list[str]:
    columns = ["uncertainty above", "up to", "samples", "right", "probability", "interval"]
    rows = [_cells(row) for row in table["bins"]]
    lines = [f"Bins of {served}, which serves:", "", *table_lines(columns, rows), ""]
    if table.get("guarantee") is not None:
        lines += [table["guarantee"]["sentence"], ""]
    coarse = table.get("coarse")
    if coarse is not None:
        rows = [[edge(cell["target"]) or "the rest", *_cells(cell)] for cell in coarse["cells"]]
        lines += ["Coarse table:", "", *table_lines(["target", *columns], rows), ""]
        lines += [coarse["note"], ""]
    return lines


def _decisions(table: dict[str, Any]) -> list[str]:
    lines = []
    if table.get("selective"):
        rows = [
            [
                f"{found['target']['max_risk']:g}",
                f"{found['target']['delta']:g}",
                edge(found["threshold"]) or "none",
                number(found["coverage"]),
                str(found["n_accepted"]),
                str(found["n_errors"]),
                str(found["labels_missing"] or ""),
            ]
            for found in table["selective"]
        ]
        columns = ["error rate at most", "fails with", "accept up to", "coverage", "accepted"]
        columns += ["errors", "more labels needed"]
        lines += ["Selective prediction:", "", *table_lines(columns, rows), ""]
    if table.get("ood_thresholds"):
        rows = [[level, edge(value)] for level, value in table["ood_thresholds"].items()]
        lines += ["Out-of-distribution thresholds, by the share of the calibration set below:", ""]
        lines += [*table_lines(["share", "uncertainty"], rows), ""]
    return lines


def _mislabelled(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    rows = [
        [
            str(row["index"]),
            str(row["label"]),
            str(row["predicted"]),
            number(row["posterior"]),
            edge(row["uncertainty"]),
        ]
        for row in found[:MISLABELLED_SHOWN]
    ]
    columns = ["row", "label", "predicted", "probability of the prediction", "uncertainty"]
    return [
        "Samples whose label is more likely wrong than the model, the surest first:",
        "",
        *table_lines(columns, rows),
        "",
    ]


def _cells(row: dict[str, Any]) -> list[str]:
    interval = row["interval"]
    return [
        edge(row["lower"]),
        edge(row["upper"]),
        str(row["count"]),
        str(row["hits"]),
        number(row["probability"]),
        "" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
    ]


def _fold(found: dict[str, Any], score: str) -> str:
    fold = found["scores"].get(score)
    if fold is None or fold["mean"] is None:
        return ""
    return f"{fold['mean']:.4f}" + ("" if fold["std"] is None else f" ± {fold['std']:.4f}")


def _difference(found: dict[str, Any], score: str) -> str:
    if score not in found:
        return ""
    error = found[score]["standard_error"]
    return f"{found[score]['mean']:+.5f}" + ("" if error is None else f" ± {error:.5f}")
