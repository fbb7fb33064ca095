"""Pairs of a score and whether the answer was right: from a file to answers, over HTTP."""

import html
import json
import re

import httpx
import numpy as np
import pytest
from bins_documents import exported
from dataset_files import write_parquet
from running_service import calibrate, calibrated, evaluate, npz, send

rng = np.random.default_rng(33)
ROWS = 600
SCORES = rng.beta(4, 2, ROWS).round(3)
CORRECT = rng.random(ROWS) < SCORES**2
CONFIG = {"name": "judge", "bins": 5, "lookup": "step"}


def csv(**columns) -> bytes:
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]).encode()


def written(file_format: str, tmp_path, scores=SCORES) -> bytes:
    if file_format == "csv":
        return csv(score=scores, correct=CORRECT.astype(int))
    if file_format == "csv of confidence":
        return csv(confidence=scores, correct=CORRECT.astype(int))
    if file_format == "csv with words":
        correct = np.where(CORRECT, "Yes", "no")
        return csv(question=["how?"] * ROWS, score=scores, correct=correct)
    if file_format == "parquet":
        write_parquet(tmp_path / "pairs.parquet", {"score": scores, "correct": CORRECT})
        return (tmp_path / "pairs.parquet").read_bytes()
    return npz(score=scores.astype(np.float32), correct=CORRECT)


@pytest.mark.parametrize(
    "file_format", ["csv", "csv of confidence", "csv with words", "parquet", "npz"]
)
@pytest.mark.parametrize("scale", [1.0, 12.0, -400.0])
def test_pairs_are_calibrated_and_answered(client, tmp_path, file_format, scale) -> None:
    scores = SCORES * abs(scale) + min(scale, 0.0)
    found = calibrated(client, CONFIG, calibration=written(file_format, tmp_path, scores))
    assert found["data"]["kind"] == "pairs"
    assert found["serve"] == {"1": "score"}
    assert found["config"]["top_k"] == [1]
    assert found["accuracy"]["1"] == pytest.approx(CORRECT.mean())

    asked = np.quantile(scores, [0.95, 0.5, 0.05])
    body = {"calibration": found["id"], "scores": asked.tolist()}
    answer = client.post("/predict", json=body)
    assert answer.status_code == httpx.codes.OK, answer.text
    predictions = answer.json()["predictions"]
    assert [set(row) for row in predictions] == [{"top1", "out_of_distribution", "abstain"}] * 3
    sure, middle, unsure = (row["top1"] for row in predictions)
    assert sure["probability"] > middle["probability"] > unsure["probability"]
    assert sure["bin"] == 0
    assert unsure["bin"] == 4
    assert sure["measure"] == "score"
    assert sure["uncertainty"] == pytest.approx(-asked[0], rel=1e-6)
    low, high = sure["interval"]
    true = CORRECT[scores >= np.quantile(scores, 0.8)].mean()
    assert low <= true <= high


