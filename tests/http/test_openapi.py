"""The OpenAPI document says what the service does."""

import json
import re
from typing import Any

import httpx
import pytest
from request_formats import faults
from running_service import calibrated, digits, evaluate

JSON = "application/json"
PREDICT_DIGITS = {"json": json.loads(digits("request.json"))}
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"


@pytest.fixture(scope="module")
def document(client) -> dict[str, Any]:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def plain(client) -> str:
    """Return the name of the calibration that the examples are about, with no option set."""
    parts = {name: digits(f"{name}.npz") for name in ("calibration", "evaluation")}
    options = {"name": "plain"}
    return calibrated(client, options, full=True, model=digits("model.onnx"), **parts)["name"]


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


def test_predict_example_is_what_the_service_answers(client, document, plain) -> None:
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"][JSON]
    declared = answer_of(document, "post", "/predict")
    assert faults(body["example"], body["schema"], document) == []

    answer = client.post("/predict", json=body["example"] | {"calibration": plain}).json()

    assert faults(answer, declared["schema"], document) == []
    for ours, theirs in zip(declared["example"]["predictions"], answer["predictions"], strict=True):
        assert (ours["class"], ours["abstain"]) == (theirs["class"], theirs["abstain"])
        for event in ("top1", "top5"):
            expected = pytest.approx(ours[event]["probability"], abs=1e-6)
            assert theirs[event]["probability"] == expected


READS = {
    "/calibrations/{calibration_id}": "",
    "/calibrations/{calibration_id}/bins": "",
    "/calibrations": "?name=plain",
    "/calibrations/{calibration_id}/samples": "?limit=1",
    "/calibrations/{calibration_id}/operating-points/preview": "?max_risk=0.02&volume=10000",
    "/usage": "",
    "/v2": "",
    "/v2/health/live": "",
    "/v2/health/ready": "",
    "/v2/models/{model_name}": "",
    "/v2/models/{model_name}/ready": "",
    "/v2/models/{model_name}/config": "",
    "/v2/models/{model_name}/stats": "",
    "/report": "?calibration=plain",
    "/models": "",
    "/readyz": "",
    "/healthz": "",
}
PLACE = re.compile(r"\{(calibration_id|model_name)\}")


@pytest.mark.parametrize("path", READS)
def test_answers_keep_to_schemas_and_examples(client, document, plain, path: str) -> None:
    declared = answer_of(document, "get", path)
    if path in ("/models", "/v2/models/{model_name}/stats"):
        request = json.loads(digits("request.json")) | {"calibration": plain}
        client.post("/predict", json=request)  # which loads the model
    answer = client.get(PLACE.sub(plain, path) + READS[path]).json()
    assert faults(answer, declared["schema"], document) == []
    assert faults(declared["example"], declared["schema"], document) == []
    if path == "/report":
        answer["evaluations"] = declared["example"]["evaluations"]
    if path == "/usage":  # the tests have no limits
        answer["requests"] = answer["rows"] = declared["example"]["requests"]
    if not path.endswith("/bins"):  # the example has fewer tables
        assert same_layout(declared["example"], answer) == []


def test_evaluation_example_is_like_the_answer(client, document, plain) -> None:
    declared = answer_of(document, "post", "/calibrations/{calibration_id}/evaluations", 201)
    answer = evaluate(client, plain, "again", digits("evaluation.npz"))
    assert answer.status_code == httpx.codes.CREATED
    assert faults(answer.json(), declared["schema"], document) == []
    example = declared["example"]
    example["result"]["confidence"] = example["result"]["entropy"] = {}
    assert same_layout(example, answer.json()) == []


def operations_of(document: dict) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def test_every_route_and_every_field_is_described(document) -> None:
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    assert {tag for _, _, operation in operations_of(document) for tag in operation["tags"]} == {
        *tags
    }
    assert all(tags.values())
    for _, path, operation in operations_of(document):
        assert operation["summary"]
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (path, parameter["name"])
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for key, field in schema.get("properties", {}).items():
            assert field.get("description") or "$ref" in field, (name, key)


def test_the_other_protocol_comes_last_and_is_folded(client, document) -> None:
    name = document["tags"][-1]["name"]
    assert f'["operations-tag", "{name}"], false' in client.get("/static/docs.js").text
    is_other = [path.startswith("/v2") for path in document["paths"]]
    assert is_other == sorted(is_other)
    assert any(is_other)


