"""The OpenAPI document says what the service does."""

import json
import re
from typing import Any

import pytest
from request_formats import faults
from running_service import DIGITS_PARTS, calibrated, digits

JSON, FORM = "application/json", "multipart/form-data"
PREDICT_DIGITS = {"json": json.loads(digits("request.json"))}
INFER = "/v2/models/{model_name}/infer"
INFER_VERSION = "/v2/models/{model_name}/versions/{model_version}/infer"


@pytest.fixture(scope="module")
def document(client) -> dict[str, Any]:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def plain(client) -> str:
    """Return the name of the calibration that the examples are about, with no option set."""
    parts = DIGITS_PARTS | {"evaluation": digits("evaluation.npz")}
    return calibrated(client, {"name": "plain"}, full=True, **parts)["name"]


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


CALIBRATION = "/calibrations/{calibration_id}"
READS = {
    CALIBRATION: "",
    f"{CALIBRATION}/bins": "",
    "/calibrations": "?name=plain",
    f"{CALIBRATION}/samples": "?limit=1",
    f"{CALIBRATION}/operating-points/preview": "?max_risk=0.02&volume=10000",
    "/report": "?calibration=plain",
    **dict.fromkeys(["/usage", "/v2", "/v2/health/live", "/v2/health/ready"], ""),
    **{f"/v2/models/{{model_name}}{part}": "" for part in ("", "/ready")},
    **dict.fromkeys(["/models", "/readyz", "/healthz"], ""),
}
PLACE = re.compile(r"\{(calibration_id|model_name)\}")


@pytest.mark.parametrize("path", READS)
def test_answers_keep_to_schemas_and_examples(client, document, plain, path: str) -> None:
    declared = answer_of(document, "get", path)
    if path == "/models":
        client.post("/predict", json=PREDICT_DIGITS["json"] | {"calibration": plain})  # loads it
    answer = client.get(PLACE.sub(plain, path) + READS[path]).json()
    assert faults(answer, declared["schema"], document) == []
    assert faults(declared["example"], declared["schema"], document) == []
    if path == "/report":
        answer["evaluations"] = declared["example"]["evaluations"]
    if path == "/usage":  # the tests have no limits
        answer["requests"] = answer["rows"] = declared["example"]["requests"]
    if not path.endswith("/bins"):  # the example has fewer tables
        assert same_layout(declared["example"], answer) == []


def operations_of(document: dict) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def test_every_route_and_every_field_is_described(document) -> None:
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for _, path, operation in operations_of(document):
        assert operation["summary"]
        assert tags.issuperset(operation["tags"]), path
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (path, parameter["name"])
    for name, schema in document["components"]["schemas"].items():
        assert schema.get("description"), name
        for key, field in schema.get("properties", {}).items():
            assert field.get("description") or "$ref" in field, (name, key)


def test_every_body_has_an_example_that_keeps_to_its_schema(document) -> None:
    for method, path, operation in operations_of(document):
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        bodies += [found for at, found in operation["responses"].items() if at.startswith("2")]
        for content in (body["content"] for body in bodies if "content" in body):
            # Examples of other media types are bytes.
            for media_type in content.keys() & (
                {JSON, FORM} - {FORM if path == "/predict" else ""}
            ):
                example, schema = content[media_type]["example"], content[media_type]["schema"]
                if media_type == FORM and "config" in example:
                    example = example | {"config": json.loads(example["config"])}
                assert faults(example, schema, document) == [], (method, path)


ACCEPTED = {
    f"{CALIBRATION}/operating-points": 201,
    f"{CALIBRATION}/operating-points/withdraw": 200,
    **dict.fromkeys([INFER, INFER_VERSION, "/v2/repository/index"], 200),
    "/calibrations/import": 201,
}


def test_the_request_examples_are_accepted(client, document, plain) -> None:
    for path, status in ACCEPTED.items():
        body = document["paths"][path]["post"]["requestBody"]["content"][JSON]["example"]
        # Not as a version of a name that others use.
        params = {"name": "imported-again"} if path == "/calibrations/import" else {}
        address = PLACE.sub(plain, path).replace("{model_version}", "1")
        answer = client.post(address, json=body, params=params)
        assert answer.status_code == status, (path, answer.text)
        if path != "/calibrations/import":  # the example of a calibration has scores
            expected = answer_of(document, "post", path, status)["example"]
            assert same_layout(expected, answer.json()) == []


AN_IMAGE = {"params": {"calibration": "plain"}, "headers": {"Accept": "image/png"}}
LISTS = [{"limit": 0}, {"cursor": "\0garbage"}, {"status": "unknown"}]
SAMPLES = [{"k": 0}, {"k": 3}, {"kind": "others"}, {"limit": 201}]
FAILURES = [
    ("get", "/report", AN_IMAGE, 406),
    ("get", "/report", {}, 422),
    ("get", "/report", {"params": {"calibration": "nobody", "format": "model-card"}}, 404),
    ("get", "/report", {"params": {"calibration": ["plain"] * 2, "format": "html"}}, 422),
    ("get", "/report", {"params": {"calibration": "plain", "format": "pdf"}}, 422),
    *(("get", "/calibrations", {"params": params}, 422) for params in LISTS),
    *(("get", f"{CALIBRATION}/samples", {"params": params}, 422) for params in SAMPLES),
    ("post", "/calibrate", {}, 415),
    ("get", f"{CALIBRATION}/events", {}, 404),
    ("post", f"{CALIBRATION}/cancel", {}, 409),
    ("post", f"{CALIBRATION}/refit", {"content": b"{"}, 422),
    ("post", f"{CALIBRATION}/refit", {"content": b" " * 2**21}, 413),
    ("post", f"{CALIBRATION}/evaluations", {"content": b"x"}, 415),
    ("post", "/predict", {"content": b"{"}, 400),
    ("post", "/predict", {"headers": {"Timeout": "soon"}}, 422),
    ("post", "/predict", {"headers": {"Timeout": "1e-9"}, **PREDICT_DIGITS}, 504),
]


@pytest.mark.parametrize(("method", "path", "send", "status"), FAILURES)
def test_failures_are_declared(client, document, plain, method, path, send, status) -> None:
    address = path.replace("{calibration_id}", "nobody" if status == 404 else plain)
    answer = client.request(method, address, **send)
    assert answer.status_code == status, answer.text
    declared = document["paths"][path][method]["responses"][str(status)]
    assert answer.headers["content-type"] in declared["content"]
    assert answer.headers["content-type"] == "application/problem+json"
    assert faults(answer.json(), {"$ref": "#/components/schemas/Problem"}, document) == []