def test_the_bins_hold_the_hits_of_their_scores(client) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    report = client.get("/report", params={"calibration": found["id"]}).json()
    event = report["events"]["1"]
    for bin_ in event["measures"]["score"]["bins"]:
        low = -np.inf if bin_["lower"] is None else bin_["lower"]
        high = np.inf if bin_["upper"] is None else bin_["upper"]
        inside = (low < -SCORES) & (high >= -SCORES)
        assert (bin_["count"], bin_["hits"]) == (inside.sum(), (inside & CORRECT).sum())
    raw = event["baselines"]["raw_softmax"]["scores"]["brier"]["pooled"]
    assert raw == pytest.approx(np.mean((SCORES - CORRECT) ** 2), rel=1e-5)
    assert event["measures"]["score"]["scores"]["brier"]["mean"] < raw


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (csv(score=SCORES[:4]), "text/csv"),
        (csv(score=SCORES[:4], correct=[0] * 4), "text/csv"),
        (csv(confidence=SCORES[:4]), "text/csv"),
        (csv(confidence=SCORES[:4], correct=[0] * 4), "text/csv"),
        (npz(scores=SCORES[:4]), "application/x-npz"),
        (npz(score=SCORES[:4]), "application/x-npz"),
    ],
)
def test_files_of_scores_are_answered_alike(client, content, kind) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    body = {"calibration": found["id"], "scores": SCORES[:4].tolist()}
    expected = client.post("/predict", json=body).json()["predictions"]
    answer = client.post(
        "/predict",
        params={"calibration": found["id"]},
        content=content,
        headers={"Content-Type": kind},
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    assert answer.json()["predictions"] == expected


def test_the_open_inference_protocol_takes_scores(client) -> None:
    calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    model = client.get("/v2/models/judge").json()
    assert [(one["name"], one["shape"]) for one in model["inputs"]] == [("scores", [-1])]
    names = {one["name"] for one in model["outputs"]}
    assert "top1_probability" in names
    assert "class" not in names
    sent = {"name": "scores", "datatype": "FP32", "shape": [2], "data": [0.9, 0.3]}
    answer = client.post("/v2/models/judge/infer", json={"inputs": [sent]})
    assert answer.status_code == httpx.codes.OK, answer.text
    outputs = {one["name"]: one["data"] for one in answer.json()["outputs"]}
    sure, unsure = outputs["top1_probability"]
    assert sure > unsure


def test_an_evaluation_set_and_weights_work_beside_pairs(client) -> None:
    weights = rng.choice([1.0, 2.0], ROWS)
    content = csv(score=SCORES, correct=CORRECT.astype(int), weight=weights)
    found = calibrated(client, CONFIG, calibration=content, evaluation=content)
    assert found["accuracy"]["1"] == pytest.approx(weights @ CORRECT / weights.sum())
    report = client.get("/report", params={"calibration": found["id"]}).json()
    assert report["events"]["1"]["measures"]["score"]["evaluation"]["brier"] is not None


@pytest.mark.parametrize("name", ["corect", "Correct"])
def test_a_misspelled_column_of_a_further_set_is_refused(client, name) -> None:
    content = csv(score=SCORES, correct=CORRECT.astype(int))
    found = calibrated(client, CONFIG, calibration=content)
    misspelled = csv(**{"score": SCORES, name: CORRECT.astype(int)})
    answer = evaluate(client, found["id"], name, misspelled)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert f"rename `{name}` to `correct`" in answer.json()["detail"]
    unlabelled = evaluate(client, found["id"], "unlabelled", csv(score=SCORES, other=SCORES))
    assert unlabelled.json()["labelled"] is False
    rows = send(client, found["id"], misspelled, {"Content-Type": "text/csv"})
    assert rows.status_code == httpx.codes.OK


@pytest.mark.parametrize("page", ["try", "integrate", "measures", "operating-point", "samples", ""])
def test_pages_show_pairs(client, page) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    of, html = f"/pages/calibrations/{found['id']}", {"Accept": "text/html"}
    if page == "":
        answer = client.get("/report", params={"calibration": found["id"]}, headers=html)
    else:
        answer = client.get(f"{of}/{page}", headers=html)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert "predicted class" not in answer.text


def test_the_examples_for_programs_are_answered(client) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    page = client.get(
        f"/pages/calibrations/{found['id']}/integrate", headers={"Accept": "text/html"}
    )
    bodies = re.findall(r"-d '([^']*)'", html.unescape(page.text))
    paths = ("/predict", f"/v2/models/{found['name']}/infer")
    for path, body in zip(paths, bodies, strict=True):
        answer = client.post(path, json=json.loads(body))
        assert answer.status_code == httpx.codes.OK, answer.text


def test_a_stored_pair_is_shown_and_predicted(client) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    page = client.get(
        f"/pages/calibrations/{found['id']}/try",
        params={"draw": 1},
        headers={"Accept": "text/html"},
        follow_redirects=True,
    )
    assert page.status_code == httpx.codes.OK
    assert "Answers with such a score are correct" in page.text
    assert "Top classes" not in page.text


def test_bins_of_pairs_move_to_another_service(client) -> None:
    source = calibrated(
        client, {"name": "judge"}, calibration=csv(score=SCORES, correct=CORRECT.astype(int))
    )
    document = exported(client, source["id"])
    answer = client.post("/calibrations/import", json=document)
    assert answer.is_success, answer.text
    body = {"scores": [0.95, 0.5, 0.1]}
    expected, found = (
        client.post("/predict", json=body | {"calibration": one}).json()["predictions"]
        for one in (source["id"], answer.json()["id"])
    )
    assert [row["top1"] for row in found] == [row["top1"] for row in expected]
    assert "class" not in found[0]


@pytest.mark.parametrize(
    ("columns", "location", "message"),
    [
        ({"score": np.where(np.arange(ROWS) == 3, np.nan, SCORES), "correct": CORRECT},
         "calibration.score[3]", "expected a number, got an empty cell or NaN"),
        ({"score": SCORES, "correct": np.where(np.arange(ROWS) == 4, 2, CORRECT)},
         "calibration.correct[4]", "expected 1 or 0"),
        ({"score": SCORES, "correct": np.where(np.arange(ROWS) == 4, "maybe", "1")},
         "calibration.correct[4]", "expected 1 or 0"),
        ({"points": SCORES, "correct": CORRECT.astype(int)}, "calibration.score", "column `score`"),
        ({"score": SCORES, "truth": CORRECT.astype(int)}, "calibration.label", "`correct`"),
        ({"confidence": SCORES}, "calibration.label", "`confidence` needs a column `correct`"),
        ({"conf": SCORES, "correct": CORRECT.astype(int)}, "calibration.score",
         "rename `conf` to `confidence`"),
        ({"Score": SCORES, "Correct": CORRECT.astype(int)}, "calibration.label",
         "rename `Score` to `score` and `Correct` to `correct`"),
        ({"0.25": SCORES, "1": CORRECT.astype(int)}, "calibration.label", "the first line holds"),
        ({"score": np.where(np.arange(ROWS) == 5, "high", "0.5"), "correct": CORRECT},
         "calibration.score[5]", "expected a number"),
    ],
)  # fmt: skip
def test_bad_pairs_are_one_clear_problem(client, columns, location, message) -> None:
    answer = calibrate(client, calibration=csv(**columns), config=json.dumps(CONFIG))
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = answer.json()["errors"]
    assert error["location"] == location
    assert message in error["message"]


@pytest.mark.parametrize(
    ("config", "location"),
    [
        ({"measures": ["entropy"]}, "config.measures"),
        ({"top_k": [1, 2]}, "config.top_k"),
        ({"classes": ["a", "b"]}, "config.classes"),
        ({"output": {"kind": "logits"}}, "config.output"),
        ({"output": {"kind": "probabilities"}}, "config.output"),
    ],
)
def test_options_of_classes_are_refused(client, config, location) -> None:
    content = csv(score=SCORES, correct=CORRECT.astype(int))
    answer = calibrate(client, calibration=content, config=json.dumps(CONFIG | config))
    (error,) = answer.json()["errors"]
    assert error["location"] == location
    assert "pairs have one" in error["message"] or "calibration holds pairs" in error["message"]
    assert "leave" in error["message"]


def test_the_measure_of_pairs_needs_pairs(client) -> None:
    content = npz(logits=rng.normal(size=(60, 3)), labels=rng.integers(0, 3, 60))
    config = json.dumps({"measures": ["score"]})
    answer = calibrate(client, calibration=content, config=config)
    assert answer.json()["errors"][0]["location"] == "config.measures"


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({"logits": [[0.1, 0.2]]}, "scores"),
        ({"scores": [[0.1], [0.2]]}, "scores"),
        ({"scores": ["high"]}, "scores[0]"),
        ({"scores": [1e39]}, "scores[0]"),
        ({"scores": [0.1], "logits": [[0.1, 0.2]]}, "body"),
    ],
)
def test_bad_requests_name_what_is_wrong(client, body, location) -> None:
    found = calibrated(client, CONFIG, calibration=csv(score=SCORES, correct=CORRECT.astype(int)))
    answer = client.post("/predict", json={"calibration": found["id"]} | body)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert answer.json()["errors"][0]["location"] == location


