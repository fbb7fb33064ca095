"""Invalid bins documents are refused by one rule at one location."""

from collections.abc import Callable

import httpx
import pytest
from bins_documents import Document, changed, exported
from running_service import calibrated, digits, refit

UNPROCESSABLE = httpx.codes.UNPROCESSABLE_ENTITY


@pytest.fixture(scope="module")
def document(client, digits_calibration) -> Document:
    """A document of step tables, without anything learned."""
    steps = {"lookup": "step", "measures": ["entropy", "neg_log_pmax", "margin"], "bins": 10}
    return exported(client, refit(client, "digits@1", **steps).json()["id"])


@pytest.fixture(scope="module")
def smooth(client, digits_calibration) -> Document:
    """A document of smooth tables, the first of which is of the learned measure."""
    return exported(client, digits_calibration["id"])


@pytest.fixture(scope="module")
def outputs(client) -> Document:
    made = calibrated(
        client,
        calibration=digits("calibration_logits.csv"),
        config='{"name": "outputs", "lookup": "interpolated", "measures": ["energy", "margin"]}',
    )
    return exported(client, made["id"])


def put(path: str, value: object, *twins: str) -> Callable[[Document], None]:
    """Return the change that puts a value at a path, such as ``tables.0.event``, and its twins."""

    def change(document: Document) -> None:
        for place in (path, *twins):
            *above, last = [int(part) if part.isdigit() else part for part in place.split(".")]
            found = document
            for part in above:
                found = found[part]
            found[last] = value

    return change


def serve(event: str, measure: str) -> Callable[[Document], None]:
    """Return the change that serves an event by another measure."""

    def change(found: Document) -> None:
        served = next(t for t in found["tables"] if t["event"] == int(event) and t["served"])
        served["measure"] = found["serve"][event] = measure

    return change


def four_for_five(found: Document) -> None:
    """Say Top-4 of what was fitted for Top-5."""
    found["top_k"] = [1, 4]
    found["serve"]["4"] = found["serve"].pop("5")
    for table in found["tables"]:
        table["event"] = min(table["event"], 4)


def refused(client: httpx.Client, document: Document, status: int = UNPROCESSABLE) -> dict:
    """Return the one violation that the document is refused for; nothing is made of it."""
    before = client.get("/calibrations", params={"limit": 200}).json()["calibrations"]
    answer = client.post("/calibrations/import", json=document)
    assert answer.status_code == status, answer.text
    assert client.get("/calibrations", params={"limit": 200}).json()["calibrations"] == before
    (violation,) = answer.json()["errors"]
    return violation


BIN, NEXT_LOWER = "tables.0.bins.1", "tables.0.bins.2.lower"


@pytest.mark.parametrize(
    ("change", "location", "says"),
    [
        (put("schema", "howsure.bins/2"), "schema", "expected 'howsure.bins/1'"),
        (put("schema", "howsure.bins/3"), "schema", "'howsure.bins/1' or 'howsure.bins/2'"),
        (put("extra", 1), "extra", "there is no such key"),
        (put("model_sha256", None), "model", "null"),
        (put("data.kind", "logits"), "data.kind", "'inputs'"),
        (put("calibration.name", "a b"), "calibration.name", "A-Z"),
        (put("tables.0.measure", "surprise"), "tables[0].measure", "unknown measure"),
        (put("tables.0.event", 3), "tables[0].event", "top_k"),
        (put("tables.1.measure", "entropy"), "tables[0].measure", "two tables"),
        (put("tables.0.served", False), "serve", "served table"),
        (put("top_k", [5, 1]), "top_k", "rising"),
        (put("classes", ["a", "b", "c"]), "top_k", "certain"),
        (put(f"{BIN}.hits", 61), f"{BIN}.hits", "at most"),
        (put(f"{BIN}.count", 10.5), f"{BIN}.count", "an integer"),
        (put(f"{BIN}.probability", 0.1), f"{BIN}.probability", "interval"),
        (put(f"{BIN}.interval", [0.9, 1.5]), f"{BIN}.interval[1]", "to 1"),
        (put(f"{BIN}.weight", 0.2), f"{BIN}.weight", "expected 0.1"),
        (put(f"{BIN}.odds_ratio", 2.0), f"{BIN}.odds_ratio", "leave it out"),
        (put(f"{BIN}.lower", 1.0), f"{BIN}.lower", "where the bin before ends"),
        (put("tables.0.bins.9.upper", 99.0), "tables[0].bins[9].upper", "last bin"),
        (put(f"{BIN}.upper", 0.0, NEXT_LOWER), f"{BIN}.upper", "edges must ascend"),
        (put(f"{BIN}.upper", 0.1, NEXT_LOWER), f"{BIN}.upper", "float32"),
        (put("tables.0.requested_bins", 9), "tables[0].quantile_bins", "requested_bins"),
        (put("data.samples", 601), "tables[0].bins[0].weight", "follows"),
        (put("out_of_distribution.threshold", 0.1), "out_of_distribution.threshold", "float32"),
        (put("selective.1.max_risk", 0.05), "selective", "twice"),
        (put("tables.0.interval.method", "guess"), "tables[0].interval.method", "unknown method"),
        (put("tables.0.prior.accuracy", 1.0), "tables[0].prior.accuracy", "below 1"),
        (put("model.outputs.0.name", "other"), "model.outputs", "calibrate that model"),
        (put("model.companions", {"w.bin": "0" * 64}), "model.companions", "external weights"),
        (put("model.passes", [{"measure": "dropout_variance"}]), "model.passes", "plan"),
        (put("classes", [*"abcdefghijk"]), "classes", "expected 10"),
        (put("tables", []), "tables", "a list of 1 to"),
        (put("tables.0.extra", 1), "tables[0].extra", "there is no such key"),
        (put(f"{BIN}.interval", ["x" * 3000]), "tables[0].bins[1]", "at most 2048 bytes"),
        (put("tables.0.prior", "x" * 20_000), "tables[0]", "at most 16384 bytes"),
        (put("classes", ["x" * 5_000_000]), "classes", "at most 4194304 bytes"),
        # What the stored model does not give, or was not prepared for.
        (serve("1", "dropout_variance"), "serve.1", "dropout_variance"),
        (serve("5", "output:other"), "serve.5", "output:other"),
        (four_for_five, "top_k", "[1, 5]"),
    ],
)
def test_one_rule_is_broken(client, document, change, location: str, says: str) -> None:
    found = refused(client, changed(document, change))

    place = location.replace("tables.0.bins.1", "tables[0].bins[1]")
    assert found["location"] == f"document.{place}"
    assert says in found["message"]


