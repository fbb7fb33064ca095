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
from keyed_service import logits_of
from running_service import calibrated

PATH = "/calibrations/digits@1/bins"
STEPS = {"lookup": "step", "measures": ["entropy", "margin"]}


@pytest.fixture(scope="module")
def document(client, digits_calibration) -> dict:
    """The document of a calibration with all that is fitted by default."""
    return exported(client, "digits@1")


@pytest.fixture(scope="module")
def parquet(client, document) -> pa_parquet.ParquetFile:
    content = client.get(PATH, params={"format": "parquet"}).raise_for_status().content
    return pa_parquet.read_table(io.BytesIO(content))


def flat(document: dict, columns: list[str]) -> list[dict]:
    """Return the rows of the flat table that the document stands for."""
    digests = {n: document[n] for n in ("model_sha256", "data_sha256", "content_sha256")}
    rows = []
    for table in document["tables"]:
        about = {k: v for k, v in table.items() if k not in ("interval", "prior", "bins")}
        for part in ("interval", "prior"):
            about |= {f"{part}_{key}": value for key, value in table[part].items()}
        for index, row in enumerate(table["bins"]):
            lower, upper = row["interval"]
            own = {"bin": index, "interval_lower": lower, "interval_upper": upper}
            values = about | digests | row | own | {"effective_count": None}
            rows.append({name: values[name] for name in columns})
    return rows


def keys_of(document: dict) -> dict[str, list[str]]:
    """Return the keys of each kind of object, in their order."""
    kinds = {"document": document} | ({"model": document["model"]} if document["model"] else {})
    for table in document["tables"]:
        further = [name for name in ("curve", "label_model") if name in table]
        kinds[" ".join(["table", *further])] = table
        kinds |= {name: table[name] for name in ("interval", "prior", *further)}
        kinds["bin"] = table["bins"][0]
    return {kind: list(found) for kind, found in kinds.items()}


def test_keys_columns_and_types(document, parquet, golden) -> None:
    """Their order too is promised: columns are added behind the last."""
    lines = [f"{kind}: {' '.join(keys)}" for kind, keys in keys_of(document).items()]
    lines += [f"column {field.name}: {field.type}" for field in parquet.schema]
    golden("bins_document.txt", "\n".join(lines))


@pytest.mark.parametrize(("config", "schema"), [(STEPS | {"measures": ["learned"]}, 2), (STEPS, 1)])
def test_the_schema_is_the_first_without_curves_and_formulas(client, document, config, schema):
    made = calibrated(client, {"name": "schema"} | config, calibration=logits_of())
    other = exported(client, made["id"])
    assert (other["model_sha256"], other["model"]) == (None, None)
    assert other["schema"] == f"howsure.bins/{schema}"
    assert other["content_sha256"] == content_digest(other) != document["content_sha256"]
    known = keys_of(document)
    assert all(known.get(kind, keys) == keys for kind, keys in keys_of(other).items())
    for table in other["tables"]:
        assert ("curve" in table) == (config.get("lookup", "smooth") == "smooth")
        assert ("label_model" in table) == (table["measure"] == "learned")


def test_the_document_says_what_the_resource_and_the_report_say(
    client, document, digits_calibration
) -> None:
    resource, config = digits_calibration, digits_calibration["config"]
    report = client.get("/report", params={"calibration": "digits@1"}).json()
    assert document["calibration"] == {n: resource[n] for n in ("id", "name", "version")}
    assert document["model_sha256"] == resource["model"]["sha256"]
    assert document["data_sha256"] == resource["data"]["sha256"]
    ranges = resource["data"]["input_ranges"]
    assert document["data"] == {"samples": 600, "kind": "inputs", "input_ranges": ranges}
    assert [document[n] for n in ("classes", "top_k")] == [config["classes"], config["top_k"]]
    assert document["serve"] == resource["serve"]
    top1 = report["events"]["1"]["measures"][resource["serve"]["1"]]
    threshold = top1["ood_thresholds"]["0.99"]
    assert document["out_of_distribution"] == {"level": 0.99, "threshold": threshold}
    for ours, theirs in zip(document["selective"], top1["selective"], strict=True):
        assert ours == {name: (theirs | theirs["target"])[name] for name in ours}
    for table in document["tables"]:
        theirs = report["events"][str(table["event"])]["measures"][table["measure"]]
        for key in ("lookup", "monotone", "requested_bins", "quantile_bins", "bins"):
            assert table[key] == theirs[key]


def test_parquet_is_the_flat_table_with_types(document, parquet) -> None:
    assert parquet.to_pylist() == flat(document, parquet.column_names)
    metadata = parquet.schema.metadata
    for name in ("schema", "content_sha256"):
        assert metadata[f"howsure.{name}".encode()].decode() == document[name]
    shared = {key: value for key, value in document.items() if key != "tables"}
    assert json.loads(metadata[b"howsure.document"]) == shared


def test_csv_is_the_flat_table(client, document, parquet) -> None:
    text = client.get(PATH, headers={"Accept": "text/csv"}).text
    lines = list(csv.DictReader(io.StringIO(text)))
    assert text.partition("\n")[0].split(",") == parquet.column_names
    for line, row in zip(lines, flat(document, parquet.column_names), strict=True):
        for field in parquet.schema:
            if str(field.type) in ("float", "double"):
                assert (float(line[field.name]) if line[field.name] else None) == row[field.name]
            else:
                assert line[field.name] == str(row[field.name])


def test_the_digest_is_the_entity_tag_of_each_format(client, document) -> None:
    tag = f'W/"{document["content_sha256"]}"'
    for bins_format in ("json", "csv", "parquet"):
        params = {"format": bins_format}
        answer = client.get(PATH, params=params)
        assert (answer.headers["etag"], answer.headers["vary"]) == (tag, "Accept")
        # The same by negotiation.
        accept = {"Accept": f"{answer.headers['content-type']}, text/html;q=0.5"}
        assert client.get(PATH, headers=accept).content == answer.content
        for known, status in ((tag, 304), (f'"other", {tag}', 304), ("*", 304), ('"other"', 200)):
            again = client.get(PATH, params=params, headers={"If-None-Match": known})
            assert (again.status_code, again.headers["etag"]) == (status, tag)
            assert bool(again.content) == (status == httpx.codes.OK)


def test_every_key_and_column_is_documented(document, parquet) -> None:
    text = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
    _, _, behind = text.partition("## `GET /calibrations/{calibration_id}/bins`")
    section, _, _ = behind.partition("\n## ")
    words = set(re.findall(r"`([a-z0-9_.]+)`", section))
    keys = keys_of(document)
    promised = {key for kind, names in keys.items() if kind != "model" for key in names}
    promised |= {*parquet.column_names, "effective_counts"}
    assert promised <= {word.rpartition(".")[2] for word in words}
