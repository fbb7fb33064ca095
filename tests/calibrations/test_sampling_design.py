"""Weights and groups of a set, from the file to the report: CSV, Parquet and .npz."""

import json

import httpx
import numpy as np
import pytest
from bins_documents import changed, content_digest, exported
from dataset_files import write_parquet
from running_service import calibrate, calibrated, npz

rng = np.random.default_rng(21)
ROWS = 400
LOGITS = rng.normal(size=(ROWS, 3)) * 2
LABELS = np.where(rng.random(ROWS) < 0.75, LOGITS.argmax(1), rng.integers(0, 3, ROWS))
WEIGHTS = rng.choice([1.0, 3.0], ROWS)
GROUPS = rng.integers(0, 80, ROWS)
CONFIG = {"top_k": [1], "measures": ["entropy"], "bins": 4, "lookup": "step"}


def columns(**others) -> dict:
    return {f"logit_{k}": LOGITS[:, k] for k in range(3)} | {"label": LABELS} | others


def csv(**others) -> bytes:
    table = columns(**others)
    rows = zip(*(values.tolist() for values in table.values()), strict=True)
    return "\n".join([",".join(table), *(",".join(map(str, row)) for row in rows)]).encode()


def written(file_format: str, tmp_path, **others) -> bytes:
    if file_format == "csv":
        return csv(**others)
    if file_format == "parquet":
        write_parquet(tmp_path / "set.parquet", columns(**others))
        return (tmp_path / "set.parquet").read_bytes()
    return npz(logits=LOGITS, labels=LABELS, **others)


def table_of(client, calibration: dict) -> dict:
    report = client.get("/report", params={"calibration": calibration["id"]}).json()
    return report["events"]["1"]["measures"]["entropy"]


@pytest.mark.parametrize("file_format", ["csv", "parquet", "npz"])
def test_weights_reach_the_bins_and_the_report(client, tmp_path, file_format) -> None:
    content = written(file_format, tmp_path, weight=WEIGHTS)
    found = calibrated(client, CONFIG, calibration=content)

    assert found["data"]["design"] == ["weight"]
    hits = LOGITS.argmax(1) == LABELS
    assert found["accuracy"]["1"] == pytest.approx(WEIGHTS @ hits / WEIGHTS.sum())
    assert any("Samples have weights" in warning for warning in found["warnings"])
    table = table_of(client, found)
    effective = table["effective"]
    assert sum(effective["shares"]) == pytest.approx(1.0)
    assert effective["size"] == pytest.approx(WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum())
    for place, bin_ in enumerate(table["bins"]):
        count = effective["counts"][place]
        rate = (count * effective["hit_rates"][place] + found["accuracy"]["1"]) / (count + 1.0)
        assert bin_["probability"] == pytest.approx(rate)
        assert count < bin_["count"]
    assert sum(bin_["hits"] for bin_ in table["bins"]) == hits.sum()


@pytest.mark.parametrize(
    ("file_format", "groups"),
    [
        ("csv", GROUPS),
        ("csv", np.array([f"patient {g}" for g in GROUPS])),
        ("parquet", np.array([f"patient {g}" for g in GROUPS])),
        ("parquet", GROUPS),
        ("npz", GROUPS),
    ],
)
def test_groups_of_any_name_widen_intervals(client, tmp_path, file_format, groups) -> None:
    content = written(file_format, tmp_path, group=groups)
    found = calibrated(client, CONFIG, calibration=content)

    assert found["data"]["design"] == ["group"]
    assert any("80 groups" in warning for warning in found["warnings"])
    table = table_of(client, found)
    assert all(
        effective <= bin_["count"]
        for effective, bin_ in zip(table["effective"]["counts"], table["bins"], strict=True)
    )


