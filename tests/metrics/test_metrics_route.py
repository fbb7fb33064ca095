"""`GET /metrics` counts what clients saw."""

import re
from pathlib import Path

import httpx
import numpy as np
import pytest
from job_workspaces import logits_set
from runner_children import wait_until
from running_service import DIGITS, Growth, Scraped, calibrate, scrape, service_on

from service.metrics.answers import AnswerCounts

N_ROWS = 300
DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
PREDICT = {"method": "POST", "route": "/predict"}

AN_HOUR_SECONDS = 3600


@pytest.fixture
def ask(client, digits_calibration):
    rows = np.load(DIGITS / "evaluation.npz")["inputs"][:N_ROWS].astype(float).tolist()

    def post(name: str = "digits") -> httpx.Response:
        return client.post("/predict", json={"calibration": name, "inputs": rows})

    return post


def test_predictions_are_counted_by_bin_and_flag(client, ask, digits_calibration) -> None:
    grown = Growth(client)
    predictions = ask().json()["predictions"]
    of = {"calibration": "digits", "version": "1", "id": digits_calibration["id"]}
    for event in ("top1", "top5"):
        bins = np.bincount([found[event]["bin"] for found in predictions], minlength=10)
        counted = [grown("answers_total", **of, event=event, bin=str(i)) for i in range(len(bins))]
        assert counted == bins.tolist()
    unlike = sum(found["out_of_distribution"] for found in predictions)
    assert grown("out_of_distribution_total", **of) == unlike > 0
    for risk in predictions[0]["abstain"]:
        left = sum(found["abstain"][risk] for found in predictions)
        assert grown("abstain_total", **of, max_risk=risk) == left > 0
    assert grown("predict_rows_total") == grown("calibration_rows_total", **of) == N_ROWS


def test_a_failure_of_the_counts_fails_no_prediction(client, ask, monkeypatch, caplog) -> None:
    """It is logged the first time."""
    expected = ask().content

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(AnswerCounts, "count", fail)
    assert [ask().content for _ in range(2)] == [expected] * 2
    assert caplog.text.count("answers_not_counted") == 1


def test_every_row_is_in_one_batch_that_took_its_time(client, ask) -> None:
    grown = Growth(client)
    ask()
    of = {"operation": "predict"}
    assert grown("batch_rows_sum", **of) == N_ROWS
    assert grown("batch_rows_count", **of) == grown("compute_seconds_count", **of) > 1
    # A request is counted after its response was sent.
    assert wait_until(lambda: grown("request_seconds_count", **PREDICT) == 1)
    assert 0 < grown("compute_seconds_sum", **of) < grown("request_seconds_sum", **PREDICT)
    assert grown("queue_wait_seconds_count", lane="predict") == 1


def routes(client) -> set[str]:
    return {labels["route"] for labels in scrape(client).labels("requests_total")}


def test_requests_are_counted_by_declared_route(client, digits_calibration) -> None:
    client.get("/calibrations/digits")
    client.get(f"/calibrations/{digits_calibration['id']}/bins")
    client.post("/calibrate")
    declared = "/calibrations/{calibration_id}"
    expected = {"/calibrate", declared, f"{declared}/bins"}
    # A request is counted after its response was sent.
    assert wait_until(lambda: routes(client) >= expected)
    before = routes(client) | {"other"}
    for i in range(20):
        assert client.get(f"/nothing-{i}").status_code == httpx.codes.NOT_FOUND
        client.get(f"/calibrations/nobody-{i}")
    assert wait_until(lambda: "other" in routes(client))
    assert routes(client) == before


def test_each_service_counts_its_own_requests_and_jobs(client, tmp_path) -> None:
    grown = Growth(client)
    with service_on(tmp_path, workers=0) as other:
        calibrate(other, calibration=logits_set(), wait=0)
        found = scrape(other)
        for status in ("queued", "running", "succeeded", "failed", "cancelled"):
            assert found("jobs", kind="calibration", status=status) == (status == "queued")
        assert found("database_up") == 1
        assert 0 < found("queue_age_seconds", kind="calibration") < AN_HOUR_SECONDS
        assert found("queue_age_seconds", kind="evaluation") == 0
        assert found("predict_rows_total") == 0
        assert wait_until(lambda: routes(other) == {"/calibrate", "/metrics"})
    calibrated = {"method": "POST", "route": "/calibrate", "status": "202"}
    assert grown("requests_total", **calibrated) == 0


def test_every_metric_is_documented_with_its_labels(client, ask) -> None:
    ask()
    ask("nobody")
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "_created" not in answer.text
    found = Scraped(answer.text)
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name: family
        for family in found.families
        if family.name.startswith("howsure_")
    }
    table = re.findall(
        r"^\| `(howsure_\w+)` \|([^|]*)\|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(name for name, _ in table) == sorted(families)
    for name, labels in table:
        for sample in families[name].samples:
            documented = set(re.findall(r"`(\w+)`", labels))
            assert sample.labels.keys() - {"le"} == documented, name
        assert families[name].documentation
