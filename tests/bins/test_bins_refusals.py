"""Invalid bins documents are refused by one rule at one location.

Rules of curves and formulas are in tests/statistics; here each is refused at its place.
"""

import json
import re
from typing import Any

import httpx
import pytest
from bins_documents import EARLIER, Document, changed, exported, put
from job_workspaces import inputs_set
from runner_models import linear, weights
from running_service import calibrated

from service.bins.rules import read_bins_document
from service.errors import InvalidInput, MalformedRequest

CURVE = {
    "uncertainty": [0.25, 0.5, 1.0],
    "probability": [0.9, 0.7, 0.5],
    "lower": [0.8, 0.6, 0.3],
    "upper": [0.95, 0.8, 0.7],
}
FORMULA = (
    {"k": 1, "temperature": 3, "intercept": 0.5, "saturated": 2.0}
    | {"linear": [0.5] * 4, "square": [0.125] * 4, "lower": [-9.0] * 4, "upper": [1.0] * 4}
    | {"offset": [0.25] * 10, "slope": [0.5] * 10, "second": [0.0] * 10}
)
STEP, INTERPOLATED = (case["document"] for case in EARLIER)
OF_LEARNED = {"schema": "howsure.bins/2", "serve.1": "learned", "tables.0.measure": "learned"}
OF_CURVE = {"tables.0.lookup": "smooth", "tables.0.curve": CURVE, "tables.0.learned": FORMULA}
SMOOTH = changed(STEP, put(OF_LEARNED | OF_CURVE))
OUTPUTS = changed(INTERPOLATED, put({"model": None, "model_sha256": None, "data.kind": "logits"}))
DOCUMENTS = {"step": STEP, "smooth": SMOOTH, "outputs": OUTPUTS}
BIN, NEXT = "tables.0.bins.1", "tables.0.bins.2"
HUGE = ["x" * 5_000_000]
OF_SHARES = {"data.kind": "probabilities"}
TOP_2 = {"top_k": [2], "serve": {"2": "margin"}, "tables.0.event": 2}
OF_9_CLASSES = {f"tables.0.learned.{name}": [0.0] * 9 for name in ("offset", "slope", "second")}


def serving(measure: str) -> dict[str, Any]:
    return {"tables.0.measure": measure, "serve.1": measure}


def refusal(document: Document) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        read_bins_document(json.dumps(document).encode())
    return refused.value


