"""The report as Markdown."""

from typing import Any

from service.operations.markdown_event import event_lines
from service.operations.markdown_passes import passes_lines
from service.operations.markdown_table import edge, number, plain, table_lines

FURTHER_SCORES = ("ece", "brier", "nll", "auroc")


def report_markdown(report: dict[str, Any]) -> str:
    """Return the report as a Markdown document: every event, the model, further sets, warnings."""
    lines = _head(report["calibration"], report["provenance"])
    for k, event in report["events"].items():
        lines += event_lines(k, event)
    lines += _model_scores(report["model_scores"])
    lines += _further_sets(report["evaluations"])
    if report["findings"]:
        lines += ["## Findings", "", *map(_finding, report["findings"]), ""]
    if report["warnings"]:
        lines += ["## Warnings", "", *(f"- {plain(text)}" for text in report["warnings"]), ""]
    return "\n".join(lines)


def _head(found: dict[str, Any], provenance: dict[str, Any]) -> list[str]:
    data, onnx_model = provenance["data"], provenance["model"]
    lines = [f"# {found['name']}@{found['version']}", ""]
    lines += [
        f"- calibration: `{found['id']}`, finished {found['finished_at']}",
        f"- data: {data['samples']} samples, SHA-256 `{data['sha256']}`",
    ]
    if onnx_model is not None:
        lines.append(f"- ONNX model: SHA-256 `{onnx_model['sha256']}`")
    if provenance["refit_of"] is not None:
        lines.append(f"- fitted anew from the records of `{provenance['refit_of']}`")
    versions = ", ".join(f"{name} {number}" for name, number in provenance["versions"].items())
    return [*lines, f"- versions: {versions}", ""]


def _model_scores(by_set: dict[str, Any]) -> list[str]:
    sets = {name: found for name, found in by_set.items() if found is not None}
    if not sets:
        return []
    events = list(next(iter(sets.values()))["accuracy"])
    header = ["set", "samples", *(f"Top-{k} right" for k in events)]
    rows = [
        [
            name,
            str(found["n_samples"]),
            *(number(found["accuracy"][k]) for k in events),
            number(found["nll"]),
            number(found["brier_multiclass"]),
            number(found["mean_entropy"]),
        ]
        for name, found in sets.items()
    ]
    return [
        "## The model itself",
        "",
        "Its own softmax, over all classes and before any calibration:",
        "",
        *table_lines([*header, "nll", "brier_multiclass", "mean entropy"], rows),
        "",
        *passes_lines(sets),
    ]


def _finding(found: dict[str, Any]) -> str:
    return f"- {found['level']}, `{found['code']}`: {plain(found['message'])}"


def _further_sets(evaluations: list[dict[str, Any]]) -> list[str]:
    if not evaluations:
        return []
    lines = ["## Further sets", ""]
    for found in evaluations:
        labelled = "labelled" if found["labelled"] else "without labels"
        lines += [f"### {plain(found['name'])}", "", f"{found['samples']} samples, {labelled}."]
        lines += [found["sentence"], "", *_further_table(found), ""]
    return lines


def _further_table(found: dict[str, Any]) -> list[str]:
    levels = list(next(iter(found["events"].values()))["discarded"])
    header = [*(f"discarded at {level}" for level in levels)]
    if found["labelled"]:
        header = ["right", *FURTHER_SCORES, *header]
    rows = []
    for k, event in found["events"].items():
        cells = [edge(event["discarded"][level]) for level in levels]
        if found["labelled"]:
            scores = [number(event["scores"].get(score)) for score in FURTHER_SCORES]
            cells = [number(event["accuracy"]), *scores, *cells]
        rows.append([f"Top-{k}", *cells])
    return table_lines(["", *header], rows)