@pytest.fixture
def judge(client):
    content = csv(score=SCORES, correct=CORRECT.astype(int))
    return calibrated(client, CONFIG, calibration=content)


def sent(client, judge, form: str, scores) -> httpx.Response:
    """Return the answer to scores that are sent in one of the forms that requests have."""
    if form == "json":
        return client.post("/predict", json={"calibration": judge["id"], "scores": scores})
    if form == "oip":
        tensor = {"name": "scores", "datatype": "FP32", "shape": [len(scores)], "data": scores}
        return client.post("/v2/models/judge/infer", json={"inputs": [tensor]})
    if form == "evaluation":
        content = csv(score=scores, correct=[1] * len(scores))
        files = {"evaluation": ("set.csv", content)}
        address = f"/calibrations/{judge['id']}/evaluations"
        return client.post(address, files=files, data={"name": "next"})
    is_csv = form == "csv"
    return client.post(
        "/predict",
        params={"calibration": judge["id"]},
        content=csv(score=scores) if is_csv else npz(scores=np.array(scores)),
        headers={"Content-Type": "text/csv" if is_csv else "application/x-npz"},
    )


FORMS = ["json", "npz", "csv", "oip", "evaluation"]


@pytest.mark.parametrize("form", FORMS)
def test_percentages_are_refused_where_scores_were_from_0_to_1(client, judge, form) -> None:
    assert judge["data"]["score_range"] == [SCORES.min(), SCORES.max()]
    answer = sent(client, judge, form, [0.5, 90.0, 30.0])
    assert answer.is_client_error, answer.text
    assert "[1]" in answer.text
    assert "expected a score from 0 to 1" in answer.text
    assert "got 90; divide percentages by 100" in answer.text


