"""All formats of the bin tables hold the same numbers to the last bit, under one digest."""

import csv
import io
import json
import re
from pathlib import Path

import httpx
import pyarrow.parquet as pa_parquet
import pytest
from bins_documents import content_digest, exported
from running_service import calibrated, digits, refit

DOCUMENT = [
    *("schema", "content_sha256", "calibration", "model_sha256", "model", "data_sha256", "data"),
    *("classes", "top_k", "serve", "out_of_distribution", "selective", "tables"),
]
TABLE = [
    *("event", "measure", "served", "lookup", "monotone", "requested_bins", "quantile_bins"),
    *("interval", "prior", "bins"),
]
CURVE = ["uncertainty", "probability", "lower", "upper"]
LEARNED = [
    *("k", "temperature", "intercept", "saturated", "linear", "square", "lower", "upper"),
    *("offset", "slope", "second"),
]
BIN = [
    *("lower", "upper", "count", "hits", "weight", "probability", "interval"),
    *("mean_uncertainty", "odds_ratio"),
]
COLUMNS = {
    "event": "int64",
    "measure": "string",
    "served": "bool",
    "bin": "int64",
    "lower": "float",
    "upper": "float",
    "count": "int64",
    "hits": "int64",
    "weight": "double",
    "probability": "double",
    "interval_lower": "double",
    "interval_upper": "double",
    "mean_uncertainty": "double",
    "odds_ratio": "double",
    "lookup": "string",
    "monotone": "bool",
    "requested_bins": "int64",
    "quantile_bins": "int64",
    "interval_method": "string",
    "interval_level": "double",
    "interval_simultaneous": "bool",
    "prior_accuracy": "double",
    "prior_strength": "double",
    "prior_degenerate": "bool",
    "model_sha256": "string",
    "data_sha256": "string",
    "content_sha256": "string",
    "effective_count": "double",
}
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def document(client, digits_calibration) -> dict:
    return exported(client, "digits@1")


def flat(document: dict) -> list[dict]:
    """Return the rows of the flat table that the document stands for."""
    digests = {n: document[n] for n in ("model_sha256", "data_sha256", "content_sha256")}
    rows = []
    for table in document["tables"]:
        about = {key: table[key] for key in TABLE if key not in ("interval", "prior", "bins")}
        about |= {f"interval_{key}": value for key, value in table["interval"].items()}
        about |= {f"prior_{key}": value for key, value in table["prior"].items()}
        for index, found in enumerate(table["bins"]):
            lower, upper = found["interval"]
            row = {key: value for key, value in found.items() if key != "interval"}
            row["effective_count"] = table.get("effective_counts", {index: None})[index]
            row |= {"bin": index, "interval_lower": lower, "interval_upper": upper}
            rows.append({name: (row | about | digests)[name] for name in COLUMNS})
    return rows


def further_keys(table: dict) -> list[str]:
    """Return the keys that a table has only in the second schema."""
    keys = {"curve": table["lookup"] == "smooth", "learned": table["measure"] == "learned"}
    return [key for key, has_it in keys.items() if has_it]


STEPS = {"lookup": "step", "measures": ["entropy", "margin"]}


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({"bins": 3}, "howsure.bins/2"),
        ({"measures": ["margin"]}, "howsure.bins/2"),
        ({"lookup": "step"}, "howsure.bins/2"),
        (STEPS, "howsure.bins/1"),
        (STEPS | {"lookup": "interpolated"}, "howsure.bins/1"),
    ],
)
def test_the_schema_of_json(client, digits_calibration, config: dict, schema: str) -> None:
    made = refit(client, "digits@1", **config).json()
    document = exported(client, made["id"])
    assert list(document) == DOCUMENT
    assert document["schema"] == schema
    assert document["content_sha256"] == content_digest(document)
    assert list(document["model"]) == ["members", "companions", "outputs", "averaged", "passes"]
    for table in document["tables"]:
        assert list(table) == TABLE + further_keys(table)
        if "curve" in table:
            assert list(table["curve"]) == CURVE
        if "learned" in table:
            assert list(table["learned"]) == LEARNED
        assert list(table["interval"]) == ["method", "level", "simultaneous"]
        assert list(table["prior"]) == ["accuracy", "strength", "degenerate"]
        assert all(list(found) == BIN for found in table["bins"])


