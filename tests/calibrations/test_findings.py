"""Findings are reported, refused if configured, and found again by a refit."""

import json
import shlex

import httpx
import numpy as np
import pandas as pd
import pytest
import scipy
from colour_pictures import IMAGENET, colour_model, colour_set, zip_of
from faulty_uploads import with_factor
from refusals import assert_refused
from remedy_lines import followed
from running_service import (
    DIGITS,
    calibrate,
    calibrated,
    codes,
    digits,
    dry_run,
    kept_files,
    npz,
    quick_config,
    refit,
)

from howsure.remedies import remedy_of


def logits_set(n_samples=400, *, added=0):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(n_samples, 10)) * 6
    noisy = logits + rng.gumbel(size=logits.shape)
    return npz(logits=logits, labels=(noisy.argmax(axis=1) + added) % 10)


def with_shifted_labels(client, **config):
    text = quick_config(name="f", **config)
    return calibrate(client, calibration=logits_set(added=1), config=text).json()


def test_findings_are_told_in_resource_report_and_markdown(client):
    resource = with_shifted_labels(client, strict=["duplicate-samples", "softmax-twice"])
    assert resource["status"] == "succeeded", "other findings are not strict"
    assert codes(resource) == ["labels-shifted", "accuracy-near-chance"]
    (shifted, _) = resource["findings"]
    assert shifted["level"] == "warning"
    assert shifted["figures"]["offset"] == -1
    assert shifted["docs"] == "docs/findings.md#labels-shifted"
    report = {"calibration": resource["id"]}
    assert client.get("/report", params=report).json()["findings"] == resource["findings"]
    text = client.get("/report", params=report | {"format": "markdown"}).text
    assert "- **warning**, `labels-shifted`: " in text


def test_what_records_show_fails_a_strict_calibration(client):
    resource = with_shifted_labels(client, strict=["labels-shifted"])
    assert resource["status"] == "failed"
    error = resource["error"]
    assert error["type"] == "urn:howsure:problem:finding-refused"
    assert error["errors"][0]["location"] == "findings.labels-shifted"
    body = {"calibration": resource["id"], "logits": [[0.0] * 10]}
    assert client.post("/predict", json=body).status_code == httpx.codes.CONFLICT


def test_what_the_labels_show_is_refused_at_once(service):
    before = kept_files(service.folder)
    config = quick_config(bins=50, strict=True, name="never")
    response = calibrate(service.client, calibration=logits_set(), config=config)
    assert_refused(response, "findings.few-samples-for-bins", "50 bins share 400")
    assert response.json()["type"] == "urn:howsure:problem:finding-refused"
    assert kept_files(service.folder) == before
    assert service.client.get("/calibrations/never").status_code == httpx.codes.NOT_FOUND


def test_a_refit_finds_anew_and_keeps_what_no_record_tells(client):
    with np.load(DIGITS / "calibration.npz") as raw:
        content = npz(inputs=raw["inputs"].astype(np.float32) * 15, labels=raw["labels"])
    model = with_factor(digits("model.onnx"), 16.0)  # of inputs from 0 to 1
    first = calibrated(client, {"name": "small", "bins": 50}, model=model, calibration=content)
    assert codes(first) == ["inputs-not-scaled", "few-samples-for-bins"]
    second = refit(client, first["id"], bins=5).json()
    assert second["status"] == "succeeded"
    assert second["findings"] == first["findings"][:1]


def test_a_dry_run_keeps_nothing(service):
    client, key = service.client, {"Idempotency-Key": "dry", "Prefer": "wait=5"}
    before, rows = kept_files(service.folder), client.get("/calibrations").json()["calibrations"]
    parts = {"model": digits("model.onnx"), "evaluation": digits("evaluation.npz")}
    content = digits("calibration.npz")
    response = dry_run(client, content, key, name="tried", bins=40, **parts)
    assert response.status_code == httpx.codes.OK, response.text
    tried = response.json()
    assert codes(tried) == ["few-samples-for-bins"]
    accuracy = tried["accuracy"]
    assert accuracy["n_samples"] == 256
    lower, upper = accuracy["interval"]
    assert 0.85 < lower < accuracy["value"] < upper < 1.0
    cost = tried["cost"]
    assert (cost["samples"], cost["rows"], cost["passes"], cost["device"]) == (1200, 1200, 1, "cpu")
    assert cost["seconds"] == pytest.approx(1.2 * cost["ms_per_row"])
    assert cost["stored_bytes"]["model"] == len(parts["model"])
    assert cost["stored_bytes"]["sets"] == 1200 * (64 + 8)
    assert (tried["data"]["samples"], tried["model"]["classes"]) == (600, 10)
    assert tried["config"]["name"] == "tried"
    assert kept_files(service.folder) == before
    assert client.get("/calibrations").json()["calibrations"] == rows
    assert "Location" not in response.headers
    # Neither name nor key was taken.
    config = quick_config(name="tried")
    again = calibrate(client, calibration=logits_set(), config=config, headers=key)
    assert again.status_code == httpx.codes.CREATED
    assert again.json()["version"] == 1


