"""A refit keeps omitted options, also within a block of the configuration."""

import sqlite3
from hashlib import sha256

import httpx
import numpy as np
import pytest
from keyed_service import logits_of
from running_service import calibrated, npz, refit


@pytest.fixture(scope="module")
def before(client: httpx.Client) -> dict:
    config = {"name": "first", "interval": {"level": 0.9}, "ood": {"level": 0.8}}
    return calibrated(client, config, calibration=logits_of())


WILSON = {"method": "wilson", "level": 0.9, "simultaneous": False}


CHANGES = [
    ({"ood": {}}, {}),
    ({"interval": {}}, {}),
    ({"interval": {"method": "wilson"}}, {"interval": WILSON}),
    ({"selective": [{"max_risk": 0.1}]}, {"selective": [{"max_risk": 0.1, "delta": 0.05}]}),
    ({"top_k": None}, {}),
    ({"serve": {}, "bins": 3}, {"bins": 3}),
]


@pytest.mark.parametrize(("changes", "changed"), CHANGES)
def test_a_refit_has_the_configuration_that_it_says(client, before, changes, changed) -> None:
    made = refit(client, before["id"], **changes).json()
    assert made["status"] == "succeeded", made
    assert made["config"] == before["config"] | {"serve": made["config"]["serve"]} | changed
    body = {"calibration": made["id"], "logits": [[3.0, 0.0, 0.0]]}
    assert client.post("/predict", json=body).status_code == httpx.codes.OK


def test_a_measure_that_older_records_lack_is_named(client, service) -> None:
    config = {"name": "before-margin", "measures": ["entropy"]}
    made = calibrated(client, config, calibration=logits_of())
    (path,) = (path for path in service.folder.rglob("*records*") if made["id"] in str(path))
    with np.load(path) as archive:
        content = npz(**{name: archive[name] for name in archive if "margin" not in name})
    path.write_bytes(content)
    with sqlite3.connect(service.folder / "howsure.sqlite3") as database:
        values = sha256(content).hexdigest(), len(content), f"%{made['id']}%{path.name}"
        database.execute("UPDATE artifact SET sha256 = ?, size = ? WHERE key LIKE ?", values)
    error = refit(client, made["id"], measures=["margin"]).json()["error"]
    assert [one["location"] for one in error["errors"]] == ["config.measures"], error
    assert "must hold margin" in error["detail"]