@pytest.mark.parametrize("lookup", ["step", "smooth"])
def test_effective_samples_are_exported_and_imported(client, lookup) -> None:
    found = calibrated(client, CONFIG | {"lookup": lookup}, calibration=csv(weight=WEIGHTS))
    effective = table_of(client, found)["effective"]["counts"]
    document = exported(client, found["id"])
    assert document["schema"] == "howsure.bins/2"
    assert document["tables"][0]["effective_counts"] == effective
    assert document["content_sha256"] == content_digest(document)
    address = f"/calibrations/{found['id']}/bins"
    lines = client.get(address, params={"format": "csv"}).text.splitlines()
    assert lines[0].endswith(",effective_count")
    assert [float(line.rpartition(",")[2]) for line in lines[1:]] == effective

    moved = client.post("/calibrations/import", params={"name": "moved"}, json=document)
    assert moved.status_code == httpx.codes.CREATED, moved.text
    again = exported(client, moved.json()["id"])
    assert again["tables"] == document["tables"]
    assert table_of(client, moved.json())["effective"] == {"counts": effective}

    page = client.get("/report", params={"calibration": moved.json()["id"], "format": "html"}).text
    assert "Effective" in page
    for place, count in enumerate(effective):
        path = f"/events/1/measures/entropy/effective/counts/{place}"
        assert f'data-path="{path}" data-value="{json.dumps(count)}"' in page


@pytest.mark.parametrize(
    "counts", [[9.0, 9.0], [9.0, 9.0, 0.0, 9.0], [9.0, 9.0, 1e6, 9.0], [9.0, "x", 9.0, 9.0]]
)
def test_wrong_effective_samples_are_refused(client, counts) -> None:
    found = calibrated(client, CONFIG, calibration=csv(weight=WEIGHTS))

    def change(document) -> None:
        document["tables"][0]["effective_counts"] = counts

    document = changed(exported(client, found["id"]), change)
    answer = client.post("/calibrations/import", json=document)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "tables[0].effective_counts" in answer.json()["errors"][0]["location"]


def test_a_refit_keeps_the_weights(client) -> None:
    source = calibrated(client, CONFIG, calibration=csv(weight=WEIGHTS))
    url = f"/calibrations/{source['id']}/refit"
    answer = client.post(url, json={"bins": 2}, headers={"Prefer": "wait=60"})
    assert answer.is_success, answer.text
    refit = answer.json()
    assert refit["status"] == "succeeded", refit["error"]
    assert table_of(client, refit)["effective"]["counts"]


@pytest.mark.parametrize(
    ("column", "values", "location", "message"),
    [
        ("weight", np.where(np.arange(ROWS) == 7, 0.0, 1.0), "weight[7]", "positive weight"),
        ("weight", np.where(np.arange(ROWS) == 7, -1.0, 1.0), "weight[7]", "positive weight"),
        ("weight", np.where(np.arange(ROWS) == 7, np.nan, 1.0), "weight[7]", "positive weight"),
        ("weight", np.ones((ROWS, 2)), "weight", "one number per sample"),
        ("group", np.ones(ROWS), "group", "one integer per sample"),
    ],
)
def test_a_bad_design_is_one_clear_problem(client, column, values, location, message) -> None:
    content = npz(logits=LOGITS, labels=LABELS, **{column: values})
    answer = calibrate(client, calibration=content, config=json.dumps(CONFIG))
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = answer.json()["errors"]
    assert error["location"] == f"calibration.{location}"
    assert message in error["message"]


def test_text_that_is_no_weight_is_refused(client) -> None:
    content = csv(weight=np.array(["heavy"] * ROWS))
    answer = calibrate(client, calibration=content, config=json.dumps(CONFIG))
    assert answer.json()["errors"][0]["location"] == "calibration.weight[0]"


def test_a_bin_that_one_weight_fills_fails_with_the_fix(client) -> None:
    weights = np.where(np.arange(ROWS) == 5, 1e6, 1.0)
    answer = calibrate(
        client,
        calibration=npz(logits=LOGITS, labels=LABELS, weight=weights),
        config=json.dumps(CONFIG),
        headers={"Prefer": "wait=60"},
    )
    found = answer.json()
    assert found["status"] == "failed"
    assert "effective samples" in found["error"]["detail"]
    assert "config.bins" in found["error"]["detail"]
