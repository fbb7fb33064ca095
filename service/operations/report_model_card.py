"""The report as a model card: what a model is published with, its numbers those of the report."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.operations.card_text import one_line, yaml_text
from service.operations.markdown_table import number, table_lines

Found = Mapping[str, Any]

BLANK = "*[to be filled in by the model's author]*"
SCORES = ("ece_15", "brier", "nll", "auroc")
MOST_CLASSES = 50
# What nobody but the author knows: nothing is made up for them.
OF_THE_AUTHOR = {
    "Intended use": ("Intended uses", "Uses it is not meant for", "Who is affected by its answers"),
    "Training": ("Training data", "Training procedure"),
}


def model_card(report: Found) -> str:
    """Return Markdown with YAML front matter, as the Hugging Face Hub reads it."""
    lines = [*_front_matter(report), *_head(report["calibration"])]
    lines += _details(report["provenance"])
    for section, blanks in OF_THE_AUTHOR.items():
        lines += [f"## {section}", "", *(f"- {about}: {BLANK}" for about in blanks), ""]
    lines += ["## Calibration", ""]
    for k, event in report["events"].items():
        lines += _event(k, event)
    lines += _limits(report)
    lines += _provenance(report)
    return "\n".join(lines)


def _front_matter(report: Found) -> Iterator[str]:
    name, data = report["calibration"]["name"], report["provenance"]["data"]
    yield from ("---", "# What is empty here is for the model's author.", "license:", "language:")
    if report["provenance"]["model"] is not None:
        yield "library_name: onnx"
    yield from ("tags:", "- classification", "- calibration", "model-index:")
    yield from (
        f"- name: {yaml_text(name)}",
        "  results:",
        "  - task:",
        "      type: classification",
    )
    yield from ("    dataset:", "      name: calibration set", f"      type: {data['format']}")
    yield "    metrics:"
    for k, event in report["events"].items():
        served = event["measures"][event["served"]]["scores"]
        values = {"accuracy": event["accuracy"]}
        values |= {name: served[name]["mean"] for name in SCORES if name in served}
        for score, value in values.items():
            if value is not None:
                yield f"    - type: {score}"
                yield f"      name: Top-{k} {score}"
                yield f"      value: {json.dumps(value)}"
    yield from ("---", "")


def _head(found: Found) -> Iterator[str]:
    yield from (f"# Model card: {found['name']}@{found['version']}", "")
    yield from (
        "The calibration is told by Howsure, from its report; all else is the author's.",
        "",
    )


def _details(provenance: Found) -> Iterator[str]:
    onnx_model, classes = provenance["model"], provenance["config"].get("classes") or []
    yield from ("## Model details", "", f"- Developed by: {BLANK}", f"- Licence: {BLANK}")
    if onnx_model is None:
        yield "- Model: not part of the calibration, which was made from its outputs"
    else:
        yield f"- Model: {one_line(onnx_model['label'])}, ONNX, SHA-256 `{onnx_model['sha256']}`"
        for member in onnx_model["members"]:
            yield f"- Member: {one_line(member['label'])}, SHA-256 `{member['sha256']}`"
        for tensor in onnx_model["inputs"]:
            sizes = [str(size or "any") for size in tensor["shape"] or ["any"]]
            yield f"- Input: {one_line(tensor['name'])}, {tensor['dtype']} [{', '.join(sizes)}]"
    named = ", ".join(one_line(name) for name in classes[:MOST_CLASSES])
    more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
    yield from (f"- Classes: {len(classes)}: {named}{more}", "")


def _event(k: str, event: Found) -> Iterator[str]:
    served, figures = event["served"], event["figures"]
    table = event["measures"][served]
    yield from (f"### Top-{k}", "")
    yield f"Answered by `{served}`, in {len(table['bins'])} bins."
    yield ""
    if event["verdict"] is not None:
        yield from (event["verdict"]["sentence"], "")
    rows = [*_figure_rows(figures)]
    yield from (*table_lines(["", "value", "from", "to", "samples"], rows), "")
    yield from _scores(event, served)


def _figure_rows(figures: Found) -> Iterator[list[str]]:
    for name, label in (("accuracy", "accuracy"), ("risk", "error rate of what is accepted")):
        found = figures[name]
        if found is not None:
            shown = [number(value) for value in (found["value"], *found["interval"])]
            yield [label, *shown, str(found["n_samples"])]


def _scores(event: Found, served: str) -> Iterator[str]:
    judged = {f"`{served}`, served": event["measures"][served]}
    if "raw_softmax" in event["baselines"]:
        judged["the model's own softmax"] = event["baselines"]["raw_softmax"]
    judged_apart = any(found["evaluation"] for found in judged.values())
    header = [*(f"{score}, cross-validated" for score in SCORES)]
    header += [f"{score}, evaluation set" for score in SCORES] if judged_apart else []
    rows = [
        [name]
        + [_fold(found, score) for score in SCORES]
        + [
            number((found["evaluation"] or {}).get(score))
            for score in (SCORES if judged_apart else ())
        ]
        for name, found in judged.items()
    ]
    yield from (*table_lines(["", *header], rows), "")


def _fold(found: Found, score: str) -> str:
    fold = found["scores"].get(score)
    if fold is None or fold["mean"] is None:
        return ""
    return number(fold["mean"]) + ("" if fold["std"] is None else f" ± {number(fold['std'])}")


def _limits(report: Found) -> Iterator[str]:
    yield from ("## Limits", "", "- Calibration holds for data like the calibration set.")
    for found in report["evaluations"]:
        about = f"{one_line(found['name'])}, {found['samples']} samples"
        yield f"- {about}: {one_line(found['sentence'])}"
    yield from (f"- {one_line(text)}" for text in report["warnings"])
    for found in report["findings"]:
        yield f"- {found['level']}, `{found['code']}`: {one_line(found['message'])}"
    yield from (f"- Known biases and risks: {BLANK}", "")


def _provenance(report: Found) -> Iterator[str]:
    found, provenance = report["calibration"], report["provenance"]
    data = provenance["data"]
    yield from ("## Provenance", "", f"- Calibration: `{found['id']}`, {found['finished_at']}")
    yield f"- Calibration set: {data['samples']} samples, SHA-256 `{data['sha256']}`"
    if data.get("evaluation_sha256"):
        of = f"{data['evaluation_samples']} samples, SHA-256 `{data['evaluation_sha256']}`"
        yield f"- Evaluation set: {of}"
    versions = ", ".join(f"{name} {version}" for name, version in provenance["versions"].items())
    yield from (f"- Versions: {versions}", "", "```json")
    yield from (json.dumps(provenance["config"], indent=2), "```", "")