def test_the_document_says_what_the_resource_and_the_report_say(
    client, document, digits_calibration
) -> None:
    resource = digits_calibration
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    assert document["calibration"] == {n: resource[n] for n in ("id", "name", "version")}
    assert document["model_sha256"] == resource["model"]["sha256"]
    assert document["data_sha256"] == resource["data"]["sha256"]
    ranges = resource["data"]["input_ranges"]
    assert document["data"] == {"samples": 600, "kind": "inputs", "input_ranges": ranges}
    config = resource["config"]
    assert [document[n] for n in ("classes", "top_k")] == [config["classes"], config["top_k"]]
    assert document["serve"] == resource["serve"]
    top1 = report["events"]["1"]["measures"][resource["serve"]["1"]]
    assert document["out_of_distribution"] == {
        "level": 0.99,
        "threshold": top1["ood_thresholds"]["0.99"],
    }
    assert [found["target"] for found in top1["selective"]] == config["selective"]
    known = ("threshold", "coverage", "n_accepted", "n_errors", "labels_missing")
    assert document["selective"] == [
        found["target"] | {name: found[name] for name in known} for found in top1["selective"]
    ]
    for table in document["tables"]:
        theirs = report["events"][str(table["event"])]["measures"][table["measure"]]
        for key in ("lookup", "monotone", "requested_bins", "quantile_bins", "bins"):
            assert table[key] == theirs[key]


def test_csv_is_the_flat_table(client, document) -> None:
    answer = client.get("/calibrations/digits@1/bins", headers={"Accept": "text/csv"})
    lines = list(csv.DictReader(io.StringIO(answer.text)))
    rows = flat(document)

    assert answer.text.partition("\n")[0].split(",") == list(COLUMNS)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for name, kind in COLUMNS.items():
            if kind in ("float", "double"):
                assert (float(line[name]) if line[name] else None) == row[name]
            else:
                assert line[name] == str(row[name])


ACCEPTS = {"headers": {"Accept": f"{PARQUET}, application/json;q=0.5"}}


@pytest.mark.parametrize("asked", [{"params": {"format": "parquet"}}, ACCEPTS])
def test_parquet_is_the_flat_table_with_types(client, document, asked: dict) -> None:
    answer = client.get("/calibrations/digits@1/bins", **asked)
    assert answer.headers["content-type"] == PARQUET
    table = pa_parquet.read_table(io.BytesIO(answer.content))

    assert {field.name: str(field.type) for field in table.schema} == COLUMNS
    assert table.to_pylist() == flat(document)
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert metadata["howsure.schema"] == document["schema"]
    assert metadata["howsure.content_sha256"] == document["content_sha256"]
    shared = {key: value for key, value in document.items() if key != "tables"}
    assert json.loads(metadata["howsure.document"]) == shared


def test_the_digest_is_the_one_that_is_documented(client, document) -> None:
    assert document["content_sha256"] == content_digest(document)
    interpolated = calibrated(
        client,
        calibration=digits("calibration_logits.csv"),
        config='{"name": "other", "lookup": "interpolated", "measures": ["energy", "margin"]}',
    )
    other = exported(client, interpolated["id"])
    assert other["model_sha256"] is None
    assert other["content_sha256"] == content_digest(other) != document["content_sha256"]


@pytest.mark.parametrize("bins_format", ["json", "csv", "parquet"])
def test_the_digest_is_the_entity_tag_of_each_format(client, document, bins_format: str) -> None:
    asked = {"params": {"format": bins_format}}
    answer = client.get("/calibrations/digits@1/bins", **asked)
    tag = answer.headers["etag"]
    assert tag == f'W/"{document["content_sha256"]}"'
    assert answer.headers["vary"] == "Accept"

    for known in (tag, f'"other", {tag}', "*"):
        again = client.get("/calibrations/digits@1/bins", **asked, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (httpx.codes.NOT_MODIFIED, b"")
        assert again.headers["etag"] == tag
    again = client.get("/calibrations/digits@1/bins", **asked, headers={"If-None-Match": '"other"'})
    assert again.status_code == httpx.codes.OK


def test_every_key_and_column_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    _, _, behind = text.partition("## `GET /calibrations/{calibration_id}/bins`")
    section, _, _ = behind.partition("\n## ")
    words = set(re.findall(r"`([a-z0-9_.]+)`", section))
    documented = {word.rpartition(".")[2] for word in words}

    assert documented >= {*DOCUMENT, *TABLE, *BIN, *COLUMNS, *CURVE, *LEARNED, "effective_counts"}