def test_a_dry_run_tells_how_many_bytes_records_take(service):
    cost = dry_run(service.client, logits_set()).json()["cost"]
    assert cost["passes"] == 0
    assert cost["seconds"] is None
    made = calibrated(service.client, calibration=logits_set())
    files = [path for path in kept_files(service.folder) if made["id"] in path]
    (stored,) = [path for path in files if "record" in path]
    size = (service.folder / stored).stat().st_size
    assert cost["stored_bytes"]["records"] == pytest.approx(size, rel=0.1)


def test_a_dry_run_reads_to_the_last_row(client):
    rows = np.random.default_rng(2).normal(size=(9000, 3))
    rows[8999, 1] = np.nan
    response = dry_run(client, npz(logits=rows, labels=np.zeros(9000, dtype=np.int64)))
    assert_refused(response, "calibration.logits[8999][1]")


def test_a_dry_run_of_a_sorted_set_looks_at_all_of_it(client):
    """Its first class alone is confused with the next: the first 256 samples would look shifted."""
    labels = np.repeat(np.arange(10), 300)
    logits = np.random.default_rng(3).normal(size=(3000, 10)) * 2
    logits[np.arange(3000), np.where(labels == 0, 1, labels)] += 9
    assert codes(dry_run(client, npz(logits=logits, labels=labels)).json()) == []


# Which findings there are is decided in tests/statistics/findings; below, remedies are followed.
PIXELS, LABELS = colour_set(300)


def tried(client, model, content, **config):
    """Return what a dry run says, and its findings about the set."""
    resource = dry_run(client, content, model=model, **config).raise_for_status().json()
    return resource, resource["findings"]


def test_the_remedy_of_a_preprocessing_that_lacks_mean_and_std(client):
    mean, std = (values[::-1] for values in IMAGENET)
    model, content = colour_model(mean, std, step=-1), zip_of(PIXELS, LABELS)
    bare = {"scale": 1.0, "colour": "bgr"}
    made, (finding, *_) = tried(client, model, content, preprocessing=bare)
    assert finding["figures"]["mean"] == [*mean]
    command, option = remedy_of(finding, made).code.split(" --preprocessing ")
    assert command.startswith("howsure calibrate ")
    (mended,) = (json.loads(word) for word in shlex.split(option))
    assert tried(client, model, content, preprocessing=mended)[1] == []


def test_names_in_another_order_are_mended_by_the_remedy(client):
    """Folders are numbered by their names, whatever the order of the model."""
    names = ["ash", "fir", "bay", "oak", "yew"]
    content, model = zip_of(PIXELS, LABELS, names=names), colour_model(*IMAGENET)
    preprocessing = {"scale": 1 / 255, "mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]}
    made, (finding, *_) = tried(client, model, content, preprocessing=preprocessing)
    assert finding["code"] == "labels-permuted"
    assert "label 1 (bay) seems to mean class 2" in finding["message"]
    class_map = json.loads(shlex.split(remedy_of(finding, made).code)[-1])
    assert class_map == {name: index for index, name in enumerate(names)}
    config = {"class_map": class_map, "preprocessing": preprocessing}
    assert tried(client, model, content, **config)[1] == []


CLASSES = ["oak", "ash", "fir", "bay", "yew"]


ORDERS = [("names", sorted(CLASSES), "prob_"), ("positions", [*CLASSES[1:], "oak"], "p_")]


@pytest.mark.parametrize(("labels_are", "order", "prefix"), ORDERS)
def test_columns_and_labels_in_different_orders_are_mended(client, labels_are, order, prefix):
    """Columns have the names of classes; labels follow another order, or use other names."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(250, 5))
    right = np.argmax(scores + rng.normal(size=scores.shape) * 0.4, axis=1)
    table = pd.DataFrame(scipy.special.softmax(2 * scores, axis=1))
    if labels_are == "names":
        table.columns, labels = order, pd.Series(np.array(CLASSES)[right])
    else:
        table.columns, labels = CLASSES, pd.Series([order.index(CLASSES[of]) for of in right])

    def doubts(labels, **config):
        sent = table.add_prefix(prefix).assign(label=labels).to_csv(index=False).encode()
        resource, findings = tried(client, None, sent, **config)
        return resource, [one for one in findings if one["code"].startswith("labels-")]

    before, (finding, *_) = doubts(labels)
    remedy = remedy_of(finding, before).code
    if labels_are == "names":
        after, left = doubts(followed(remedy, labels=labels)["labels"])
    else:
        after, left = doubts(labels, classes=json.loads(shlex.split(remedy)[-1]))
    assert left == []
    assert after["accuracy"]["value"] == np.mean(right == scores.argmax(axis=1))
