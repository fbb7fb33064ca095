"""Weights and groups of a set, from the file to the report: CSV, Parquet and .npz."""

import json

import httpx
import numpy as np
import pytest
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
