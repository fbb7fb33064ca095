"""A real network on real images, where a copy of the data lies beside the checkout."""

import pytest
from fashion_mnist import DATA, REQUIRES_DATA
from running_service import calibrated

pytestmark = REQUIRES_DATA


def test_accuracy_is_that_of_the_data_sheet_and_probability_is_calibrated(client) -> None:
    sets = ("calibration", "evaluation")
    parts = {name: (DATA / f"{name}_float32.npz").read_bytes() for name in sets}
    parts["model"] = (DATA / "model.onnx").read_bytes()
    made = calibrated(client, {"name": "fashion", "bins": 10}, full=True, **parts)
    report = client.get("/report", params={"calibration": made["id"]}).json()
    assert report["events"]["1"]["accuracy"] == pytest.approx(0.9202, abs=0.0005)
    assert report["events"]["5"]["accuracy"] == pytest.approx(0.9996, abs=0.0005)
    event = report["events"]["1"]
    assert event["measures"][event["served"]]["evaluation"]["ece"] < 0.010
