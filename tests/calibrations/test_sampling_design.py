"""Weights and groups of a set, from the file to the report: CSV, Parquet and .npz."""

import json

import httpx
import numpy as np
import pandas as pd
import pytest
from bins_documents import content_digest, exported
from dataset_files import check_refused, output_columns
from running_service import calibrate, calibrated, npz, refit

rng = np.random.default_rng(21)
ROWS = 400
LOGITS = rng.normal(size=(ROWS, 3)) * 2
LABELS = np.where(rng.random(ROWS) < 0.75, LOGITS.argmax(1), rng.integers(0, 3, ROWS))
WEIGHTS = rng.choice([1.0, 3.0], ROWS)
GROUPS = rng.integers(0, 80, ROWS)
PATIENTS = np.array([f"patient {group}" for group in GROUPS])
CONFIG = {"bins": 4, "lookup": "step"}


def table(**others) -> pd.DataFrame:
    return pd.DataFrame(output_columns(LOGITS, LABELS) | others)


def csv(**others) -> bytes:
    return table(**others).to_csv(index=False).encode()


def arrays(**others) -> bytes:
    return npz(logits=LOGITS, labels=LABELS, **others)


FORMATS = {"csv": csv, "parquet": lambda **more: table(**more).to_parquet(), "npz": arrays}


def table_of(client, calibration: dict) -> dict:
    report = client.get("/report", params={"calibration": calibration["id"]}).json()
    return report["events"]["1"]["measures"]["margin"]


@pytest.mark.parametrize("file_format", FORMATS)
def test_weights_reach_the_bins_and_the_report(client, file_format) -> None:
    made = calibrated(client, CONFIG, calibration=FORMATS[file_format](weight=WEIGHTS))
    assert made["data"]["design"] == ["weight"]
    hits = LOGITS.argmax(1) == LABELS
    assert made["accuracy"]["1"] == pytest.approx(WEIGHTS @ hits / WEIGHTS.sum())
    assert any("weights" in warning for warning in made["warnings"])
    table = table_of(client, made)
    effective = table["effective"]
    assert sum(effective["shares"]) == pytest.approx(1.0)
    assert 0 < effective["size"] < ROWS
    for row, count in zip(table["bins"], effective["counts"], strict=True):
        assert count < row["count"]
    assert sum(row["hits"] for row in table["bins"]) == hits.sum()


GROUPED = [("csv", GROUPS), ("csv", PATIENTS), ("parquet", PATIENTS), ("npz", GROUPS)]


@pytest.mark.parametrize(("file_format", "groups"), GROUPED)
def test_groups_of_any_name_widen_intervals(client, file_format, groups) -> None:
    made = calibrated(client, CONFIG, calibration=FORMATS[file_format](group=groups))
    assert made["data"]["design"] == ["group"]
    assert any("80 groups" in warning for warning in made["warnings"])
    table = table_of(client, made)
    assert all(
        effective <= row["count"]
        for effective, row in zip(table["effective"]["counts"], table["bins"], strict=True)
    )


@pytest.mark.parametrize("lookup", ["step", "smooth"])
def test_effective_samples_are_exported_and_imported(client, lookup) -> None:
    config = CONFIG | {"lookup": lookup}
    made = calibrated(client, config, calibration=csv(weight=WEIGHTS))
    effective = table_of(client, made)["effective"]["counts"]
    document = exported(client, made["id"])
    assert document["schema"] == "howsure.bins/2"
    assert document["tables"][0]["effective_counts"] == effective
    assert document["content_sha256"] == content_digest(document)
    address = f"/calibrations/{made['id']}/bins"
    lines = client.get(address, params={"format": "csv"}).text.splitlines()
    assert lines[0].endswith(",effective_count")
    assert [float(line.rpartition(",")[2]) for line in lines[1:]] == effective

    moved = client.post("/calibrations/import", params={"name": "moved"}, json=document)
    assert moved.status_code == httpx.codes.CREATED, moved.text
    assert exported(client, moved.json()["id"])["tables"] == document["tables"]
    assert table_of(client, moved.json())["effective"]["counts"] == effective
    page = client.get("/report", params={"calibration": moved.json()["id"], "format": "html"}).text
    for place, count in enumerate(effective):
        path = f"/events/1/measures/margin/effective/counts/{place}"
        assert f'data-path="{path}" data-value="{json.dumps(count)}"' in page


def test_a_refit_keeps_the_weights(client) -> None:
    weighted = calibrated(client, CONFIG, calibration=csv(weight=WEIGHTS))
    second = refit(client, weighted["id"], bins=2).json()
    assert second["status"] == "succeeded", second["error"]
    assert table_of(client, second)["effective"]["counts"]


def at_row_7(weight: float) -> np.ndarray:
    return np.where(np.arange(ROWS) == 7, weight, 1.0)


BAD_DESIGNS = [
    (arrays(weight=at_row_7(0.0)), "weight[7]"),
    (arrays(weight=at_row_7(-1.0)), "weight[7]"),
    (arrays(weight=at_row_7(np.nan)), "weight[7]"),
    (arrays(weight=np.ones((ROWS, 2))), "weight"),
    (arrays(group=np.ones(ROWS)), "group"),
    (csv(weight=np.array(["heavy"] * ROWS)), "weight[0]"),
]


@pytest.mark.parametrize(("content", "location"), BAD_DESIGNS)
def test_a_bad_design_is_one_clear_problem(tmp_path, content, location) -> None:
    (tmp_path / "set").write_bytes(content)
    check_refused(tmp_path / "set", f".{location}", "")


def test_a_bin_that_one_weight_fills_fails_with_the_fix(client) -> None:
    weights = np.where(np.arange(ROWS) == 5, 1e6, 1.0)
    made = calibrate(client, calibration=arrays(weight=weights), config=json.dumps(CONFIG)).json()
    assert made["status"] == "failed"
    assert "effective samples" in made["error"]["detail"]
    assert "config.bins" in made["error"]["detail"]