@pytest.mark.parametrize("form", FORMS)
def test_other_scales_are_refused_where_scores_were_from_0_to_1(client, judge, form) -> None:
    answer = sent(client, judge, form, [0.5, 0.7, -2.5])
    assert answer.is_client_error, answer.text
    assert "[2]" in answer.text
    assert "got -2.5; send scores on the scale of that set" in answer.text


@pytest.mark.parametrize("form", FORMS)
def test_rounding_beyond_0_and_1_is_no_mistake(client, judge, form) -> None:
    assert sent(client, judge, form, [1.0000001, -1e-7]).is_success


def test_an_evaluation_set_in_percent_is_refused_at_once(client) -> None:
    content = csv(score=SCORES, correct=CORRECT.astype(int))
    further = csv(score=100 * SCORES, correct=CORRECT.astype(int))
    answer = calibrate(client, calibration=content, evaluation=further)
    (error,) = answer.json()["errors"]
    assert error["location"] == "evaluation.score[0]"
    assert "divide percentages by 100" in error["message"]


@pytest.mark.parametrize("lookup", ["step", "smooth", "interpolated"])
@pytest.mark.parametrize("is_imported", [False, True])
def test_unbounded_scores_beyond_the_known_ones_are_marked(client, lookup, is_imported) -> None:
    scores = (12 * SCORES - 9).round(3)
    content = csv(score=scores, correct=CORRECT.astype(int))
    found = calibrated(client, CONFIG | {"lookup": lookup}, calibration=content)
    if is_imported:
        document = exported(client, found["id"])
        found = client.post("/calibrations/import", json=document).json()
    asked = [scores.max(), scores.max() + 0.01, 90.0, np.median(scores), -90.0]
    body = {"calibration": found["id"], "scores": asked}
    few = client.post("/predict", json=body).json()["predictions"]
    many = client.post("/predict", json=body | {"scores": asked * 20}).json()["predictions"]
    flags = [row["out_of_distribution"] for row in few]
    assert flags == [False, True, True, False, True]
    assert [row["out_of_distribution"] for row in many] == flags * 20


def test_a_further_set_is_read_on_the_scale_of_the_calibration_set(client) -> None:
    """Scores of a further set may all lie in 0 to 1 by chance."""
    scores = (12 * SCORES - 9).round(3)
    content = csv(score=scores, correct=CORRECT.astype(int))
    inside = (scores > 0) & (scores < 1)
    further = csv(score=scores[inside], correct=CORRECT[inside].astype(int))
    found = calibrated(client, CONFIG, calibration=content, evaluation=further)
    report = client.get("/report", params={"calibration": found["id"]}).json()
    raw = report["events"]["1"]["baselines"]["raw_softmax"]["evaluation"]["brier"]
    probabilities = 1 / (1 + np.exp(-scores[inside]))
    assert raw == pytest.approx(np.mean((probabilities - CORRECT[inside]) ** 2), rel=1e-4)


def test_sets_whose_scores_all_lie_elsewhere_are_refused(client) -> None:
    """The calibration set in percent, and a further set from 0 to 1."""
    percent, shares = (
        csv(score=s, correct=CORRECT.astype(int)) for s in (50 + 50 * SCORES, SCORES)
    )
    answer = calibrate(client, calibration=percent, evaluation=shares)
    (error,) = answer.json()["errors"]
    assert error["location"] == "evaluation.score"
    assert "send both on one scale" in error["message"]
    calibrated(client, {"name": "percent"}, calibration=percent)
    refused = evaluate(client, "percent", "shares", shares)
    assert refused.json()["errors"] == [error]
    assert evaluate(client, "percent", "same", percent).is_success


def test_columns_that_are_not_read_are_named(client) -> None:
    ids = np.arange(ROWS) // 5
    columns = {"score": SCORES, "correct": CORRECT.astype(int), "confidence": SCORES}
    table = csv(doc_id=ids, **columns)
    (note,) = (n for n in calibrated(client, CONFIG, calibration=table)["warnings"] if "not r" in n)
    assert note == (
        "Other columns are not read: `doc_id`, `confidence`. If answers belong together, as those "
        "about one document, call the column that tells which `group`."
    )
    table = csv(group=ids, **columns)
    (note,) = (n for n in calibrated(client, CONFIG, calibration=table)["warnings"] if "not r" in n)
    assert note == "Other columns are not read: `confidence`."


def test_columns_of_pairs_have_names_of_their_own(client) -> None:
    config = json.dumps(CONFIG | {"columns": {"group": ["doc_id"]}})
    table = csv(doc_id=np.arange(ROWS), score=SCORES, correct=CORRECT.astype(int))
    answer = calibrate(client, calibration=table, config=config)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "rename them to `score`, `correct`, `group` and `weight`" in answer.text
