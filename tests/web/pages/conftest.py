"""One service for the tests of pages, whose calibrations have names that look like markup."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from keyed_service import KeyedService, keyed_service
from model_services import HOSTILE, calibrate_pictures, packed_set
from page_visitor import Visitor
from running_service import calibrated, evaluate, npz, refit

SCRIPT = "<script>alert(1)</script>"
CLASSES = [SCRIPT, "=1+1", "\u202eabc &amp;", *"3456789"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    """Run a service without keys.

    ``digits@1`` takes pictures and has everything that a report shows, ``digits@2`` has one bin.
    ``scores`` has no model and takes an uncertainty of the client, ``warned`` has shifted labels,
    ``moved`` is imported.
    """
    with keyed_service(tmp_path_factory.mktemp("pages"), first=False) as found:
        client = found.client()
        calibrate_pictures(
            client,
            name="digits",
            classes=CLASSES,
            measures=["entropy", "margin", "last_layer_dropout_variance", f"output:{HOSTILE}"],
            serve={"5": f"output:{HOSTILE}"},
            top_k=[1, 5],
            bins=6,
            folds=4,
            evaluation=packed_set("evaluation"),
        )
        further = evaluate(client, "digits", SCRIPT, packed_set("evaluation"))
        assert further.json()["status"] == "succeeded", further.text
        assert refit(client, "digits@1", bins=1).json()["status"] == "succeeded"
        calibrate_scores(client)
        calibrate_with_shifted_labels(client)
        document = client.get("/calibrations/digits@1/bins").json()
        moved = client.post("/calibrations/import", params={"name": "moved"}, json=document)
        assert moved.status_code == httpx.codes.CREATED, moved.text
        yield found


def calibrate_scores(client: httpx.Client) -> None:
    """Calibrate more rows than a shard holds, every tenth with a random label."""
    rng = np.random.default_rng(5)
    logits = (rng.normal(size=(9000, 3)) * 3).astype(np.float32)
    labels = np.where(rng.random(9000) < 0.1, rng.integers(0, 3, 9000), logits.argmax(axis=1))
    own = rng.random(9000) + 0.5 * (labels != logits.argmax(axis=1))
    content = npz(logits=logits, labels=labels, uncertainty_own=own)
    config = {"name": "scores", "classes": CLASSES[:3], "top_k": [1, 2], "bins": 10}
    config |= {"measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}}
    calibrated(client, config, calibration=content)


def calibrate_with_shifted_labels(client: httpx.Client) -> None:
    """Calibrate labels that are one too large, modulo the number of classes."""
    labels = np.arange(300) % 3
    logits = (4.0 * np.eye(3)[labels]).astype(np.float32)
    logits += np.random.default_rng(3).normal(size=logits.shape).astype(np.float32)
    calibrated(client, {"name": "warned"}, calibration=npz(logits=logits, labels=(labels + 1) % 3))


@pytest.fixture
def visitor(service: KeyedService) -> Visitor:
    return Visitor(service)
