"""Valid bins documents are read to the last bit, invalid ones refused by one rule at one location.

Rules of curves and formulas are in tests/statistics; here each is refused at its place.
"""

import json
import re
from typing import Any

import httpx
import msgspec
import pytest
from bins_documents import EARLIER, Document, changed, exported, put
from job_workspaces import inputs_set
from runner_models import linear, weights
from running_service import calibrated

from howsure.bins_document.document import BinsDocument
from service.bins.import_bins import read_bins_document
from service.errors import InvalidInput, MalformedRequest

CURVE = {"uncertainty": [0.25, 0.5, 1.0], "probability": [0.9, 0.7, 0.5]}
CURVE |= {"lower": [0.8, 0.6, 0.3], "upper": [0.95, 0.8, 0.7]}
FORMULA: dict[str, Any] = {"k": 1, "temperature": 3, "intercept": 0.5, "saturated": 2.0}
FORMULA |= {"linear": [0.5] * 4, "square": [0.125] * 4, "lower": [-9.0] * 4, "upper": [1.0] * 4}
FORMULA |= {"offset": [0.25] * 10, "slope": [0.5] * 10, "second": [0.0] * 10}
STEP, INTERPOLATED = (case["document"] for case in EARLIER[:2])
OF_LEARNED = {"schema": "howsure.bins/2", "serve.1": "learned", "tables.0.measure": "learned"}
OF_CURVE = {"tables.0.lookup": "smooth", "tables.0.curve": CURVE, "tables.0.learned": FORMULA}
SMOOTH = changed(STEP, put(OF_LEARNED | OF_CURVE))
OUTPUTS = changed(INTERPOLATED, put({"model": None, "model_sha256": None, "data.kind": "logits"}))
DOCUMENTS = {"step": STEP, "smooth": SMOOTH, "outputs": OUTPUTS}
BIN, NEXT = "tables.0.bins.1", "tables.0.bins.2"
OF_SHARES = {"data.kind": "probabilities"}
TOP_2 = {"top_k": [2], "serve": {"2": "margin"}, "tables.0.event": 2}
OF_9_CLASSES = {f"tables.0.learned.{name}": [0.0] * 9 for name in ("offset", "slope", "second")}


def serving(measure: str) -> dict[str, Any]:
    return {"tables.0.measure": measure, "serve.1": measure}


def refusal(document: Document) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        read(document)
    return refused.value


