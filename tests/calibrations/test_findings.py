"""Findings are reported, refused if configured, and found again by a refit."""

import json
import shlex

import httpx
import numpy as np
import pandas as pd
import pytest
import scipy
from colour_pictures import HALVES, IMAGENET, colour_model, colour_set, zip_of
from faulty_uploads import with_factor
from remedy_lines import followed
from running_service import (
    DIGITS,
    QUICK,
    calibrate,
    calibrated,
    digits,
    kept_files,
    npz,
    quick_config,
    refit,
)

from howsure.remedies import remedy_of
from howsure.statistics.findings import FINDINGS


@pytest.fixture(scope="module")
def folder(service):
    return service.folder


def logits_set(n_samples=400, *, added=0):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(n_samples, 10)) * 6
    noisy = logits + rng.gumbel(size=logits.shape)
    return npz(logits=logits, labels=(noisy.argmax(axis=1) + added) % 10)


def asked(client, **config):
    text = quick_config(name="f", **config)
    return calibrate(client, calibration=logits_set(added=1), config=text).json()


def codes(found):
    return [finding["code"] for finding in found["findings"]]


def test_findings_are_told_in_resource_report_and_markdown(client):
    found = asked(client)
    assert codes(found) == ["labels-shifted", "accuracy-near-chance"]
    (shifted, _) = found["findings"]
    assert shifted["level"] == "warning"
    assert shifted["figures"]["offset"] == -1
    assert shifted["docs"] == "docs/findings.md#labels-shifted"
    assert not any("accuracy" in warning for warning in found["warnings"])
    report = {"calibration": found["id"]}
    assert client.get("/report", params=report).json()["findings"] == found["findings"]
    text = client.get("/report", params=report | {"format": "markdown"}).text
    assert "- **warning**, `labels-shifted`: Top-1 accuracy is" in text


@pytest.mark.parametrize("strict", [True, ["labels-shifted"]])
def test_what_records_show_fails_a_strict_calibration(client, strict):
    found = asked(client, strict=strict)
    assert found["status"] == "failed"
    error = found["error"]
    assert error["type"] == "urn:howsure:problem:finding-refused"
    assert error["errors"][0]["location"] == "findings.labels-shifted"
    assert "Top-1 accuracy is" in error["detail"]


def test_a_strict_calibration_minds_what_it_was_told_to(client):
    found = asked(client, strict=["duplicate-samples", "softmax-twice"])
    assert found["status"] == "succeeded"
    assert codes(found) == ["labels-shifted", "accuracy-near-chance"]


def test_what_the_labels_show_is_refused_at_once(client, folder):
    before = kept_files(folder)
    config = quick_config(bins=50, strict=True, name="never")
    answer = calibrate(client, calibration=logits_set(), config=config)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert answer.json()["type"] == "urn:howsure:problem:finding-refused"
    (fault,) = answer.json()["errors"]
    assert fault["location"] == "findings.few-samples-for-bins"
    assert "50 bins share 400 calibration samples" in fault["message"]
    assert kept_files(folder) == before
    assert client.get("/calibrations/never").status_code == httpx.codes.NOT_FOUND


@pytest.mark.parametrize(
    ("strict", "says"),
    [(["labels-shift"], ", ".join(FINDINGS)), ("all", "true or false or a list")],
)
def test_unknown_finding_codes_are_refused(client, strict, says):
    config = quick_config(strict=strict)
    answer = calibrate(client, calibration=logits_set(), config=config)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    faults = answer.json()["errors"]
    assert all(fault["location"].startswith("config.strict") for fault in faults)
    assert says in faults[0]["message"]


def test_a_refit_finds_anew_and_keeps_what_no_record_tells(client):
    with np.load(DIGITS / "calibration.npz") as raw:
        content = npz(inputs=raw["inputs"].astype(np.float32) * 15, labels=raw["labels"])
    model = with_factor(digits("model.onnx"), 16.0)  # of inputs from 0 to 1
    config = quick_config(name="small", bins=50)
    first = calibrated(client, config, model=model, calibration=content)
    assert codes(first) == ["inputs-not-scaled", "few-samples-for-bins"]
    answer = refit(client, first["id"], bins=5)
    assert answer.json()["status"] == "succeeded"
    assert answer.json()["findings"] == first["findings"][:1]


