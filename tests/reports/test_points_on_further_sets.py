"""What an active operating point accepts of further sets."""

import numpy as np
import pytest
from report_scenarios import activate, of_outputs, outputs, send_set, withdraw


@pytest.mark.parametrize("choice", [{"max_risk": 0.05}, {"coverage": 0.7}], ids=str)
@pytest.mark.parametrize("is_first", [True, False])
def test_an_active_operating_point_is_counted_on_further_sets(client, is_first, choice) -> None:
    """Activated before the set or after it. A share promises nothing, so it disproves nothing."""
    name = f"later-{is_first}-{'-'.join(choice)}"
    wrong = 0.0 if "max_risk" in choice else 1 / 8
    calibrated_on = outputs(1000, seed=33, wrong=wrong)
    made = of_outputs(calibrated_on, selective=[{"max_risk": 0.001}])(client, name)
    arrays = outputs(600, seed=34, wrong=1 / 8)
    if is_first:
        assert activate(client, made["id"], **choice)["warnings"] == []
    send_set(client, name, "december", arrays)
    if not is_first:
        activate(client, made["id"], **choice)
    logits = arrays["logits"]
    body = {"calibration": name, "logits": logits.tolist()}
    answers = client.post("/predict", json=body).json()["predictions"]
    accepted = np.array([one["abstain"]["automatic"] is False for one in answers])
    n_errors = (logits.argmax(axis=1) != arrays["labels"])[accepted].sum()
    report = client.get("/report", params={"calibration": name}).json()
    event = report["evaluations"][0]["events"]["1"]
    if "max_risk" in choice:
        (counts,) = event["accepted"]
        assert (event["disproves"], event["unpromised"]) == (True, None)
    else:
        counts = event["unpromised"]
        assert (event["disproves"], event["accepted"]) == (False, [])
    assert (counts["n_errors"], counts["n_accepted"]) == (n_errors, accepted.sum())
    assert counts["operating_point"] == "automatic"
    assert counts["target"].items() >= choice.items()
    assert counts["risk_interval"][0] < counts["risk"] < counts["risk_interval"][1]
    withdraw(client, name)
    report = client.get("/report", params={"calibration": name}).json()
    event = report["evaluations"][0]["events"]["1"]
    assert (event["accepted"], event["unpromised"]) == ([], None)


def test_a_point_at_a_requested_error_rate_is_counted_once(client) -> None:
    made = of_outputs(outputs(600, seed=35), selective=[{"max_risk": 0.2}])(client, "once")
    activate(client, made["id"], max_risk=0.2)
    send_set(client, "once", "later", outputs(200, seed=36))
    (result,) = client.get("/calibrations/once/evaluations").json()["evaluations"]
    (counts,) = result["result"]["events"]["1"]["accepted"]
    assert counts["n_accepted"] > 0
