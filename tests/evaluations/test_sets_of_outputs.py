"""Sets of outputs and pairs that are on another scale, sent twice, or numbered otherwise."""

import httpx
import numpy as np
import pandas as pd
import pytest
import scipy
from running_service import calibrate, calibrated, codes, evaluate, npz, refit

RNG = np.random.default_rng(12)
LOGITS = RNG.normal(size=(300, 4)).astype(np.float32) * 2
LABELS = np.argmax(LOGITS + RNG.gumbel(size=LOGITS.shape), axis=1)
OUTPUTS = npz(logits=LOGITS, labels=LABELS)
PERCENT = 100 * scipy.special.softmax(LOGITS, axis=1)


@pytest.mark.parametrize("rounded", [PERCENT, PERCENT.round(1)], ids=["exact", "rounded"])
def test_percentages_are_no_logits(client, rounded) -> None:
    calibrated(client, {"name": "scale"}, calibration=OUTPUTS)
    further = npz(logits=rounded, labels=LABELS)
    responses = [
        calibrate(client, calibration=further),
        calibrate(client, calibration=OUTPUTS, evaluation=further),
        evaluate(client, "scale", "percent", further),
        client.post("/predict", json={"calibration": "scale", "logits": rounded[:9].tolist()}),
    ]
    for response in responses:
        assert response.status_code == httpx.codes.UNPROCESSABLE_ENTITY, response.text
        assert "got percentages" in response.json()["detail"]
    one = {"calibration": "scale", "logits": [[40.0, 30.0, 20.0, 10.0]]}
    assert client.post("/predict", json=one).is_success  # by chance


@pytest.mark.parametrize("form", ["npz", "csv"])
def test_class_map_numbers_the_labels_of_outputs(client, form) -> None:
    logits, labels = LOGITS[:, :2], np.where(LABELS % 2, 1, -1)
    content = npz(logits=logits, labels=labels)
    if form == "csv":
        table = pd.DataFrame(logits, columns=["logit_0", "logit_1"]).assign(label=labels)
        content = table.to_csv(index=False).encode()
    made = calibrated(client, {"class_map": {"-1": 0, "1": 1}}, calibration=content)
    assert made["data"]["class_counts"] == np.bincount(LABELS % 2).tolist()
    result = evaluate(client, made["id"], "later", content).json()["result"]
    assert result["events"]["1"]["accuracy"] == made["accuracy"]["1"]


TWICE = "samples-in-both-sets"


def test_a_sample_is_known_in_any_type_of_number(client) -> None:
    table = pd.DataFrame(LOGITS).add_prefix("logit_").assign(label=LABELS)
    exact = table.to_csv(index=False, float_format="%.9g").encode()
    wide = npz(logits=LOGITS.astype(np.float64), labels=LABELS)
    made = calibrated(client, calibration=OUTPUTS, evaluation=wide)
    assert TWICE in codes(made)
    assert TWICE in codes(evaluate(client, made["id"], "again", exact).json()["result"])


def test_labels_in_the_order_of_another_file_do_not_disprove_a_calibration(client) -> None:
    """The model is as certain as ever, and right no more often than by chance."""
    made = calibrated(client, calibration=OUTPUTS)
    shuffled = npz(logits=LOGITS, labels=RNG.permutation(LABELS))
    noise = RNG.normal(size=LOGITS.shape).astype(np.float32) / 9
    for name, content, doubted in (
        ("order", shuffled, True),
        ("noise", npz(logits=noise, labels=LABELS), False),
    ):
        result = evaluate(client, made["id"], name, content).json()["result"]
        # On noise the model says itself how unsure it is.
        assert codes(result)[:1] == ["accuracy-near-chance"] * doubted
        report = client.get("/report", params={"calibration": made["id"]}).json()
        (row,) = [one for one in report["evaluations"] if one["name"] == name]
        assert (row["events"]["1"]["verdict"] == "labels look wrong") == doubted
        assert row["events"]["1"]["disproves"] != doubted


def test_a_new_version_says_on_which_sets_it_was_not_evaluated(client) -> None:
    first = calibrated(client, {"name": "missing-sets"}, calibration=OUTPUTS)
    evaluate(client, "missing-sets", "april", OUTPUTS)
    evaluate(client, "missing-sets", "unlabelled", npz(logits=LOGITS))
    second = refit(client, first["id"], bins=4).json()

    def missing(resource) -> list[str]:
        report = client.get("/report", params={"calibration": resource["id"]}).json()
        sentences = " ".join(report["summary"]["sentences"])
        assert ("not evaluated on “april”" in sentences) == bool(report["not_evaluated"])
        return report["not_evaluated"]

    assert missing(first) == []
    assert missing(second) == ["april"]
    evaluate(client, second["id"], "april", OUTPUTS)
    assert missing(second) == []
    # The set is known by its digest, under another name and as an evaluation set.
    third = refit(client, first["id"], bins=3).json()
    evaluate(client, third["id"], "spring", OUTPUTS)
    assert missing(third) == []
    other = npz(logits=LOGITS[::-1], labels=LABELS[::-1])
    parts = {"calibration": other, "evaluation": OUTPUTS}
    assert missing(calibrated(client, {"name": "missing-sets"}, **parts)) == []


def pairs(scores, correct) -> bytes:
    return pd.DataFrame({"score": scores, "correct": correct}).to_csv(index=False).encode()


def of_pairs(client, content: bytes, **parts: bytes) -> dict:
    return calibrated(client, {"folds": 2}, full=True, calibration=content, **parts)


STATED = RNG.choice([0.7, 0.8, 0.9, 1.0], 400)
RIGHT = (RNG.random(400) < STATED - 0.1).astype(int)


def test_one_file_sent_twice_is_told_where_equal_samples_are_no_copies(client) -> None:
    content, other = pairs(STATED, RIGHT), pairs(STATED[::-1], RIGHT[::-1])
    made = of_pairs(client, content, evaluation=content)
    assert TWICE in codes(made)
    assert TWICE in codes(evaluate(client, made["id"], "same", content).json()["result"])
    assert TWICE not in codes(evaluate(client, made["id"], "other", other).json()["result"])


def test_a_further_set_of_reversed_scores_does_not_disprove_a_calibration(client) -> None:
    scores = RNG.beta(4, 2, 1500)
    correct = (RNG.random(1500) < scores).astype(int)
    made = of_pairs(client, pairs(scores, correct))
    result = evaluate(client, made["id"], "flip", pairs(scores, 1 - correct)).json()["result"]
    assert codes(result) == ["score-reversed"]
    summary = client.get("/report", params={"calibration": made["id"]}).json()["summary"]
    assert summary["status"] != "shifted"
    assert any("“flip”" in sentence for sentence in summary["sentences"])