CURVE, FORMULA = "tables.0.curve", "tables.0.learned"


def all_at(path: str, *values: object) -> Callable[[Document], None]:
    """Return the change that puts values at the keys of an object, by name and value."""

    def change(found: Document) -> None:
        for name, value in zip(values[::2], values[1::2], strict=True):
            put(f"{path}.{name}", value)(found)

    return change


def without(path: str) -> Callable[[Document], None]:
    """Return the change that removes a key of the first table."""
    return lambda found: found["tables"][0].pop(path)


def shorter(path: str, *names: str) -> Callable[[Document], None]:
    """Return the change that drops the last entry of lists."""

    def change(found: Document) -> None:
        for name in names:
            found["tables"][0][path][name].pop()

    return change


def as_steps(found: Document) -> None:
    """Say that the smooth tables are step tables, but leave a curve."""
    found["tables"][0]["lookup"] = "step"


def formula_of_another(found: Document) -> None:
    """Give the measure of the second table the formula of the first."""
    found["tables"][1]["learned"] = found["tables"][0]["learned"]


@pytest.mark.parametrize(
    ("change", "location", "says"),
    [
        (put("schema", "howsure.bins/1"), "schema", "expected 'howsure.bins/2'"),
        (without("curve"), "curve", "expected a curve with the lookup 'smooth'"),
        (as_steps, "curve", "and with no other"),
        (put(f"{CURVE}.extra", 1), "curve.extra", "there is no such key"),
        (put(f"{CURVE}.uncertainty", []), "curve.uncertainty", "a list of 1 to 98"),
        (put(f"{CURVE}.uncertainty", [0.5] * 99), "curve.uncertainty", "a list of 1 to 98"),
        (shorter("curve", "lower"), "curve", "one value per knot"),
        (put(f"{CURVE}.uncertainty.1", -100.0), "curve", "ascend strictly"),
        (put(f"{CURVE}.uncertainty.0", -100.1), "curve", "float32"),
        (put(f"{CURVE}.lower.0", -0.1), "curve", "0 <= lower <= probability"),
        (put(f"{CURVE}.upper.0", 1.1), "curve", "upper <= 1"),
        (put(f"{CURVE}.probability.0", 0.1), "curve", "lower <= probability"),
        (without("learned"), "learned", "expected a formula with the measure 'learned'"),
        (formula_of_another, "tables[1].learned", "and no other"),
        (put(f"{FORMULA}.extra", 1), "learned.extra", "there is no such key"),
        (put(f"{FORMULA}.k", 2), "learned.k", "expected the event, 1"),
        (put(f"{FORMULA}.k", 0), "learned.k", "at least 1"),
        (put(f"{FORMULA}.temperature", 24), "learned.temperature", "below 24"),
        (shorter("learned", "linear"), "learned.linear", "a list of 4 items"),
        (put(f"{FORMULA}.square", [0.0] * 5), "learned.square", "a list of 4 items"),
        (shorter("learned", "slope"), "learned", "slope must hold finite numbers of shape (10,)"),
        (
            shorter("learned", "offset", "slope", "second"),
            "learned.offset",
            "a number for each of 10 classes",
        ),
        (all_at(FORMULA, "lower", [1.0] * 4, "upper", [0.5] * 4), "learned", "exceed upper"),
        (put(f"{FORMULA}.intercept", 1e300), "learned", "must not exceed 1e+30"),
        (put(f"{FORMULA}.square.0", -1e308), "learned", "must not exceed 1e+30"),
        (put(f"{FORMULA}.offset.3", 1e308), "learned", "must not exceed 1e+30"),
        (put(f"{FORMULA}.offset", ["x" * 5_000_000]), "learned", "at most 4194304 bytes"),
    ],
)
def test_one_rule_of_curves_and_formulas_is_broken(
    client, smooth, change, location: str, says: str
) -> None:
    found = refused(client, changed(smooth, change))

    place = location if location.startswith(("schema", "tables")) else f"tables[0].{location}"
    assert found["location"] == f"document.{place}"
    assert says in found["message"]


