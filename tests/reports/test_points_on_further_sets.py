"""What an active operating point accepts of further sets."""

from typing import Any

import numpy as np
import pytest
from bins_documents import answers
from report_scenarios import activate, of_outputs, outputs, send_set, withdraw


@pytest.mark.parametrize("choice", [{"max_risk": 0.05}, {"coverage": 0.7}], ids=str)
@pytest.mark.parametrize("is_first", [True, False])
def test_an_active_operating_point_is_counted_on_further_sets(client, is_first, choice) -> None:
    """Activated before the set or after it. A share promises nothing, so it disproves nothing."""
    name = f"later-{is_first}-{'-'.join(choice)}"
    known = outputs(1000, seed=33, wrong=0.0 if "max_risk" in choice else 1 / 8)
    made = of_outputs(known, selective=[{"max_risk": 0.001}])(client, name)
    arrays = outputs(600, seed=34, wrong=1 / 8)
    if is_first:
        assert activate(client, made["id"], **choice)["warnings"] == []
    send_set(client, name, "december", arrays)
    if not is_first:
        activate(client, made["id"], **choice)
    rows = answers(client, name, logits=arrays["logits"].tolist())
    accepted = np.array([row["abstain"]["automatic"] is False for row in rows])
    n_errors = (arrays["logits"].argmax(axis=1) != arrays["labels"])[accepted].sum()

    def judged() -> dict[str, Any]:
        report = client.get("/report", params={"calibration": name}).json()
        return report["evaluations"][0]["events"]["1"]

    event = judged()
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
    event = judged()
    assert (event["accepted"], event["unpromised"]) == ([], None)


def test_a_point_at_a_requested_error_rate_is_counted_once(client) -> None:
    made = of_outputs(outputs(600, seed=35), selective=[{"max_risk": 0.2}])(client, "once")
    activate(client, made["id"], max_risk=0.2)
    send_set(client, "once", "later", outputs(200, seed=36))
    (result,) = client.get("/calibrations/once/evaluations").json()["evaluations"]
    (counts,) = result["result"]["events"]["1"]["accepted"]
    assert counts["n_accepted"] > 0