def test_a_dry_run_keeps_nothing(client, folder):
    before, rows = kept_files(folder), client.get("/calibrations").json()["calibrations"]
    files = [
        ("model", ("model.onnx", digits("model.onnx"))),
        ("calibration", ("c.npz", digits("calibration.npz"))),
        ("evaluation", ("e.npz", digits("evaluation.npz"))),
        ("config", (None, json.dumps(QUICK | {"name": "tried", "bins": 40}))),
    ]
    answer = client.post(
        "/calibrate",
        params={"dry_run": True},
        files=files,
        headers={"Idempotency-Key": "k", "Prefer": "wait=5"},
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    found = answer.json()
    assert codes(found) == ["few-samples-for-bins"]
    accuracy = found["accuracy"]
    assert accuracy["n_samples"] == 256
    lower, upper = accuracy["interval"]
    assert 0.85 < lower < accuracy["value"] < upper < 1.0
    cost = found["cost"]
    assert cost["samples"] == cost["rows"] == 1200
    assert cost["passes"] == 1
    assert cost["device"] == "cpu"
    assert cost["seconds"] == pytest.approx(1.2 * cost["ms_per_row"])
    assert cost["stored_bytes"]["model"] == len(digits("model.onnx"))
    assert cost["stored_bytes"]["sets"] == 1200 * (64 + 8)
    assert found["data"]["samples"] == 600
    assert found["model"]["classes"] == 10
    assert found["config"]["name"] == "tried"
    assert kept_files(folder) == before
    assert client.get("/calibrations").json()["calibrations"] == rows
    assert "Location" not in answer.headers
    # Neither name nor key was taken.
    again = client.post("/calibrate", files=files, headers={"Idempotency-Key": "k"})
    assert again.status_code == httpx.codes.ACCEPTED
    assert again.json()["version"] == 1


def dry_run(client, content, *, model=None, **config):
    files = [
        ("calibration", ("c.npz", content)),
        ("config", (None, json.dumps(QUICK | config))),
    ]
    if model is not None:
        files.append(("model", ("model.onnx", model)))
    return client.post("/calibrate", params={"dry_run": True}, files=files)


def test_a_dry_run_tells_how_many_bytes_records_take(client, folder):
    cost = dry_run(client, logits_set()).json()["cost"]
    assert cost["passes"] == 0
    assert cost["seconds"] is None
    made = calibrated(client, QUICK, calibration=logits_set())
    (stored,) = [path for path in kept_files(folder) if made["id"] in path and "record" in path]
    size = (folder / stored).stat().st_size
    assert cost["stored_bytes"]["records"] == pytest.approx(size, rel=0.1)


def test_a_dry_run_reads_to_the_last_row(client):
    rows = np.random.default_rng(2).normal(size=(9000, 3))
    rows[8999, 1] = np.nan
    answer = dry_run(client, npz(logits=rows, labels=np.zeros(9000, dtype=np.int64)))
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert answer.json()["errors"][0]["location"] == "calibration.logits[8999][1]"


def test_a_dry_run_of_a_sorted_set_looks_at_all_of_it(client):
    """Its first class alone is confused with the next: the first 256 samples would look shifted."""
    labels = np.repeat(np.arange(10), 300)
    logits = np.random.default_rng(3).normal(size=(3000, 10)) * 2
    logits[np.arange(3000), np.where(labels == 0, 1, labels)] += 9
    assert codes(dry_run(client, npz(logits=logits, labels=labels)).json()) == []


def colour_findings(client, model, content, **config):
    config = {"name": "colours", "bins": 5, **config}
    found = calibrated(client, quick_config(**config), model=model, calibration=content)
    tried = dry_run(client, content, model=model, **config).json()
    assert codes(tried)[:1] == codes(found)[:1]
    return found["findings"]


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("normalisation", [IMAGENET, HALVES])
@pytest.mark.parametrize("most", [1, 255])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_pictures_that_were_not_normalised(client, sort, normalisation, most, layout):
    pixels, labels = colour_set(1500, sort=sort)
    if layout == "nchw":
        pixels = pixels.transpose(0, 3, 1, 2)
    content = npz(inputs=(pixels / (255 / most)).astype(np.float32), labels=labels)
    model = colour_model(*normalisation, layout=layout)
    found, *_ = colour_findings(client, model, content)  # others may follow from it
    assert found["code"] == "inputs-not-scaled"
    figures, (mean, std) = found["figures"], normalisation
    assert (figures["mean"], figures["std"]) == ([*mean], [*std])
    assert figures["rescaled_accuracy"] > figures["accuracy"] + 0.2
    assert f"mean {[*mean]} and standard deviation {[*std]}" in found["message"]
    right = ((pixels / 255.0 - spread(mean, layout)) / spread(std, layout)).astype(np.float32)
    assert colour_findings(client, model, npz(inputs=right, labels=labels)) == []


def spread(values, layout):
    return np.reshape(values, (3, 1, 1) if layout == "nchw" else (1, 1, 3))


@pytest.mark.parametrize("scale", [1.0, 1 / 255])
@pytest.mark.parametrize("colour", ["rgb", "bgr"])
def test_pictures_whose_preprocessing_lacks_mean_and_std(client, scale, colour):
    """The options in the remedy mend it."""
    pixels, labels = colour_set(1500)
    step = 1 if colour == "rgb" else -1
    mean, std = (values[::step] for values in IMAGENET)
    model = colour_model(mean, std, step=step)
    content = zip_of(pixels, labels)
    asked = {"scale": scale, "colour": colour}
    made = calibrated(
        client, quick_config(bins=5, preprocessing=asked), model=model, calibration=content
    )
    found, *_ = made["findings"]
    assert found["figures"]["mean"] == [*mean]
    _, code = remedy_of(found, made)
    command, option = code.split(" --preprocessing ")
    assert command.startswith("howsure calibrate ")
    (mended,) = (json.loads(word) for word in shlex.split(option))
    assert colour_findings(client, model, content, preprocessing=mended) == []


@pytest.mark.parametrize("most", [1, 255])
def test_models_that_normalise_for_themselves_have_no_finding(client, most):
    pixels, labels = colour_set(1500)
    inputs = (pixels.transpose(0, 3, 1, 2) / (255 / most)).astype(np.float32)
    model = colour_model((0.0,) * 3, (1.0,) * 3, scale=float(most))
    assert colour_findings(client, model, npz(inputs=inputs, labels=labels)) == []


ORDER = np.array([0, 2, 1, 3, 4])


def test_labels_in_another_order_are_mended_by_the_remedy(client):
    pixels, labels = colour_set(1500)
    inputs = (pixels.transpose(0, 3, 1, 2) / 255).astype(np.float32)
    model = colour_model((0.0,) * 3, (1.0,) * 3)
    content, names = npz(inputs=inputs, labels=ORDER[labels]), ["ash", "bay", "fir", "oak", "yew"]
    config = quick_config(bins=5, classes=names)
    made = calibrated(client, config, model=model, calibration=content)
    found, *_ = made["findings"]
    assert found["code"] == "labels-permuted"
    assert (
        "found on the others: label 1 (bay) seems to mean class 2 (fir), label 2 (fir) seems to "
        "mean class 1 (bay). " in found["message"]
    )
    mended = followed(remedy_of(found, made).code, labels=ORDER[labels])["labels"]
    assert np.array_equal(mended, labels)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["ash", "fir", "bay", "oak", "yew"], "labels-permuted"),
        (["yew", "ash", "bay", "fir", "oak"], "labels-shifted"),
    ],
)
def test_names_in_another_order_are_mended_by_the_remedy(client, names, code):
    """Folders are numbered by their names, whatever the order of the model."""
    pixels, labels = colour_set(1500)
    content = zip_of(pixels, labels, names=names)
    model = colour_model(*IMAGENET)
    preprocessing = {"scale": 1 / 255, "mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]}
    config = {"preprocessing": preprocessing}
    made = calibrated(client, quick_config(**config), model=model, calibration=content)
    found, *_ = made["findings"]
    assert found["code"] == code
    class_map = json.loads(shlex.split(remedy_of(found, made).code)[-1])
    assert class_map == {name: index for index, name in enumerate(names)}
    assert colour_findings(client, model, content, class_map=class_map, **config) == []


CLASSES = ["oak", "ash", "fir", "bay", "yew"]


@pytest.mark.parametrize("prefix", ["prob_", "p_"])
@pytest.mark.parametrize("order", [["ash", "bay", "fir", "oak", "yew"], [*CLASSES[1:], "oak"]])
@pytest.mark.parametrize("labels_are", ["names", "positions"])
def test_columns_and_labels_in_different_orders_are_mended_by_the_remedy(
    client, labels_are, order, prefix
):
    """Columns have the names of classes; labels follow another order, or use other names."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1500, 5))
    right = np.argmax(scores + rng.normal(size=scores.shape) * 0.4, axis=1)
    table = pd.DataFrame(scipy.special.softmax(2 * scores, axis=1))
    if labels_are == "names":
        table.columns, labels = order, pd.Series(np.array(CLASSES)[right])
    else:
        table.columns, labels = CLASSES, pd.Series([order.index(CLASSES[of]) for of in right])

    def made(labels, **config):
        sent = table.add_prefix(prefix).assign(label=labels).to_csv(index=False).encode()
        return calibrated(client, quick_config(**config), calibration=sent)

    before = made(labels)
    found, *_ = [one for one in before["findings"] if one["code"].startswith("labels-")]
    (remedy,) = [remedy_of(found, before).code]
    if labels_are == "names":
        after = made(followed(remedy, labels=labels)["labels"])
    else:
        after = made(labels, classes=json.loads(shlex.split(remedy)[-1]))
    assert not [one for one in after["findings"] if one["code"].startswith("labels-")]
    assert after["accuracy"]["1"] == np.mean(right == scores.argmax(axis=1))