@pytest.mark.parametrize("change", [put(f"{CURVE}.lower.0", 0.5), put(f"{FORMULA}.slope.2", 0.25)])
def test_a_curve_or_formula_that_was_changed_is_noticed(client, smooth, change) -> None:
    found = refused(client, changed(smooth, change, sign=False))
    assert found["location"] == "document.content_sha256"


@pytest.mark.parametrize(
    ("change", "location", "says"),
    [
        (put("serve", {str(k): "entropy" for k in range(30_000)}), "document", "expected at most"),
        (put("tables", [{}] * 5001), "document.tables", "a list of 1 to 5000 items"),
    ],
)
def test_sizes_are_bounded(client, document, change, location: str, says: str) -> None:
    found = refused(client, changed(document, change, sign=False))
    assert found["location"] == location
    assert says in found["message"]


@pytest.mark.parametrize(
    "change", [put(f"{BIN}.weight", None), put("calibration", {"name": "plain"})]
)
def test_what_is_no_content_may_change(client, document, change) -> None:
    """The digest does not cover names, nor numbers that follow from others."""
    sent = changed(document, change, sign=False)

    answer = client.post("/calibrations/import", json=sent)

    assert answer.status_code == httpx.codes.CREATED, answer.text


@pytest.mark.parametrize(
    "change",
    [
        put("classes.0", "nought"),
        put(f"{BIN}.probability", 0.9991),
        put("tables.0.prior.degenerate", True),
        put("content_sha256", "0" * 64),
    ],
)
def test_content_that_was_changed_is_noticed(client, document, change) -> None:
    def without_odds(found: Document) -> None:
        for row in found["tables"][0]["bins"]:
            del row["odds_ratio"]
        change(found)

    found = refused(client, changed(document, without_odds, sign=False))

    assert found["location"] == "document.content_sha256"
    assert "changed after it was exported" in found["message"]


def test_a_model_that_is_not_here_is_named(client, document) -> None:
    digest = "0123456789abcdef" * 4
    elsewhere = changed(document, put("model_sha256", digest))
    found = refused(client, elsewhere, status=httpx.codes.NOT_FOUND)
    assert found["location"] == "document.model_sha256"
    assert digest in found["message"]
    assert "POST /calibrate" in found["message"]


@pytest.mark.parametrize(
    ("change", "location", "says"),
    [
        (put("tables.0.measure", "gradient_norm"), "tables[0].measure", "ONNX model"),
        (put("data.kind", "probabilities"), "tables[0].measure", "needs logits"),
        (put("tables.0.bins.1.mean_uncertainty", -99.0), "mean_uncertainty", "interpolated"),
    ],
)
def test_without_a_model(client, outputs, change, location: str, says: str) -> None:
    found = refused(client, changed(outputs, change))

    assert found["location"].endswith(location)
    assert says in found["message"]


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"schema":' + b"[" * 100_000, "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"schema": "howsure.bins/1"}', "application/json", 422),
        (b'{"schema": {"a": NaN}}', "application/json", 400),
        (b"{}", "text/csv", 415),
        (b" " * (8 * 1024**2 + 1), "application/json", 413),
    ],
)
def test_bodies_that_are_no_document(client, content: bytes, media_type: str, status: int) -> None:
    answer = client.post(
        "/calibrations/import", content=content, headers={"Content-Type": media_type}
    )

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]
