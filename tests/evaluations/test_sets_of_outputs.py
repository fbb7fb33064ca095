"""Sets of outputs and pairs that are on another scale, sent twice, or numbered otherwise."""

import json

import httpx
import numpy as np
import pandas as pd
import pytest
import scipy
from running_service import calibrate, calibrated, evaluate, npz, quick_config, refit

RNG = np.random.default_rng(12)
LOGITS = RNG.normal(size=(300, 4)).astype(np.float32) * 2
LABELS = np.argmax(LOGITS + RNG.gumbel(size=LOGITS.shape), axis=1)
PERCENT = 100 * scipy.special.softmax(LOGITS, axis=1)
REFUSED = "expected logits, got percentages, which sum to 100 in each row; divide by 100, and send"


@pytest.mark.parametrize("rounded", [PERCENT, PERCENT.round(1)], ids=["exact", "rounded"])
def test_percentages_are_no_logits(client, rounded) -> None:
    calibrated(client, quick_config(name="l"), calibration=npz(logits=LOGITS, labels=LABELS))
    further = npz(logits=rounded, labels=LABELS)
    answers = [
        calibrate(client, calibration=further),
        calibrate(client, calibration=npz(logits=LOGITS, labels=LABELS), evaluation=further),
        evaluate(client, "l", "percent", further),
        client.post("/predict", json={"calibration": "l", "logits": rounded[:9].tolist()}),
    ]
    for answer in answers:
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
        assert REFUSED in answer.json()["detail"]
    one = {"calibration": "l", "logits": [[40.0, 30.0, 20.0, 10.0]]}
    assert client.post("/predict", json=one).is_success  # by chance


@pytest.mark.parametrize("form", ["npz", "csv"])
def test_class_map_numbers_the_labels_of_outputs(client, form) -> None:
    logits, labels = LOGITS[:, :2], np.where(LABELS % 2, 1, -1)
    content = npz(logits=logits, labels=labels)
    if form == "csv":
        table = pd.DataFrame(logits, columns=["logit_0", "logit_1"]).assign(label=labels)
        content = table.to_csv(index=False).encode()
    config = quick_config(name=f"mapped-{form}", class_map={"-1": 0, "1": 1}, top_k=[1])
    made = calibrated(client, config, calibration=content)
    assert made["data"]["class_counts"] == np.bincount(LABELS % 2).tolist()
    later = evaluate(client, f"mapped-{form}", "later", content)
    assert later.json()["result"]["events"]["1"]["accuracy"] == made["accuracy"]["1"]


def both(found) -> list[str]:
    return [one["code"] for one in found["findings"] if one["code"] == "samples-in-both-sets"]


def test_a_sample_is_known_in_any_type_of_number(client) -> None:
    table = pd.DataFrame(LOGITS).add_prefix("logit_").assign(label=LABELS)
    parts = {"calibration": npz(logits=LOGITS, labels=LABELS)}
    config = quick_config(name="types")
    exact = table.to_csv(index=False, float_format="%.9g").encode()
    wide = npz(logits=LOGITS.astype(np.float64), labels=LABELS)
    assert both(calibrated(client, config, **parts, evaluation=wide))
    assert both(calibrated(client, config, **parts, evaluation=exact))
    assert both(evaluate(client, "types", "again", exact).json()["result"])


def test_labels_in_the_order_of_another_file_do_not_disprove_a_calibration(client) -> None:
    """The model is as certain as ever, and right no more often than by chance."""
    calibrated(client, quick_config(name="rows"), calibration=npz(logits=LOGITS, labels=LABELS))
    shuffled = npz(logits=LOGITS, labels=RNG.permutation(LABELS))
    noise = RNG.normal(size=LOGITS.shape).astype(np.float32) / 9
    for name, content, doubted in (
        ("order", shuffled, True),
        ("noise", npz(logits=noise, labels=LABELS), False),
    ):
        result = evaluate(client, "rows", name, content).json()["result"]
        codes = [one["code"] for one in result["findings"]]
        # On noise the model says itself how unsure it is.
        assert codes[:1] == ["accuracy-near-chance"] * doubted
        report = client.get("/report", params={"calibration": "rows"}).json()
        (found,) = [one for one in report["evaluations"] if one["name"] == name]
        assert (found["events"]["1"]["verdict"] == "labels look wrong") == doubted
        assert found["events"]["1"]["disproves"] != doubted


