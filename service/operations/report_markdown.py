"""The report as Markdown."""

from collections.abc import Iterable
from typing import Any

SHOWN = ("ece", "ece_15", "brier", "nll", "auroc", "aurc", "eor", "conditional_entropy")


def report_markdown(report: dict[str, Any]) -> str:
    """Return the report as a Markdown document: scores and served bins of each event."""
    found, provenance = report["calibration"], report["provenance"]
    data, onnx_model = provenance["data"], provenance["model"]
    lines = [f"# {found['name']}@{found['version']}", ""]
    lines += [
        f"- calibration: `{found['id']}`, finished {found['finished_at']}",
        f"- data: {data['samples']} samples, SHA-256 `{data['sha256']}`",
    ]
    if onnx_model is not None:
        lines.append(f"- ONNX model: SHA-256 `{onnx_model['sha256']}`")
    versions = ", ".join(f"{name} {number}" for name, number in provenance["versions"].items())
    lines += [f"- versions: {versions}", ""]
    for k, event in report["events"].items():
        lines += _event(k, event)
    if report["warnings"]:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in report["warnings"]), ""]
    return "\n".join(lines)


def _event(k: str, event: dict[str, Any]) -> list[str]:
    served = event["served"]
    lines = [f"## Top-{k}", "", f"Right {event['accuracy']:.4f} of the time on the data.", ""]
    lines += ["Cross-validated scores, mean ± standard deviation over folds:", ""]
    rows = [
        [f"**{name}** (served)" if name == served else name, *(_fold(found, s) for s in SHOWN)]
        for name, found in {**event["measures"], **event["baselines"]}.items()
    ]
    lines += [*_rows(["", *SHOWN], rows), ""]
    judged = {**event["measures"], **event["baselines"]}
    if any(found["evaluation"] for found in judged.values()):
        lines += ["Scores on the evaluation set:", ""]
        rows = [
            [name, *(_number((found["evaluation"] or {}).get(s)) for s in SHOWN)]
            for name, found in judged.items()
        ]
        lines += [*_rows(["", *SHOWN], rows), ""]
    lines += [f"Bins of {served}, which serves:", ""]
    columns = ["uncertainty above", "up to", "samples", "right", "probability", "interval"]
    rows = [
        [
            _edge(row["lower"]),
            _edge(row["upper"]),
            str(row["count"]),
            str(row["hits"]),
            f"{row['probability']:.4f}",
            f"{row['interval'][0]:.4f} to {row['interval'][1]:.4f}",
        ]
        for row in event["measures"][served]["bins"]
    ]
    return [*lines, *_rows(columns, rows), ""]


def _rows(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    return [line(header), "|" + "---|" * len(header), *(line(row) for row in rows)]


def _fold(found: dict[str, Any], score: str) -> str:
    fold = found["scores"].get(score)
    if fold is None or fold["mean"] is None:
        return ""
    return f"{fold['mean']:.4f} ± {fold['std']:.4f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _edge(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