def test_every_body_has_an_example_that_keeps_to_its_schema(document) -> None:
    for method, path, operation in operations_of(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        bodies += [found for at, found in operation["responses"].items() if at.startswith("2")]
        for content in (body["content"] for body in bodies if "content" in body):
            # Examples of other media types are bytes.
            for media_type in content.keys() & {JSON, "multipart/form-data"}:
                found = content[media_type]
                if path == "/predict" and media_type != JSON:
                    continue
                assert "example" in found, (method, path, media_type)
                example = dict(found["example"]) if media_type != JSON else found["example"]
                if "config" in example and media_type != JSON:
                    example["config"] = json.loads(example["config"])
                assert faults(example, found["schema"], document) == [], (method, path)


def test_the_request_examples_are_accepted(client, document, plain) -> None:
    points = "/calibrations/{calibration_id}/operating-points"
    for path, status in (
        (points, 201),
        (f"{points}/withdraw", 200),
        (INFER, 200),
        (INFER_VERSION, 200),
        ("/v2/repository/index", 200),
        ("/calibrations/import", 201),
    ):
        body = document["paths"][path]["post"]["requestBody"]["content"][JSON]["example"]
        # Not as a version of a name that others use.
        params = {"name": "imported"} if path == "/calibrations/import" else {}
        address = PLACE.sub(plain, path).replace("{model_version}", "1")
        answer = client.post(address, json=body, params=params)
        assert answer.status_code == status, (path, answer.text)
        if path != "/calibrations/import":  # the example of a calibration has scores
            expected = answer_of(document, "post", path, status)["example"]
            assert same_layout(expected, answer.json()) == []


def test_the_configuration_is_described_key_by_key(document) -> None:
    described = document["paths"]["/calibrate"]["post"]["description"]
    schemas = document["components"]["schemas"]
    for key in schemas["CalibrationConfig"]["properties"]:
        assert f"| `{key}` |" in described, key
    for key in schemas["OutputConfig"]["properties"]:
        assert f"| `output.{key}` |" in described, key
    assert '| `bins` | "auto" or an integer from 1 to 10000 | `"auto"` |' in described


def test_an_event_of_other_k_is_documented(client, document) -> None:
    calibrated(client, {"name": "k2", "top_k": [2]}, calibration=digits("calibration_logits.csv"))
    body = {"calibration": "k2", "logits": [[0.0] * 9 + [1.0]]}
    answer = client.post("/predict", json=body).json()
    assert "top1" not in answer["predictions"][0]
    schema = answer_of(document, "post", "/predict")["schema"]
    assert faults(answer, schema, document) == []
    answer["predictions"][0]["top2"]["probability"] = "high"
    assert faults(answer, schema, document) != []


IMAGE = {"headers": {"Accept": "image/png"}}
FAILURES = [
    ("get", "/report", {"params": {"calibration": "digits"}, **IMAGE}, 406),
    ("get", "/report", {"params": {"calibration": "digits", "format": "pdf"}}, 422),
    ("get", "/calibrations/{calibration_id}/bins", IMAGE, 406),
    ("get", "/calibrations", {"params": {"limit": 0}}, 422),
    ("get", "/calibrations/{missing}", {}, 404),
    ("get", "/calibrations/{missing}/events", {}, 404),
    ("post", "/calibrations/{calibration_id}/cancel", {}, 409),
    ("post", "/calibrations/{calibration_id}/refit", {"content": b"{"}, 422),
    ("post", "/calibrations/{calibration_id}/refit", {"content": b" " * 2**21}, 413),
    ("post", "/calibrations/{calibration_id}/evaluations", {"content": b"x"}, 415),
    ("post", "/calibrate", {"content": b"x"}, 415),
    ("post", "/predict", {"content": b"{"}, 400),
    ("post", "/predict", IMAGE, 406),
    ("post", "/predict", {"headers": {"Timeout": "soon"}}, 422),
    ("post", "/predict", {"headers": {"Timeout": "1e-9"}, **PREDICT_DIGITS}, 504),
]


@pytest.mark.parametrize(("method", "path", "send", "status"), FAILURES)
def test_failures_are_declared(
    client, document, digits_calibration, method: str, path: str, send: dict, status: int
) -> None:
    address = path.replace("{calibration_id}", "digits").replace("{missing}", "nobody")
    answer = client.request(method, address, **send)
    assert answer.status_code == status, answer.text
    declared = document["paths"][path.replace("{missing}", "{calibration_id}")][method]["responses"]
    assert "application/problem+json" in declared[str(status)]["content"]
    assert faults(answer.json(), {"$ref": "#/components/schemas/Problem"}, document) == []
    assert "406" not in document["paths"]["/calibrate"]["post"]["responses"]


def test_streams_of_events_are_declared(document) -> None:
    for job in ("", "/evaluations/{evaluation_name}"):
        path = f"/calibrations/{{calibration_id}}{job}/events"
        responses = document["paths"][path]["get"]["responses"]
        assert list(responses["200"]["content"]) == ["text/event-stream"]
        assert "event: end" in responses["200"]["content"]["text/event-stream"]["example"]
        assert "503" in responses


def test_headers_of_requests_are_declared(document) -> None:
    refit = "/calibrations/{calibration_id}/refit"
    headers = dict.fromkeys(("/calibrate", refit, "/calibrations/import"), "Idempotency-Key")
    headers |= dict.fromkeys(("/predict", INFER, INFER_VERSION), "Timeout")
    for path, name in headers.items():
        operation = document["paths"][path]["post"]
        (header,) = [one for one in operation["parameters"] if one["name"] == name]
        assert (header["in"], header["required"]) == ("header", False)
        if name == "Timeout":
            assert {"408", "413", "429", "503", "504"} <= operation["responses"].keys()
