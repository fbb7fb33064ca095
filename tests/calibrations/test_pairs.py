"""Pairs of a score and whether the answer was right: from a file to predictions, over HTTP."""

import html
import json
import re
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from bins_documents import answers, exported
from dataset_files import check_refused
from refusals import assert_refused
from report_scenarios import activate
from request_formats import in_json, infer
from running_service import JSON, NPZ, calibrate, calibrated, dry_run, evaluate, npz, send

rng = np.random.default_rng(33)
ROWS = 400
SCORES = rng.beta(4, 2, ROWS).round(3)
CORRECT = rng.random(ROWS) < SCORES**2
RIGHT = CORRECT.astype(int)
CSV = {"Content-Type": "text/csv"}
CONFIG = {"bins": 5, "folds": 2, "lookup": "step"}
HTML = {"Accept": "text/html"}
OF_PAIRS = {"measures": None, "top_k": None}


def csv(**columns: Any) -> bytes:
    return pd.DataFrame(columns).to_csv(index=False, na_rep="nan").encode()


def pairs(scores: np.ndarray = SCORES, **more: Any) -> bytes:
    return csv(score=scores, correct=RIGHT, **more)


def made(client: httpx.Client, content: bytes, **config: Any) -> dict[str, Any]:
    parts = {name: config.pop(name) for name in ["evaluation"] if name in config}
    return calibrated(client, CONFIG | config, full=True, calibration=content, **parts)


def predictions(client: httpx.Client, reference: str, scores: Any) -> list[Any]:
    return answers(client, reference, scores=list(scores))


@pytest.fixture(scope="module")
def judge(client) -> dict[str, Any]:
    return made(client, pairs(), name="judge")


def as_parquet(scores: np.ndarray) -> bytes:
    return pd.DataFrame({"confidence": scores, "correct": CORRECT}).to_parquet(index=False)


WORDS = np.where(CORRECT, "Yes", "no")
# How pairs are written, and what their scores are multiplied with; those below 0 are negative.
FORMATS = {
    "words": (lambda s: csv(question=["how?"] * ROWS, score=s, correct=WORDS), -400.0),
    "parquet": (as_parquet, 12.0),
    "npz": (lambda s: npz(score=s.astype(np.float32), correct=CORRECT), 1.0),
}


@pytest.mark.parametrize("file_format", FORMATS)
def test_pairs_are_calibrated_and_answered(client, file_format) -> None:
    write, scale = FORMATS[file_format]
    scores = SCORES * abs(scale) + min(scale, 0.0)
    resource = made(client, write(scores))
    assert resource["data"]["kind"] == "pairs"
    assert resource["serve"] == {"1": "score"}
    assert resource["config"]["top_k"] == [1]
    assert resource["accuracy"]["1"] == pytest.approx(CORRECT.mean())

    answered = np.quantile(scores, [0.95, 0.5, 0.05])
    rows = predictions(client, resource["id"], answered)
    assert [set(row) for row in rows] == [{"top1", "out_of_distribution", "abstain"}] * 3
    sure, middle, unsure = (row["top1"] for row in rows)
    assert sure["probability"] > middle["probability"] > unsure["probability"]
    assert (sure["bin"], unsure["bin"]) == (0, 4)
    assert sure["uncertainty"] == pytest.approx(-answered[0], rel=1e-6)
    low, high = sure["interval"]
    assert low <= CORRECT[scores >= np.quantile(scores, 0.8)].mean() <= high


def test_raw_probabilities_are_the_scores(client, judge) -> None:
    report = client.get("/report", params={"calibration": judge["id"]}).json()
    event = report["events"]["1"]
    raw = event["baselines"]["raw_softmax"]["scores"]["brier"]["pooled"]
    assert raw == pytest.approx(np.mean((SCORES - CORRECT) ** 2), rel=1e-5)
    assert event["measures"]["score"]["scores"]["brier"]["mean"] < raw


