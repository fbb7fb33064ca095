"""A refit keeps omitted options, also within a block of the configuration."""

import httpx
import pytest
from keyed_service import logits_of
from running_service import calibrated, evaluate, refit


@pytest.fixture(scope="module")
def before(client: httpx.Client) -> dict:
    config = '{"name": "first", "interval": {"level": 0.9}, "ood": {"level": 0.8}}'
    return calibrated(client, config, calibration=logits_of())


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
    made = refit(client, before["id"], **changes).json()
    assert made["status"] == "succeeded", made
    kept = before["config"] | {"serve": made["config"]["serve"]}
    assert made["config"] == kept | changed
    body = {"calibration": made["id"], "logits": [[3.0, 0.0, 0.0]]}
    assert client.post("/predict", json=body).status_code == httpx.codes.OK
    further = evaluate(client, made["id"], "again", logits_of())
    assert further.json()["status"] == "succeeded", further.text
