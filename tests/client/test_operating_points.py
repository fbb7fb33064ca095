"""The client previews, activates, withdraws and lists operating points as the service does."""

import json
from dataclasses import asdict

import httpx
import numpy as np
import pytest
from running_service import DIGITS, QUICK

from howsure.client import Client, HowsureError, OperatingPoint

SIGNED = {"author": "A. Reviewer", "reason": "agreed with the clinic"}


@pytest.fixture(scope="module")
def judged(client: Client) -> str:
    """A calibration with an evaluation set and a further set: its ``name@version``."""
    sets = [DIGITS / f"{part}.npz" for part in ("calibration", "evaluation")]
    options = {"evaluation": sets[1], "name": "to-decide", **QUICK}
    with np.load(sets[1]) as archive:
        made = client.calibrate(DIGITS / "model.onnx", sets[0], **options)
        half = {name: values[:300] for name, values in archive.items()}
        client.evaluate(made, half, name="half")
    return made.reference


def test_a_preview_is_that_of_the_service(client, url, judged) -> None:
    address = f"{url}/calibrations/{judged}/operating-points"
    choice = {"max_risk": 0.1, "delta": 0.1, "volume": 10_000}
    preview = client.preview_operating_point(judged, **choice)
    told = httpx.get(f"{address}/preview", params=choice).json()
    assert preview.resource == told
    for name in ("threshold", "measure", "max_risk", "delta", "labels_missing", "out_of_reach"):
        assert getattr(preview, name) == told[name]
    effect, counts = preview.consequences.evaluation, told["consequences"]["evaluation"]
    for name in ("n_samples", "n_accepted", "n_errors", "coverage", "risk", "errors"):
        assert getattr(effect, name) == counts[name]
    assert effect.risk_interval == tuple(counts["risk_interval"])
    by_class = [asdict(one) for one in effect.by_class]
    assert json.loads(json.dumps(by_class)) == counts["by_class"] != []
    expected = preview.expected
    assert expected.accepted + expected.reviewed == pytest.approx(10_000)
    assert expected.errors_interval[0] < expected.errors < expected.errors_interval[1]
    by_coverage = client.preview_operating_point(judged, coverage=np.float32(0.75))
    assert (preview.certified, by_coverage.certified) == (True, False)
    assert by_coverage.expected is None
    assert httpx.get(address).json()["operating_points"] == []


def test_decisions_are_made_listed_and_withdrawn(client, url, judged) -> None:
    calibration = client.refit(judged, bins=4)
    assert client.operating_points(calibration) == []
    with pytest.raises(HowsureError) as refused:
        client.withdraw_operating_point(calibration, **SIGNED)
    assert refused.value.status == 409

    first = client.activate_operating_point(calibration, max_risk=0.1, **SIGNED)
    assert (first.number, first.active, first.name) == (1, True, "automatic")
    assert first.chosen_by == {"max_risk": 0.1, "delta": 0.05}
    assert first.consequences.evaluation.n_samples == 600
    assert first.created_at.tzinfo is not None
    second = client.activate_operating_point(calibration.id, coverage=0.5, name="pilot", **SIGNED)
    with np.load(DIGITS / "evaluation.npz") as archive:
        found = client.predict(calibration, archive["inputs"][:50])
    above = found.top1.uncertainty > second.threshold
    assert 0 < above.sum() < 50
    assert found.abstain["pilot"].tolist() == above.tolist()

    withdrawn = client.withdraw_operating_point(calibration, **SIGNED)
    assert (withdrawn.number, withdrawn.active, withdrawn.threshold) == (3, False, None)
    address = f"{url}/calibrations/{calibration.id}/operating-points"
    raw = httpx.get(address).json()["operating_points"]
    listed = client.operating_points(calibration)
    assert listed == [OperatingPoint.of(resource) for resource in raw]
    assert [point.number for point in listed] == [3, 2, 1]
    assert not any(point.active for point in listed)
    assert {(point.author, point.reason) for point in listed} == {tuple(SIGNED.values())}


def test_an_activation_counts_further_sets(client, judged) -> None:
    made = client.activate_operating_point(judged, threshold=0.5, **SIGNED)
    client.withdraw_operating_point(judged, **SIGNED)
    assert made.consequences.further["half"].n_samples == 300
    assert made.warnings == ()
    assert OperatingPoint.of(made.resource | {"warnings": ["few bins"]}).warnings == ("few bins",)


def test_a_choice_is_one_of_three(client, judged) -> None:
    for choice in ({}, {"max_risk": 0.1, "coverage": 0.5}):
        message = f"max_risk, coverage and threshold, got {len(choice)}"
        with pytest.raises(ValueError, match=message):
            client.preview_operating_point(judged, **choice)
        with pytest.raises(ValueError, match=message):
            client.activate_operating_point(judged, **choice, **SIGNED)