def sent(client, reference: str, form: str, scores: Any) -> httpx.Response:
    """Return the response to scores in one of the forms that requests have."""
    scores = list(scores)
    if form == "oip":
        tensor = in_json("scores", np.array(scores, np.float32))
        return infer(client, "judge", {"inputs": [tensor]})
    if form == "evaluation":
        return evaluate(client, reference, f"set {scores}", csv(score=scores, correct=[1, 0, 1]))
    if form == "json":
        return send(client, reference, {"calibration": reference, "scores": scores}, JSON)
    content, kind = {
        "npz": lambda: (npz(scores=np.array(scores)), NPZ),
        "npz of score": lambda: (npz(score=np.array(scores)), NPZ),
        "csv": lambda: (csv(score=scores), CSV),
        "csv of pairs": lambda: (csv(score=scores, correct=[0] * len(scores)), CSV),
        "csv of confidence": lambda: (csv(confidence=scores), CSV),
    }[form]()
    return send(client, reference, content, kind)


def test_files_of_scores_are_answered_alike(client, judge) -> None:
    expected = predictions(client, judge["id"], SCORES[:4])
    for form in ("npz", "npz of score", "csv", "csv of pairs", "csv of confidence"):
        response = sent(client, judge["id"], form, SCORES[:4])
        assert response.status_code == httpx.codes.OK, response.text
        assert response.json()["predictions"] == expected, form


def test_the_open_inference_protocol_takes_scores(client, judge) -> None:
    model = client.get("/v2/models/judge").json()
    assert [(one["name"], one["shape"]) for one in model["inputs"]] == [("scores", [-1])]
    names = {one["name"] for one in model["outputs"]}
    assert "top1_probability" in names
    assert "class" not in names
    response = sent(client, "judge", "oip", [0.9, 0.3])
    outputs = {one["name"]: one["data"] for one in response.json()["outputs"]}
    sure, unsure = outputs["top1_probability"]
    assert sure > unsure


def test_a_misspelled_column_of_a_further_set_is_refused(client, judge) -> None:
    for name in ("corect", "Correct"):
        misspelled = csv(**{"score": SCORES, name: RIGHT})
        response = evaluate(client, judge["id"], name, misspelled)
        assert_refused(response, None, f"rename `{name}` to `correct`")
        assert send(client, judge["id"], misspelled, CSV).status_code == httpx.codes.OK
    unlabelled = evaluate(client, judge["id"], "unlabelled", csv(score=SCORES, other=SCORES))
    assert unlabelled.json()["labelled"] is False


def test_pages_show_pairs_and_examples_that_are_answered(client, judge) -> None:
    pages = f"/pages/calibrations/{judge['id']}"
    texts = {
        page: client.get(f"{pages}/{page}", headers=HTML).raise_for_status().text
        for page in ("try", "integrate", "measures", "operating-point")
    }
    assert not [page for page, text in texts.items() if "predicted class" in text]
    bodies = re.findall(r"-d '([^']*)'", html.unescape(texts["integrate"]))
    for path, body in zip(("/predict", "/v2/models/judge/infer"), bodies, strict=True):
        client.post(path, json=json.loads(body)).raise_for_status()
    drawn = client.get(f"{pages}/try", params={"draw": 1}, headers=HTML, follow_redirects=True)
    assert "Answers with such a score are correct" in drawn.text
    assert "Top classes" not in drawn.text


def at_row(row: int, value: Any, others: Any = SCORES) -> np.ndarray:
    return np.where(np.arange(ROWS) == row, value, others)


