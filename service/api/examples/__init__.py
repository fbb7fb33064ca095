"""Examples in the OpenAPI document: what the digits of `examples/digits` are answered with."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
JSON = "application/json"

REQUESTS = {("post", "/predict"): "predict_request"}
ANSWERS = {
    ("post", "/predict"): "predict_answer",
    ("post", "/calibrate"): "calibration",
    ("get", "/calibrations/{calibration_id}"): "calibration",
    ("post", "/calibrations/{calibration_id}/refit"): "calibration",
    ("post", "/calibrations/{calibration_id}/promote"): "calibration",
    ("post", "/calibrations/{calibration_id}/evaluations"): "evaluation",
    ("get", "/calibrations/{calibration_id}/evaluations/{evaluation_name}"): "evaluation",
    ("get", "/report"): "report",
    ("get", "/models"): "models",
    ("get", "/readyz"): "readiness",
}


def add_examples(paths: dict[str, Any]) -> None:
    """Put the examples where they belong, in place; a job's is that of one that has ended."""
    for (method, path), name in REQUESTS.items():
        paths[path][method]["requestBody"]["content"][JSON]["example"] = _read(name)
    for (method, path), name in ANSWERS.items():
        responses = paths[path][method]["responses"]
        responses["201" if "201" in responses else "200"]["content"][JSON]["example"] = _read(name)


def _read(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
