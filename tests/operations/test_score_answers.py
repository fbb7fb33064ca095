"""Calibrations without a model are answered in threads, of which there are only so many."""

import threading

import numpy as np
import pytest
from job_workspaces import calibrate, ended, logits_set, wait_for, working, workspace_on
from oip_service import in_json, infer, oip_service_on
from predictor import predictor_of
from runner_children import wait_until
from running_service import calibrate as calibrate_by

from service.errors import DeadlineExceeded, Overloaded

NAME = "calibration"
LOGITS = [[0.1, 0.2, 0.3]]


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        job = calibrate(made, logits_set())
        with working(made):
            assert wait_for(made, job, ended).status == "succeeded"
        yield made


@pytest.fixture
def predictor(workspace):
    with predictor_of(workspace) as predictor:
        yield predictor


def test_who_finds_no_place_is_refused_and_the_others_are_answered(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    until = threading.Event()
    for _ in range(3):  # two have a thread, one waits
        predictor.hold_lane(until)
    asked = [predictor.begin(NAME, LOGITS, kind="logits") for _ in range(5)]
    assert wait_until(lambda: sum(found.done() for found in asked) == 4)
    refused = [found.exception() for found in asked if found.done()]
    assert [type(error) for error in refused] == [Overloaded] * 4
    (patient,) = [found for found in asked if not found.done()]
    until.set()
    assert patient.result(30) == expected


def test_the_time_is_kept_while_it_waits_for_a_thread(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    until = threading.Event()
    for _ in range(2):
        predictor.hold_lane(until)
    late = predictor.begin(NAME, LOGITS, kind="logits", timeout=0.1)
    patient = predictor.begin(NAME, LOGITS, kind="logits")
    with pytest.raises(DeadlineExceeded):
        late.result(30)
    assert not patient.done()
    until.set()
    assert patient.result(30) == expected


def test_what_it_was_asked_is_in_the_statistics(tmp_path) -> None:
    with oip_service_on(tmp_path) as (client, _):
        made = calibrate_by(client, calibration=logits_set(), config='{"name": "outputs"}')
        assert made.json()["status"] == "succeeded", made.text
        rows = np.float32(LOGITS * 3)
        assert infer(client, "outputs", {"inputs": [in_json("logits", rows)]}).is_success
        assert infer(client, "outputs", {"inputs": [in_json("other", rows)]}).is_client_error
        (found,) = client.get("/v2/models/outputs/stats").json()["model_stats"]
    assert (found["inference_count"], found["execution_count"]) == (3, 1)
    assert found["inference_stats"]["success"]["count"] == 1
    assert found["inference_stats"]["fail"]["count"] == 1
    spent = [found["inference_stats"][stage]["ns"] for stage in ("queue", "compute_infer")]
    assert found["inference_stats"]["success"]["ns"] == sum(spent) > 0