LOG = {"predicted": ["a", None], "score": [1, 1], "label": ["a", "b"]}
# The columns, where they are refused, and what the message names: the value, or the fix.
BAD = [
    ({"score": at_row(3, np.nan), "correct": CORRECT}, "score[3]", "NaN"),
    ({"score": at_row(5, "high", "0.5"), "correct": CORRECT}, "score[5]", "a number"),
    ({"score": SCORES, "correct": at_row(4, 2, CORRECT)}, "correct[4]", "1 or 0"),
    ({"score": SCORES, "correct": at_row(4, "maybe", "1")}, "correct[4]", "1 or 0"),
    ({"points": SCORES, "correct": RIGHT}, "score", "column `score`"),
    ({"score": SCORES, "truth": RIGHT}, "label", "`correct`"),
    ({"confidence": SCORES}, "label", "`confidence` needs a column `correct`"),
    ({"conf": SCORES, "correct": RIGHT}, "score", "rename `conf` to `confidence`"),
    ({"Score": SCORES, "Correct": RIGHT}, "label", "`Score` to `score` and `Correct` to `correct`"),
    ({"judge_score": SCORES, "hit": RIGHT}, "label", "rename `judge_score` to `score`"),
    ({"0.25": SCORES, "1": RIGHT}, "label", "the first line"),
    (LOG, "predicted[1]", "empty cell"),
]


@pytest.mark.parametrize(("columns", "location", "named"), BAD)
def test_bad_pairs_are_one_clear_problem(tmp_path, columns, location, named) -> None:
    (tmp_path / "pairs.csv").write_bytes(csv(**columns))
    check_refused(tmp_path / "pairs.csv", f".{location}", named)


OPTIONS_OF_CLASSES = [
    ({"measures": ["entropy"]}, "config.measures"),
    ({"top_k": [1, 2]}, "config.top_k"),
    ({"classes": ["a", "b"]}, "config.classes"),
    ({"output": {"kind": "logits"}}, "config.output"),
    ({"columns": {"group": ["doc_id"]}}, "calibration"),
]


@pytest.mark.parametrize(("config", "location"), OPTIONS_OF_CLASSES)
def test_options_of_classes_are_refused(client, config, location) -> None:
    response = calibrate(client, calibration=pairs(doc_id=SCORES), config=json.dumps(config))
    assert_refused(response, location)


BAD_REQUESTS = [
    ({"logits": [[0.1, 0.2]]}, "scores"),
    ({"scores": [[0.1], [0.2]]}, "scores"),
    ({"scores": ["high"]}, "scores[0]"),
    ({"scores": [1e39]}, "scores[0]"),
    ({"scores": [0.1], "logits": [[0.1, 0.2]]}, "body"),
]


@pytest.mark.parametrize(("body", "location"), BAD_REQUESTS)
def test_bad_requests_name_what_is_wrong(client, judge, body, location) -> None:
    response = client.post("/predict", json={"calibration": judge["id"]} | body)
    assert_refused(response, location)


@pytest.mark.parametrize("form", ["json", "npz", "csv", "oip", "evaluation"])
def test_other_scales_are_refused_where_scores_were_from_0_to_1(client, judge, form) -> None:
    assert judge["data"]["score_range"] == [SCORES.min(), SCORES.max()]
    for scores, figures in (
        ([0.5, 90.0, 30.0], ("[1]", "from 0 to 1", "got 90", "by 100")),
        ([0.5, 0.7, -2.5], ("[2]", "from 0 to 1", "got -2.5")),
    ):
        response = sent(client, judge["id"], form, scores)
        assert response.is_client_error, response.text
        assert all(figure in response.text for figure in figures), response.text
    # Rounding is no mistake.
    assert sent(client, judge["id"], form, [1.0000001, -1e-7, 0.5]).is_success


PERCENT = 50 + 50 * SCORES


SCALES = [(SCORES, 100 * SCORES, "evaluation.score[0]"), (PERCENT, SCORES, "evaluation.score")]


@pytest.mark.parametrize(("calibration", "evaluation", "location"), SCALES)
def test_evaluation_on_another_scale_is_refused(client, calibration, evaluation, location) -> None:
    response = calibrate(client, calibration=pairs(calibration), evaluation=pairs(evaluation))
    assert_refused(response, location)
    scaled = made(client, pairs(calibration))["id"]
    assert_refused(evaluate(client, scaled, "other", pairs(evaluation)), location)


