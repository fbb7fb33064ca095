"""The OpenAPI document says what the service does."""

import json
from typing import Any

import httpx
import pytest
from json_schema import faults
from running_service import calibrate, digits

JSON = "application/json"
PREDICT_DIGITS = {"json": json.loads(digits("request.json"))}
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"


@pytest.fixture(scope="module")
def document(client) -> dict[str, Any]:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def plain_digits(client) -> dict[str, Any]:
    """Return the calibration that the examples are about: the README's, with no option set."""
    parts = {name: digits(f"{name}.npz") for name in ("calibration", "evaluation")}
    return calibrate(
        client, model=digits("model.onnx"), **parts, config='{"name": "digits"}'
    ).json()


def answer_of(document: dict, method: str, path: str, status: int = 200) -> dict[str, Any]:
    return document["paths"][path][method]["responses"][str(status)]["content"][JSON]


def same_layout(ours: Any, theirs: Any, at: str = "$") -> list[str]:
    """Return where two answers differ in more than numbers, texts and lengths."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = [f"{at}.{key}" for key in ours if key not in theirs]
        both = [key for key in ours if key in theirs]
        return missing + [f for k in both for f in same_layout(ours[k], theirs[k], f"{at}.{k}")]
    if isinstance(ours, list) and isinstance(theirs, list) and ours and theirs:
        return same_layout(ours[0], theirs[0], f"{at}[0]")
    alike = isinstance(theirs, type(ours)) or {type(ours), type(theirs)} <= {int, float}
    return [] if alike else [f"{at}: {ours!r}, {theirs!r}"]


def test_predict_example_is_what_the_service_answers(client, document, plain_digits) -> None:
    operation = document["paths"]["/predict"]["post"]
    body = operation["requestBody"]["content"][JSON]
    found = answer_of(document, "post", "/predict")
    assert faults(body["example"], body["schema"], document) == []

    answer = client.post("/predict", json=body["example"]).json()

    assert faults(answer, found["schema"], document) == []
    for ours, theirs in zip(found["example"]["predictions"], answer["predictions"], strict=True):
        assert (ours["class"], ours["abstain"]) == (theirs["class"], theirs["abstain"])
        for event in ("top1", "top5"):
            assert theirs[event]["probability"] == pytest.approx(
                ours[event]["probability"], abs=1e-6
            )


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        ("/calibrations/{calibration_id}", "/calibrations/digits", 200),
        ("/report", "/report?calibration=digits", 200),
        ("/models", "/models", 200),
        ("/readyz", "/readyz", 200),
    ],
)
def test_examples_are_like_the_answers(
    client, document, plain_digits, path: str, asked: str, status: int
) -> None:
    found = answer_of(document, "get", path, status)
    client.post("/predict", json=json.loads(digits("request.json")))  # which loads the model

    answer = client.get(asked).json()

    assert faults(answer, found["schema"], document) == []
    assert faults(found["example"], found["schema"], document) == []
    if path == "/report":
        answer["evaluations"] = found["example"]["evaluations"]
    assert same_layout(found["example"], answer) == []


def test_evaluation_example_is_like_the_answer(client, document, plain_digits) -> None:
    path = "/calibrations/{calibration_id}/evaluations"
    found = answer_of(document, "post", path, 201)
    files = [("evaluation", ("e.npz", digits("evaluation.npz"))), ("name", (None, "again"))]

    answer = client.post(
        "/calibrations/digits/evaluations", files=files, headers={"Prefer": "wait=60"}
    )

    assert answer.status_code == httpx.codes.CREATED
    assert faults(answer.json(), found["schema"], document) == []
    example = found["example"]
    example["result"]["confidence"] = example["result"]["entropy"] = {}
    assert same_layout(example, answer.json()) == []


def test_answers_without_an_example_keep_to_their_schemas(client, document, plain_digits) -> None:
    for path in ("/calibrations", "/healthz", "/calibrations/{calibration_id}/bins"):
        asked = path.replace("{calibration_id}", "digits")
        schema = answer_of(document, "get", path)["schema"]
        assert faults(client.get(asked).json(), schema, document) == [], path
    problem = client.get("/calibrations/nobody").json()
    assert faults(problem, {"$ref": "#/components/schemas/Problem"}, document) == []


def test_an_event_of_other_k_is_documented(client, document) -> None:
    calibrate(client, calibration=digits("calibration_logits.csv"), config='{"top_k": [2]}')
    body = {"calibration": "calibration", "logits": [[0.0] * 9 + [1.0]]}
    answer = client.post("/predict", json=body).json()
    assert "top1" not in answer["predictions"][0]
    schema = answer_of(document, "post", "/predict")["schema"]
    assert faults(answer, schema, document) == []
    answer["predictions"][0]["top2"]["probability"] = "high"
    assert faults(answer, schema, document) != []


def test_every_field_and_parameter_is_described(document) -> None:
    silent = [
        f"{name}.{key}"
        for name, schema in document["components"]["schemas"].items()
        for key, found in schema.get("properties", {}).items()
        if not found.get("description") and "$ref" not in found
    ]
    silent += [n for n, s in document["components"]["schemas"].items() if not s.get("description")]
    silent += [
        f"{method} {path} {parameter['name']}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert silent == []


def test_references_lead_somewhere(document) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [found for value in part.values() for found in references(value)]
        return [f for value in part for f in references(value)] if isinstance(part, list) else []

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known


@pytest.mark.parametrize(
    ("method", "path", "send", "status"),
    [
        ("get", "/report", {"headers": {"Accept": "image/png"}}, 406),
        ("get", "/report", {"params": {"format": "pdf"}}, 422),
        ("get", "/calibrations/{calibration_id}/bins", {"headers": {"Accept": "image/png"}}, 406),
        ("get", "/calibrations", {"params": {"limit": 0}}, 422),
        ("get", "/calibrations/{calibration_id}", {"missing": True}, 404),
        ("get", "/calibrations/{calibration_id}/events", {"missing": True}, 404),
        ("post", "/calibrations/{calibration_id}/cancel", {}, 409),
        ("post", "/calibrations/{calibration_id}/refit", {"content": b"{"}, 422),
        ("post", "/calibrations/{calibration_id}/refit", {"content": b" " * 2**21}, 413),
        ("post", "/calibrations/{calibration_id}/evaluations", {"content": b"x"}, 415),
        ("post", "/calibrate", {"content": b"x"}, 415),
        ("post", "/predict", {"content": b"{"}, 400),
        ("post", "/predict", {"headers": {"Accept": "image/png"}}, 406),
        ("post", "/predict", {"headers": {"Timeout": "soon"}}, 422),
        ("post", "/predict", {"headers": {"Timeout": "1e-9"}, **PREDICT_DIGITS}, 504),
    ],
)
def test_failures_are_declared(
    client, document, plain_digits, method: str, path: str, send: dict, status: int
) -> None:
    options = dict(send)
    name = "nobody" if options.pop("missing", False) else "digits"
    if path == "/report":
        options["params"] = options.get("params", {}) | {"calibration": "digits"}

    answer = client.request(method, path.replace("{calibration_id}", name), **options)

    assert answer.status_code == status, answer.text
    declared = document["paths"][path][method]["responses"]
    assert "application/problem+json" in declared[str(status)]["content"]
    assert "406" not in document["paths"]["/calibrate"]["post"]["responses"]


@pytest.mark.parametrize(
    "path",
    [
        "/calibrations/{calibration_id}/events",
        "/calibrations/{calibration_id}/evaluations/{evaluation_name}/events",
    ],
)
def test_streams_of_events_are_declared(document, path: str) -> None:
    responses = document["paths"][path]["get"]["responses"]
    assert list(responses["200"]["content"]) == ["text/event-stream"]
    assert "event: end" in responses["200"]["content"]["text/event-stream"]["example"]
    assert "503" in responses


@pytest.mark.parametrize(
    "path",
    ["/calibrate", "/calibrations/{calibration_id}/refit", "/calibrations/import"],
)
def test_the_key_of_a_request_is_declared(document, path: str) -> None:
    parameters = document["paths"][path]["post"]["parameters"]
    (key,) = [found for found in parameters if found["name"] == "Idempotency-Key"]
    assert (key["in"], key["required"]) == ("header", False)


@pytest.mark.parametrize("path", ["/predict", INFER, INFER_VERSION])
def test_the_time_of_a_prediction_is_declared(document, path: str) -> None:
    operation = document["paths"][path]["post"]
    (header,) = [found for found in operation["parameters"] if found["in"] == "header"]
    assert header["name"] == "Timeout"
    assert not header["required"]
    assert {"408", "413", "429", "503", "504"} <= operation["responses"].keys()


def test_the_documentation_needs_no_other_server(client) -> None:
    page = client.get("/docs")
    assert page.status_code == httpx.codes.OK
    assert "https://" not in page.text
    for asset in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"):
        assert f"/static/{asset}" in page.text
        assert client.get(f"/static/{asset}").status_code == httpx.codes.OK
    assert client.get("/static/../../settings.py").status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/predict", "POST"),
        ("TRACE", "/calibrations/digits", "DELETE, GET"),
        ("OPTIONS", "/calibrations/import", "POST"),
        ("PATCH", "/calibrations/digits/evaluations/a/b/cancel", "POST"),
        ("POST", "/v2/models/digits", "GET"),
    ],
)
def test_other_methods_are_told_which_there_are(
    client, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == httpx.codes.METHOD_NOT_ALLOWED
    assert answer.headers["Allow"] == allowed