def test_a_new_version_says_on_which_sets_it_was_not_evaluated(client) -> None:
    content = npz(logits=LOGITS, labels=LABELS)
    made = calibrated(client, quick_config(name="versions"), calibration=content)
    evaluate(client, "versions", "april", content)
    evaluate(client, "versions", "unlabelled", npz(logits=LOGITS))
    again = refit(client, made["id"], bins=4).json()

    def told(reference) -> tuple[list, bool]:
        report = client.get("/report", params={"calibration": reference}).json()
        said = "This version was not evaluated on “april”, as other versions were"
        return report["not_evaluated"], any(said in s for s in report["summary"]["sentences"])

    assert told(made["id"]) == ([], False)
    assert told(again["id"]) == (["april"], True)
    evaluate(client, again["id"], "april", content)
    assert told(again["id"]) == ([], False)
    # The set is known by its digest, under another name and as an evaluation set.
    third = refit(client, made["id"], bins=5).json()
    evaluate(client, third["id"], "spring", content)
    assert told(third["id"]) == ([], False)
    config = quick_config(name="versions")
    other = npz(logits=LOGITS[::-1], labels=LABELS[::-1])
    repaired = calibrated(client, config, calibration=other, evaluation=content)
    assert told(repaired["id"]) == ([], False)


def pairs(scores, correct) -> bytes:
    return pd.DataFrame({"score": scores, "correct": correct}).to_csv(index=False).encode()


STATED = RNG.choice([0.7, 0.8, 0.9, 1.0], 400)
RIGHT = (RNG.random(400) < STATED - 0.1).astype(int)


def test_one_file_sent_twice_is_told_where_equal_samples_are_no_copies(client) -> None:
    sent, other = pairs(STATED, RIGHT), pairs(STATED[::-1], RIGHT[::-1])
    assert both(calibrated(client, {"name": "twice"}, calibration=sent, evaluation=sent))
    assert both(evaluate(client, "twice", "same", sent).json()["result"])
    assert not both(evaluate(client, "twice", "other", other).json()["result"])


def test_a_further_set_of_reversed_scores_does_not_disprove_a_calibration(client) -> None:
    scores = RNG.beta(4, 2, 1500)
    correct = (RNG.random(1500) < scores).astype(int)
    calibrated(client, {"name": "kept"}, calibration=pairs(scores, correct))
    result = evaluate(client, "kept", "flip", pairs(scores, 1 - correct)).json()["result"]
    assert [one["code"] for one in result["findings"]] == ["score-reversed"]
    report = client.get("/report", params={"calibration": "kept"}).json()
    assert report["summary"]["status"] != "shifted"
    assert any(
        "Scores of the further set “flip” look wrong" in s for s in report["summary"]["sentences"]
    )


def test_markdown_names_the_labels_of_pairs(client) -> None:
    calibrated(client, {"name": "words"}, calibration=pairs(STATED, RIGHT))
    params = {"calibration": "words", "format": "markdown"}
    text = client.get("/report", params=params).text
    _, table = text.split("Wrong predictions in the most reliable bins.")
    rows = [line.split(" | ")[:3] for line in table.splitlines() if line.startswith("| ")]
    found = json.loads(client.get("/report", params={"calibration": "words"}).text)
    first = found["events"]["1"]["mislabelled"][0]["index"]
    assert RIGHT[first] == 0
    assert rows[1] == [f"| {first}", "wrong", "correct"]