def test_unbounded_scores_beyond_the_known_ones_are_marked(client) -> None:
    scores = (12 * SCORES - 9).round(3)
    resource = made(client, pairs(scores), lookup="interpolated")
    document = exported(client, resource["id"])
    imported = client.post("/calibrations/import", json=document).json()
    sent_scores = [scores.max(), scores.max() + 0.01, 90.0, np.median(scores), -90.0]
    first = predictions(client, resource["id"], sent_scores)
    for reference in (resource["id"], imported["id"]):
        rows = predictions(client, reference, sent_scores * 20)
        assert rows == first * 20
        flags = [row["out_of_distribution"] for row in rows]
        assert flags == [False, True, True, False, True] * 20


def test_a_further_set_is_read_on_the_scale_of_the_calibration_set(client) -> None:
    """Scores of a further set may all lie in 0 to 1 by chance; either may have weights."""
    scores = (12 * SCORES - 9).round(3)
    inside = (scores > 0) & (scores < 1)
    weights = rng.choice([1.0, 2.0], ROWS)
    further = csv(score=scores[inside], correct=RIGHT[inside])
    resource = made(client, pairs(scores, weight=weights), evaluation=further)
    assert resource["accuracy"]["1"] == pytest.approx(weights @ CORRECT / weights.sum())
    report = client.get("/report", params={"calibration": resource["id"]}).json()
    raw = report["events"]["1"]["baselines"]["raw_softmax"]["evaluation"]["brier"]
    probabilities = 1 / (1 + np.exp(-scores[inside]))
    assert raw == pytest.approx(np.mean((probabilities - CORRECT[inside]) ** 2), rel=1e-4)


def test_columns_that_are_not_read_are_named(client) -> None:
    ids = np.arange(ROWS) // 5
    for column, named in (("doc_id", ("`doc_id`", "`group`")), ("group", ())):
        content = pairs(confidence=SCORES, **{column: ids})
        warnings = dry_run(client, content, **OF_PAIRS).json()["warnings"]
        (note,) = (warning for warning in warnings if "not read" in warning)
        assert all(name in note for name in ("`confidence`", *named))
        assert ("`group`" in note) == bool(named)


LOGS = {
    "numbers": lambda t: csv(predicted=np.where(CORRECT, t, t + 1), score=SCORES, label=t * 1.0),
    "names": lambda t: csv(id=t, predicted=np.where(CORRECT, "cat", "dog"), confidence=SCORES,
                           label=["cat"] * ROWS),
    "parquet": lambda t: pd.DataFrame(
        {"predicted": np.where(CORRECT, t, t + 1), "score": SCORES, "label": t}
    ).to_parquet(index=False),
}  # fmt: skip


@pytest.mark.parametrize("form", LOGS)
def test_a_log_of_predictions_scores_and_labels_is_pairs(client, judge, form) -> None:
    content = LOGS[form](np.arange(ROWS) % 7)
    resource = made(client, content)
    assert (resource["data"]["kind"], resource["accuracy"]) == ("pairs", judge["accuracy"])
    assert any("`predicted` is the `label`" in note for note in resource["warnings"])
    found = predictions(client, resource["id"], SCORES[:20])
    assert found == predictions(client, judge["id"], SCORES[:20])
    further = evaluate(client, judge["id"], f"log-{form}", content).json()["result"]
    assert further["events"]["1"]["accuracy"] == judge["accuracy"]["1"]


def test_a_threshold_of_pairs_is_the_least_accepted_score(client) -> None:
    made(client, pairs(), name="score-gate")
    point = activate(client, "score-gate", threshold=0.75, name="auto")
    listed = client.get("/calibrations/score-gate/operating-points").json()["operating_points"]
    report = client.get("/report", params={"calibration": "score-gate"}).json()
    for told in (point, *listed, report["operating_point"]):
        assert (told["threshold"], told["chosen_by"]) == (0.75, {"threshold": 0.75})
    assert point["consequences"]["n_accepted"] == sum(SCORES >= 0.75)
    rows = predictions(client, "score-gate", [0.76, 0.75, 0.74])
    assert [row["abstain"]["auto"] for row in rows] == [False, False, True]
