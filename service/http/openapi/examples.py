"""Examples of the OpenAPI document: a request and a response for every route that has a body."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "bodies"
JSON = "application/json"
FORM = "multipart/form-data"
OIP_MODELS = ("/v2/models/{model_name}", "/v2/models/{model_name}/versions/{model_version}")


def _read(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _requests() -> dict[tuple[str, str], tuple[str, Any]]:
    """Return the example of each request body and its media type."""
    calibrate = {
        "model": ["model.onnx"],
        "calibration": "calibration.npz",
        "config": json.dumps({"name": "digits", "bins": 20, "measures": ["entropy", "margin"]}),
    }
    evaluate = {"name": "a month later", "evaluation": "evaluation.npz"}
    points = "/calibrations/{calibration_id}/operating-points"
    return {
        ("post", "/calibrate"): (FORM, calibrate),
        ("post", "/calibrations/import"): (JSON, _read("bins")),
        ("post", "/calibrations/{calibration_id}/evaluations"): (FORM, evaluate),
        ("post", points): (JSON, _read("operating_point_request")),
        ("post", f"{points}/withdraw"): (JSON, _read("withdrawal_request")),
        ("post", "/predict"): (JSON, _read("predict_request")),
        ("post", "/v2/repository/index"): (JSON, {"ready": True}),
        **{("post", f"{path}/infer"): (JSON, _read("oip_request")) for path in OIP_MODELS},
    }


def _answers() -> dict[tuple[str, str], Any]:
    """Return the example of each JSON response; that of a job is a finished one."""
    one = "/calibrations/{calibration_id}"
    further_set, points = f"{one}/evaluations/{{evaluation_name}}", f"{one}/operating-points"
    calibration, evaluation, ready = _read("calibration"), _read("evaluation"), {"ready": True}
    of_model = {
        "": _read("oip_model"),
        "/ready": ready,
        "/config": _read("oip_config"),
        "/stats": _read("oip_statistics"),
    }
    return {
        ("post", "/calibrate"): calibration,
        ("get", "/calibrations"): {"calibrations": [calibration], "next_cursor": None},
        ("get", one): calibration,
        **{("post", f"{one}/{verb}"): calibration for verb in ("cancel", "promote", "refit")},
        ("get", f"{one}/bins"): _read("bins"),
        ("post", "/calibrations/import"): calibration,
        ("get", f"{one}/evaluations"): {"evaluations": [evaluation]},
        ("post", f"{one}/evaluations"): evaluation,
        ("get", further_set): evaluation,
        ("post", f"{further_set}/cancel"): evaluation,
        ("get", points): _read("operating_points"),
        ("post", points): _read("operating_point"),
        ("get", f"{points}/preview"): _read("operating_point_preview"),
        ("post", f"{points}/withdraw"): _read("withdrawal"),
        ("get", f"{one}/samples"): _read("samples"),
        ("post", "/predict"): _read("predict_answer"),
        ("get", "/models"): _read("models"),
        ("get", "/report"): _read("report"),
        ("get", "/usage"): _read("usage"),
        ("get", "/audit"): _read("audit"),
        ("get", "/healthz"): {"status": "alive", "sandbox": "full", "sandbox_missing": []},
        ("get", "/readyz"): _read("readiness"),
        ("get", "/v2"): _read("oip_server"),
        ("get", "/v2/health/live"): {"live": True},
        ("get", "/v2/health/ready"): ready,
        ("get", "/v2/models/stats"): _read("oip_statistics"),
        ("post", "/v2/repository/index"): _read("oip_index"),
        **{("get", p + suffix): found for p in OIP_MODELS for suffix, found in of_model.items()},
        **{("post", f"{path}/infer"): _read("oip_answer") for path in OIP_MODELS},
    }


def add_examples(paths: dict[str, Any]) -> None:
    """Add the examples to the operations in place."""
    for (method, path), (media_type, example) in _requests().items():
        paths[path][method]["requestBody"]["content"][media_type]["example"] = example
    for (method, path), example in _answers().items():
        for status, response in paths[path][method]["responses"].items():
            if status.startswith("2"):
                response["content"][JSON]["example"] = example
    tried = paths["/calibrate"]["post"]["responses"]["200"]
    tried["content"][JSON]["example"] = _read("dry_run")
