"""Real networks on real images, where a copy of the data lies beside the checkout."""

import httpx
import numpy as np
import pytest
import scipy
from fashion_mnist import DATA, REQUIRES_DATA, images_and_labels, logits_of
from running_service import calibrated

pytestmark = REQUIRES_DATA


def report_on(client: httpx.Client, name: str, model: str, sets: str = "_float32") -> dict:
    """Calibrate a network with ten bins and return the report."""
    made = calibrated(
        client,
        {"name": name, "bins": 10},
        full=True,
        model=(DATA / model).read_bytes(),
        calibration=(DATA / f"calibration{sets}.npz").read_bytes(),
        evaluation=(DATA / f"evaluation{sets}.npz").read_bytes(),
    )
    return client.get("/report", params={"calibration": made["id"]}).json()


@pytest.fixture(scope="module")
def plain(client) -> dict:
    return report_on(client, "fashion", "model.onnx")


def served_scores(report: dict, k: str) -> dict:
    event = report["events"][k]
    return event["measures"][event["served"]]["evaluation"]


def tables(report: dict) -> dict:
    return {
        (k, measure): found["bins"]
        for k, event in report["events"].items()
        for measure, found in event["measures"].items()
    }


def test_accuracy_is_that_of_the_data_sheet(plain) -> None:
    assert plain["events"]["1"]["accuracy"] == pytest.approx(0.9202, abs=0.0005)
    assert plain["events"]["5"]["accuracy"] == pytest.approx(0.9996, abs=0.0005)


def test_served_probability_is_calibrated(plain) -> None:
    assert served_scores(plain, "1")["ece"] < 0.010


def test_overconfident_model_is_mended(client) -> None:
    report = report_on(client, "overconfident", "model_overconfident.onnx")

    raw = report["events"]["1"]["baselines"]["raw_softmax"]["evaluation"]
    assert raw["ece_15"] == pytest.approx(0.063, abs=0.0005)
    # The report clips baselines to [1/(2n), 1 - 1/(2n)] before taking logarithms.
    assert raw["nll"] == pytest.approx(raw_nll(clip=1 / 10_000), abs=0.0001)
    assert raw_nll(clip=0.0) == pytest.approx(0.3298, abs=0.0001)
    assert raw["brier"] == pytest.approx(0.0934, abs=0.0001)
    served = served_scores(report, "1")
    assert served["ece"] < 0.02
    assert served["nll"] <= 0.275
    assert served["brier"] <= 0.0868


def raw_nll(*, clip: float) -> float:
    """The negative log-likelihood of the model's own confidence, by ONNX Runtime and numpy."""
    images, labels = images_and_labels("evaluation")
    logits = logits_of("model_overconfident", images)
    log_p = scipy.special.log_softmax(logits.astype(np.float64), axis=1)
    top = np.clip(np.exp(log_p.max(axis=1)), clip, 1 - max(clip, 1e-16))
    right = log_p.argmax(axis=1) == labels
    return float(-np.where(right, np.log(top), np.log1p(-top)).mean())


def test_uint8_model_gives_the_same_tables(client, plain) -> None:
    found = tables(report_on(client, "uint8", "model_uint8.onnx", sets=""))
    expected = tables(plain)
    assert found.keys() == expected.keys()
    for (k, measure), bins in found.items():
        # Folds, on which the learned measure depends, depend on the bytes of the rows.
        if measure != "learned":
            assert bins == expected[k, measure]


@pytest.mark.usefixtures("plain")
def test_alone_or_in_a_batch(client) -> None:
    images, _ = images_and_labels("evaluation")

    def ask(rows: np.ndarray) -> list[dict]:
        body = {"calibration": "fashion", "inputs": rows.tolist()}
        answer = client.post("/predict", json=body)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()["predictions"]

    batched = [p for start in range(0, 5000, 256) for p in ask(images[start : start + 256])]
    alone = [ask(images[i : i + 1])[0] for i in range(5000)]

    for one, many in zip(alone, batched, strict=True):
        assert one["class"] == many["class"]
        for event in ("top1", "top5"):
            for field in ("bin", "measure"):
                assert one[event][field] == many[event][field]
            # The last bits of an uncertainty move along the curve.
            for field in ("probability", "interval"):
                assert one[event][field] == pytest.approx(many[event][field], abs=1e-6)
            assert one[event]["uncertainty"] == pytest.approx(many[event]["uncertainty"], rel=1e-6)