def place_of(path: str) -> str:
    """Return a path as a location: ``tables.0.event`` is ``tables[0].event``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", path)


def shortest(value: Any) -> Any:
    """Return a value as a program would write it that has one kind of number."""
    if isinstance(value, dict):
        return {key: shortest(part) for key, part in reversed(value.items())}
    if isinstance(value, list):
        return [shortest(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read(document: Document) -> BinsDocument:
    return read_bins_document(json.dumps(document).encode())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_bit_comes_through_whoever_writes_the_text(name) -> None:
    numbers = {"tables.0.prior.strength": 1 / 3, f"{BIN}.interval": [0.1 + 0.2, 1.0]}
    document = changed(DOCUMENTS[name], put(numbers))
    texts = [json.dumps(shortest(document), ensure_ascii=False)]
    texts += [json.dumps(document), msgspec.json.encode(read(document)).decode()]
    for text in texts:
        again = read_bins_document(text.encode())
        assert msgspec.json.decode(msgspec.json.encode(again)) == document
        assert again == read(document)


# The location is the path of the first change, if it is not named.
BROKEN_RULES = [
    ("step", {"schema": "howsure.bins/3"}, "", "'howsure.bins/1' or 'howsure.bins/2'"),
    ("step", {"extra": 1}, "", ""),
    ("step", {"model_sha256": None}, "model", "null"),
    ("step", {"data.kind": "logits"}, "", "'inputs'"),
    ("step", {"calibration.name": "a b"}, "", "A-Z"),
    ("step", {"tables.0.measure": "surprise"}, "", ""),
    ("step", {"tables.0.event": 2}, "", "[1, 3]"),
    ("step", {"tables.1.measure": "entropy"}, "tables.0.measure", "two tables"),
    ("step", {"tables.0.served": False}, "serve", ""),
    ("step", {"top_k": [3, 1]}, "", "rising"),
    ("step", {"classes": ["a", "b", "c"]}, "top_k", "3 classes"),
    ("step", {f"{BIN}.hits": 151}, "", "150, got 151"),
    ("step", {f"{BIN}.probability": 0.1}, "", "interval"),
    ("step", {f"{BIN}.interval": [0.9, 1.5]}, f"{BIN}.interval.1", "1"),
    ("step", {f"{BIN}.weight": 0.5}, "", "0.25"),
    ("step", {f"{BIN}.lower": 1.0}, "", "1.0"),
    ("step", {"tables.0.bins.3.upper": 99.0}, "", "null"),
    ("step", {f"{BIN}.upper": None, f"{NEXT}.lower": None}, "", "but the last, got null"),
    ("step", {f"{BIN}.upper": 0.0, f"{NEXT}.lower": 0.0}, "", "ascend"),
    ("step", {f"{BIN}.upper": 0.1, f"{NEXT}.lower": 0.1}, "", "float32"),
    ("step", {f"{BIN}.probability": 5e-324, f"{BIN}.interval": [0, 1]}, "", "odds"),
    ("step", {f"{BIN}.hits": 149}, "tables.1.bins", "Top-1"),
    ("step", {"data.samples": 601}, "tables.0.bins.0.weight", ""),
    ("step", {f"{BIN}.count": 151, f"{BIN}.weight": None}, "tables.0.bins", "601"),
    ("step", {"tables.0.effective_counts": [151.0] * 4}, "", ""),
    ("step", {"selective.1.threshold": 0.1}, "", "float32"),
    ("step", {"selective.1.max_risk": 0.05}, "selective", "max_risk"),
    ("step", {"selective.1.max_risk": 1e-10}, "", ">= 1e-09"),
    ("step", {"selective.1.delta": 1e-10}, "", ">= 1e-09"),
    ("step", {"tables.0.interval.level": 1 - 1e-10}, "", "<= 0.999999999"),
    ("step", {"tables.0.prior.strength": 2e6}, "", "<= 1000000"),
    ("step", {"tables.0.prior.extra": 1}, "", "no such key"),
    ("step", {"model.preprocessing": {"extra": 1}}, "model.preprocessing.extra", "no such key"),
    ("step", {"data.texts": {"": ["a"]}}, "", "invalid key: expected `str` of length >= 1"),
    ("step", {"data.texts": {"c": ["a", ""]}}, "data.texts[...].1", "`str` of length >= 1"),
    ("step", {"tables.0.measure": "supplied:a-b"}, "", "supplied:<name>"),
    ("step", {f"{BIN}.interval": ["x" * 3000]}, f"{BIN}.interval.0", "float"),
    ("step", {"top_k": [1] * (2**20 + 1)}, "document", "at most"),
    ("outputs", {"tables.0.measure": "gradient_norm"}, "", "ONNX"),
    ("outputs", {**serving("energy"), **OF_SHARES}, "tables.0.measure", "logits"),
    ("outputs", serving("score"), "tables.0.measure", "'pairs'"),
    ("outputs", {"data.kind": "pairs"}, "tables.0.measure", "'score'"),
    ("outputs", {f"{BIN}.mean_uncertainty": -99.0}, "", "interpolated"),
    ("outputs", TOP_2, "out_of_distribution.threshold", "null"),
    ("smooth", {"schema": "howsure.bins/1"}, "", "'howsure.bins/2'"),
    ("smooth", {"tables.0.curve": None}, "", "'smooth'"),
    ("smooth", {"tables.0.lookup": "step"}, "tables.0.curve", "'smooth'"),
    ("smooth", {"tables.0.curve.lower.0": -0.1}, "tables.0.curve", "lower"),
    ("smooth", {"tables.0.learned": None}, "", "'learned'"),
    ("smooth", {"tables.1.learned": FORMULA}, "", "'learned'"),
    ("smooth", {"tables.0.learned.k": 2}, "", "1"),
    ("smooth", {"tables.0.learned.temperature": 99}, "", "23"),
    ("smooth", OF_9_CLASSES, "", "10 classes"),
    ("smooth", {"tables.0.learned.intercept": 1e300}, "tables.0.learned", "1e+30"),
]


@pytest.mark.parametrize(("document", "changes", "location", "word"), BROKEN_RULES)
def test_one_rule_is_broken(document, changes, location, word) -> None:
    # The digest is the last rule, so it need not be that of the change.
    (violation,) = refusal(changed(DOCUMENTS[document], put(changes), sign=False)).violations
    place = place_of(location or next(iter(changes)))
    assert violation.location == (place if location == "document" else f"document.{place}")
    assert word in violation.message


def test_the_digest_is_required() -> None:
    unsigned = {key: value for key, value in STEP.items() if key != "content_sha256"}
    (violation,) = refusal(unsigned).violations
    assert violation.location == "document.content_sha256"
    assert violation.message == "this key is missing"


CONTENT_CHANGES = [
    ("step", {"classes.0": "nought"}, True),
    ("step", {f"{BIN}.probability": 0.9991, f"{BIN}.odds_ratio": None}, True),
    ("step", {"tables.0.prior.degenerate": True}, True),
    ("smooth", {"tables.0.curve.lower.0": 0.5}, True),
    ("smooth", {"tables.0.learned.slope.2": 0.25}, True),
    # Not names, nor numbers that follow from others.
    ("step", {"calibration.name": "plain"}, False),
    ("step", {f"{BIN}.weight": None}, False),
]


@pytest.mark.parametrize(("document", "changes", "is_content"), CONTENT_CHANGES)
def test_content_that_was_changed_is_noticed(document, changes, is_content) -> None:
    unsigned = changed(DOCUMENTS[document], put(changes), sign=False)
    if is_content:
        (violation,) = refusal(unsigned).violations
        assert violation.location == "document.content_sha256"
    else:
        assert read(unsigned).content_sha256 == DOCUMENTS[document]["content_sha256"]


NO_DOCUMENTS = {
    "cut off": (b"{", MalformedRequest),
    "nested": (b'{"schema":' + b"[" * 100_000, MalformedRequest),
    "NaN": (b'{"schema": {"a": NaN}}', MalformedRequest),
    "only a schema": (b'{"schema": "howsure.bins/1"}', InvalidInput),
}


@pytest.mark.parametrize(("content", "refused"), NO_DOCUMENTS.values(), ids=NO_DOCUMENTS)
def test_what_is_no_document(content, refused) -> None:
    with pytest.raises(refused) as caught:
        read_bins_document(content)
    assert (type(caught.value), bool(caught.value.violations)) == (refused, True)


BODIES = [
    (b"{", "application/json", 400),
    (b"[]", "application/json", 422),
    (b"{}", "text/csv", 415),
    (b" " * (8 * 1024**2 + 1), "application/json", 413),
]


@pytest.mark.parametrize(("content", "media_type", "status"), BODIES)
def test_bodies_that_are_refused(client, content: bytes, media_type: str, status: int) -> None:
    headers = {"Content-Type": media_type}
    answer = client.post("/calibrations/import", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]


TOP_4 = {"top_k": [1, 4], "serve": {"1": "entropy", "4": "entropy"}, "tables.1.event": 4}


@pytest.fixture(scope="module")
def of_model(client) -> Document:
    """A document of a model that no other test has."""
    config = {"name": "stored", "lookup": "step", "top_k": [1, 5], "measures": ["entropy"]}
    model = linear(weights(seed=31)).SerializeToString()
    made = calibrated(client, config, model=model, calibration=inputs_set(200))
    return exported(client, made["id"])


OTHER_MODELS = [
    ({"model_sha256": "0123456789abcdef" * 4}, "", "0123456789abcdef" * 4),
    ({"model.members": ["0" * 64]}, "", ""),
    ({"model.companions": {"w.bin": "0" * 64}}, "", ""),
    ({"model.outputs.0.name": "other"}, "model.outputs", ""),
    ({"model.averaged": True}, "", ""),
    ({"classes": [*"abcdefghijk"]}, "", "10"),
    (TOP_4, "", "[1, 5]"),
    (serving("dropout_variance"), "serve.1", "dropout_variance"),
    (serving("output:other"), "serve.1", "output:other"),
]


@pytest.mark.parametrize(("changes", "location", "word"), OTHER_MODELS)
def test_what_the_stored_model_does_not_give(client, of_model, changes, location, word) -> None:
    answer = client.post("/calibrations/import", json=changed(of_model, put(changes)))
    missing = "model_sha256" in changes
    assert answer.status_code == (httpx.codes.NOT_FOUND if missing else 422), answer.text
    (violation,) = answer.json()["errors"]
    assert violation["location"] == f"document.{location or next(iter(changes))}"
    assert word in violation["message"]
    (only,) = client.get("/calibrations", params={"name": "stored"}).json()["calibrations"]
    assert only["id"] == of_model["calibration"]["id"]
