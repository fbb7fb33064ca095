"""What a refit leaves out stays as it was, also within a block of its configuration."""

import httpx
import pytest
from keyed_service import logits_of
from running_service import calibrate


@pytest.fixture(scope="module")
def before(client: httpx.Client) -> dict:
    config = '{"name": "first", "interval": {"level": 0.9}, "ood": {"level": 0.8}}'
    return calibrate(client, calibration=logits_of(), config=config).json()


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"ood": {}}, {}),
        ({"interval": {}}, {}),
        (
            {"interval": {"method": "wilson"}},
            {"interval": {"method": "wilson", "level": 0.9, "simultaneous": False}},
        ),
        (
            {"selective": [{"max_risk": 0.1}]},
            {"selective": [{"max_risk": 0.1, "delta": 0.05}]},
        ),
        ({"top_k": None}, {}),
        ({"serve": {}, "bins": 3}, {"bins": 3}),
    ],
)
def test_a_refit_answers_as_it_says(client, before: dict, changes: dict, changed: dict) -> None:
    answer = client.post(
        f"/calibrations/{before['id']}/refit", json=changes, headers={"Prefer": "wait=60"}
    )

    made = answer.json()
    assert made["status"] == "succeeded", made
    kept = before["config"] | {"serve": made["config"]["serve"]}
    assert made["config"] == kept | changed
    body = {"calibration": made["id"], "logits": [[3.0, 0.0, 0.0]]}
    assert client.post("/predict", json=body).status_code == httpx.codes.OK
    parts = [("evaluation", ("e.csv", logits_of())), ("name", (None, "again"))]
    path = f"/calibrations/{made['id']}/evaluations"
    further = client.post(path, files=parts, headers={"Prefer": "wait=60"})
    assert further.json()["status"] == "succeeded", further.text