def place_of(path: str) -> str:
    """Return a path as a location: ``tables.0.event`` is ``tables[0].event``."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", path)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_without_a_change_they_are_read(name) -> None:
    assert read_bins_document(json.dumps(DOCUMENTS[name]).encode()).plain() == DOCUMENTS[name]


@pytest.mark.parametrize(
    ("document", "changes", "location", "word"),
    [
        # The location is the path of the first change, if it is not named.
        ("step", {"schema": "howsure.bins/2"}, "", "'howsure.bins/1'"),
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
        ("step", {f"{BIN}.count": 10.5}, "", ""),
        ("step", {f"{BIN}.probability": 0.1}, "", "interval"),
        ("step", {f"{BIN}.interval": [0.9, 1.5]}, f"{BIN}.interval.1", "1"),
        ("step", {f"{BIN}.weight": 0.5}, "", "0.25"),
        ("step", {f"{BIN}.odds_ratio": 2.0}, "", "2.0"),
        ("step", {f"{BIN}.lower": 1.0}, "", "1.0"),
        ("step", {"tables.0.bins.3.upper": 99.0}, "", "null"),
        ("step", {f"{BIN}.upper": None, f"{NEXT}.lower": None}, "", "a number"),
        ("step", {f"{BIN}.upper": 0.0, f"{NEXT}.lower": 0.0}, "", "ascend"),
        ("step", {f"{BIN}.upper": 0.1, f"{NEXT}.lower": 0.1}, "", "float32"),
        ("step", {f"{BIN}.probability": 5e-324, f"{BIN}.interval": [0, 1]}, "", "odds"),
        ("step", {f"{BIN}.hits": 149}, "tables.1.bins", "Top-1"),
        ("step", {"tables.0.quantile_bins": 3}, "", ""),
        ("step", {"data.samples": 601}, "tables.0.bins.0.weight", ""),
        ("step", {f"{BIN}.count": 151, f"{BIN}.weight": None}, "tables.0.bins", "601"),
        ("step", {"tables.0.effective_counts": [1.0] * 3}, "", ""),
        ("step", {"tables.0.effective_counts": [151.0] * 4}, "", ""),
        ("step", {"out_of_distribution.threshold": 0.1}, "", "float32"),
        ("step", {"selective.1.threshold": 0.1}, "", "float32"),
        ("step", {"selective.1.max_risk": 0.05}, "selective", "max_risk"),
        ("step", {"tables.0.interval.method": "guess"}, "", ""),
        ("step", {"tables.0.prior.accuracy": 1.0}, "", "below 1"),
        ("step", {"model.passes": [{"measure": "dropout_variance"}]}, "", ""),
        ("step", {"tables": []}, "", "1 to 5000"),
        ("step", {"tables": [{}] * 5001}, "", "1 to 5000"),
        ("step", {"tables.0": 7}, "", "an object"),
        ("step", {"tables.0.extra": 1}, "", ""),
        ("step", {f"{BIN}.interval": ["x" * 3000]}, BIN, "2048"),
        ("step", {"tables.0.prior": "x" * 20_000}, "tables.0", "16384"),
        ("step", {"classes": HUGE}, "", "4194304"),
        ("step", {"serve": {str(k): "entropy" for k in range(30_000)}}, "document", "at most"),
        ("outputs", {"tables.0.measure": "gradient_norm"}, "", "ONNX"),
        ("outputs", {**serving("energy"), **OF_SHARES}, "tables.0.measure", "logits"),
        ("outputs", {f"{BIN}.mean_uncertainty": -99.0}, "", "interpolated"),
        ("outputs", TOP_2, "out_of_distribution.threshold", "null"),
        ("smooth", {"schema": "howsure.bins/1"}, "", "'howsure.bins/2'"),
        ("smooth", {"tables.0.curve": None}, "", "'smooth'"),
        ("smooth", {"tables.0.lookup": "step"}, "tables.0.curve", "'smooth'"),
        ("smooth", {"tables.0.curve.extra": 1}, "", ""),
        ("smooth", {"tables.0.curve.uncertainty": []}, "", "1 to 98"),
        ("smooth", {"tables.0.curve.lower.0": -0.1}, "tables.0.curve", "lower"),
        ("smooth", {"tables.0.learned": None}, "", "'learned'"),
        ("smooth", {"tables.1.learned": FORMULA}, "", "'learned'"),
        ("smooth", {"tables.0.learned.k": 2}, "", "1"),
        ("smooth", {"tables.0.learned.temperature": 24}, "", "24"),
        ("smooth", {"tables.0.learned.square": [0.0] * 5}, "", "4"),
        ("smooth", OF_9_CLASSES, "", "10 classes"),
        ("smooth", {"tables.0.learned.intercept": 1e300}, "tables.0.learned", "1e+30"),
        ("smooth", {"tables.0.learned.offset": HUGE}, "tables.0.learned", "4194304"),
    ],
)
def test_one_rule_is_broken(document, changes, location, word) -> None:
    # The digest is the last rule, so it need not be that of the change.
    (violation,) = refusal(changed(DOCUMENTS[document], put(changes), sign=False)).violations
    place = place_of(location or next(iter(changes)))
    assert violation.location == (place if location == "document" else f"document.{place}")
    assert word in violation.message


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        ("step", {"classes.0": "nought"}),
        ("step", {f"{BIN}.probability": 0.9991, f"{BIN}.odds_ratio": None}),
        ("step", {"tables.0.prior.degenerate": True}),
        ("step", {"content_sha256": "0" * 64}),
        ("smooth", {"tables.0.curve.lower.0": 0.5}),
        ("smooth", {"tables.0.learned.slope.2": 0.25}),
    ],
)
def test_content_that_was_changed_is_noticed(document, changes) -> None:
    (violation,) = refusal(changed(DOCUMENTS[document], put(changes), sign=False)).violations
    assert violation.location == "document.content_sha256"


def test_what_is_no_content_may_change() -> None:
    """The digest does not cover names, nor numbers that follow from others."""
    for changes in ({f"{BIN}.weight": None}, {"calibration": {"name": "plain"}}):
        document = changed(STEP, put(changes), sign=False)
        read = read_bins_document(json.dumps(document).encode())
        assert read.content_sha256 == STEP["content_sha256"]


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (b"{", MalformedRequest),
        (b'{"schema":' + b"[" * 100_000, MalformedRequest),
        (b'{"schema": {"a": NaN}}', MalformedRequest),
        (b"[]", InvalidInput),
        (b'{"schema": "howsure.bins/1"}', InvalidInput),
    ],
    ids=["cut off", "nested", "NaN", "a list", "only a schema"],
)
def test_what_is_no_document(content, refused) -> None:
    with pytest.raises(refused) as caught:
        read_bins_document(content)
    assert type(caught.value) is refused
    assert caught.value.violations


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 422),
        (b"{}", "text/csv", 415),
        (b" " * (8 * 1024**2 + 1), "application/json", 413),
    ],
)
def test_bodies_that_are_refused(client, content: bytes, media_type: str, status: int) -> None:
    headers = {"Content-Type": media_type}
    answer = client.post("/calibrations/import", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]


MODEL = linear(weights(seed=31)).SerializeToString()


@pytest.fixture(scope="module")
def of_model(client) -> Document:
    """A document of a model that no other test has."""
    config = {"name": "stored", "lookup": "step", "top_k": [1, 5], "measures": ["entropy"]}
    made = calibrated(client, config, model=MODEL, calibration=inputs_set(200))
    return exported(client, made["id"])


@pytest.mark.parametrize(
    ("changes", "location", "word"),
    [
        ({"model_sha256": "0123456789abcdef" * 4}, "", "0123456789abcdef" * 4),
        ({"model.members": ["0" * 64]}, "", ""),
        ({"model.companions": {"w.bin": "0" * 64}}, "", ""),
        ({"model.outputs.0.name": "other"}, "model.outputs", ""),
        ({"model.averaged": True}, "", ""),
        ({"classes": [*"abcdefghijk"]}, "", "10"),
        ({"top_k": [1, 4], "serve": {"1": "entropy", "4": "entropy"}}, "", "[1, 5]"),
        (serving("dropout_variance"), "serve.1", "dropout_variance"),
        (serving("output:other"), "serve.1", "output:other"),
    ],
)
def test_what_the_stored_model_does_not_give(client, of_model, changes, location, word) -> None:
    if "top_k" in changes:
        changes = changes | {"tables.1.event": 4}
    before = client.get("/calibrations", params={"name": "stored"}).json()["calibrations"]
    answer = client.post("/calibrations/import", json=changed(of_model, put(changes)))
    missing = "model_sha256" in changes
    assert answer.status_code == (httpx.codes.NOT_FOUND if missing else 422), answer.text
    (violation,) = answer.json()["errors"]
    assert violation["location"] == f"document.{location or next(iter(changes))}"
    assert word in violation["message"]
    after = client.get("/calibrations", params={"name": "stored"}).json()["calibrations"]
    assert after == before
