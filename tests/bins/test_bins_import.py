"""An imported calibration answers exactly as the exported one."""

import json

import httpx
import numpy as np
import pytest
from bins_documents import answers, changed, digits_set, exported
from model_services import as_file, calibrate_models, labelled_sets, model_file, quick
from running_service import DIGITS, JSON, calibrated, digits, kept_files, npz, service_on
from scipy.special import softmax

EARLIER = json.loads(
    (DIGITS.parents[1] / "tests" / "data" / "earlier" / "bins_documents.json").read_text()
)
CREATED, OK, CONFLICT = httpx.codes.CREATED, httpx.codes.OK, httpx.codes.CONFLICT
MODEL = digits("model.onnx")
PLAIN = ["entropy", "margin"]
CONFIGS = [
    {"bins": 10},
    {"lookup": "step", "measures": PLAIN, "bins": 10},
    {"lookup": "step", "top_k": [1, 3], "bins": 5},
    {"lookup": "interpolated", "measures": PLAIN, "top_k": [1, 2, 3], "bins": 30},
    {"top_k": [2], "monotone": True, "interval": {"method": "hoeffding", "level": 0.9}},
    {"measures": ["energy", "margin"], "serve": {"1": "energy"}, "ood": {"level": 0.9}},
    {"classes": [f"é {i}" for i in range(10)], "selective": [{"max_risk": 0.2}], "bins": 1},
]


def imported(client: httpx.Client, document: dict, **params: str) -> dict:
    answer = client.post("/calibrations/import", json=document, params=params)
    assert answer.status_code == CREATED, answer.text
    assert answer.headers["location"] == f"/calibrations/{answer.json()['id']}"
    return answer.json()


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A second service, which knows the digits model from another set and configuration."""
    with service_on(tmp_path_factory.mktemp("other")) as client:
        config = {"name": "here", "bins": 3, "top_k": [1, 2, 3, 5]}
        calibrated(client, config, model=MODEL, calibration=digits("evaluation.npz"))
        yield client


@pytest.mark.parametrize(
    "config",
    quick({json.dumps(config): config for config in CONFIGS}, *map(json.dumps, CONFIGS[:2])),
)
def test_another_service_answers_alike(client, other, config: dict) -> None:
    named = {"name": "digits"} | config
    made = calibrated(client, named, model=MODEL, calibration=digits("calibration.npz"))
    document = exported(client, made["id"])
    is_first = config.get("measures") == PLAIN and config["lookup"] != "smooth"
    assert document["schema"] == f"howsure.bins/{1 if is_first else 2}"
    # As a program would send it that writes 1 for 1.0, and the keys in another order.
    sent = json.dumps(document, sort_keys=True).replace(".0,", ",")
    answer = other.post("/calibrations/import", content=sent, headers=JSON)
    assert answer.status_code == CREATED, answer.text
    there = answer.json()
    assert (there["name"], there["status"]) == ("digits", "succeeded")
    assert there["finished_at"] is not None
    inputs = digits_set()["inputs"]
    rows = [*inputs.tolist(), *(inputs[:10] * 255.0).tolist()]
    assert answers(other, there["id"], inputs=rows) == answers(client, made["id"], inputs=rows)
    again = exported(other, there["id"])
    assert again["content_sha256"] == document["content_sha256"]
    assert again["tables"] == document["tables"]
    for name in ("serve", "accuracy"):
        assert there[name] == made[name]
    shared = ("top_k", "classes", "selective", "ood", "lookup", "interval")
    assert [there["config"][name] for name in shared] == [made["config"][name] for name in shared]


@pytest.mark.parametrize("case", EARLIER, ids=["step", "interpolated"])
def test_a_document_of_the_first_schema_answers_as_it_did(other, case) -> None:
    assert case["document"]["schema"] == "howsure.bins/1"
    there = imported(other, case["document"], name="earlier")
    rows = digits_set()["inputs"][: len(case["predictions"])].tolist()
    found = answers(other, there["id"], inputs=rows)
    # The model's own scores may differ in their last bits on another machine.
    for now, then in zip(found, case["predictions"], strict=True):
        assert now["class"] == then["class"]
        for event in (name for name in then if name.startswith("top")):
            measured = now[event].pop("uncertainty"), then[event].pop("uncertainty")
            assert measured[0] == pytest.approx(measured[1], rel=1e-4)
            if case["document"]["tables"][0]["lookup"] == "step":
                assert now[event] == then[event]
            else:
                assert now[event]["probability"] == pytest.approx(
                    then[event]["probability"], abs=1e-6
                )
    again = exported(other, there["id"])
    for name in ("schema", "content_sha256", "tables"):
        assert again[name] == case["document"][name]


@pytest.mark.parametrize("measure", ["learned", "entropy"])
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_alone_need_no_model(client, other, kind: str, measure: str) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(400, 6)) * 2
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    own = rng.random(400) + (logits.argmax(axis=1) != labels)
    scores = softmax(logits, axis=1) if kind == "probabilities" else logits
    measures = {"measures": ["supplied:own", measure], "serve": {"1": "supplied:own"}}
    arrays = {kind: scores, "labels": labels, "uncertainty_own": own}
    made = calibrated(client, measures | {"name": "own", "bins": 7}, calibration=npz(**arrays))
    there = imported(other, exported(client, made["id"]))

    assert there["model"] is None
    rows = {kind: scores[:50].tolist(), "supplied": {"own": own[:50].tolist()}}
    assert answers(other, there["id"], **rows) == answers(client, made["id"], **rows)


def test_measures_of_repeated_runs_come_with_their_plan(client) -> None:
    """The masks of the passes are fixed by the plan: another plan would be another measure."""
    sets = labelled_sets()
    config = {
        "name": "passes",
        "measures": ["dropout_variance", "entropy"],
        "serve": {"1": "dropout_variance"},
        "dropout": {"passes": 4},
    }
    made = calibrate_models(
        client, [model_file("hidden_dropout_cnn.onnx")], config, calibration=as_file(sets)
    ).json()
    assert made["status"] == "succeeded", made["error"]
    document = exported(client, made["id"])
    (plan,) = document["model"]["passes"]
    assert plan["passes"] == 4
    there = imported(client, document, name="elsewhere")

    rows = sets["evaluation_inputs"][:40].tolist()
    assert answers(client, there["id"], inputs=rows) == answers(client, made["id"], inputs=rows)

    for plans in ([plan | {"passes": 7}], []):
        other = changed(document, lambda found, plans=plans: found["model"].update(passes=plans))
        answer = client.post("/calibrations/import", json=other)
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
        (violation,) = answer.json()["errors"]
        assert violation["location"] == "document.serve.1"
        assert "dropout_variance" in violation["message"]


def test_members_of_an_ensemble_are_known_by_their_digests(client) -> None:
    files = [model_file(f"member_{i}.onnx") for i in range(3)]
    sets = labelled_sets()
    config = {"name": "ensemble", "measures": ["ensemble_variance", "entropy"]}
    made = calibrate_models(client, files, config, calibration=as_file(sets)).json()
    assert made["status"] == "succeeded", made["error"]
    document = exported(client, made["id"])

    there = imported(client, document)

    rows = sets["evaluation_inputs"][:40].tolist()
    assert answers(client, there["id"], inputs=rows) == answers(client, made["id"], inputs=rows)
    turned = changed(document, lambda found: found["model"]["members"].reverse())
    answer = client.post("/calibrations/import", json=turned)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert answer.json()["errors"][0]["location"] == "document.model.members"


def test_names_and_versions(client, digits_calibration) -> None:
    document = exported(client, digits_calibration["id"])
    newest = client.get("/calibrations", params={"name": "digits"}).json()["calibrations"][0]

    assert imported(client, document)["version"] == newest["version"] + 1
    assert imported(client, document, name="renamed")["name"] == "renamed"
    assert imported(client, document, name="renamed")["version"] == 2
    refused = client.post(
        "/calibrations/import", json=document, params={"name": digits_calibration["id"]}
    )
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused.json()["errors"][0]["location"] == "name"


def test_the_report_says_that_nothing_was_judged(client, digits_calibration) -> None:
    there = imported(client, exported(client, digits_calibration["id"]), name="judged")
    asked = {"calibration": there["id"]}
    report = client.get("/report", params=asked).json()
    original = client.get("/report", params={"calibration": digits_calibration["id"]}).json()

    assert report["warnings"] == there["warnings"]
    assert "nothing was judged" in report["warnings"][0]
    for k, event in report["events"].items():
        assert event["accuracy"] == original["events"][k]["accuracy"]
        assert (event["verdict"], event["oracle"], event["baselines"]) == (None, None, {})
        for name, found in event["measures"].items():
            assert (found["scores"], found["evaluation"]) == ({}, None)
            assert found["bins"] == original["events"][k]["measures"][name]["bins"]
        for row in event["comparison"]:
            assert row["nll"] == {"value": None, "std": None, "pooled": False, "evaluation": None}
    assert report["model_scores"] == {}
    imported_from = report["provenance"]["data"]["imported"]
    assert imported_from["id"] == digits_calibration["id"]
    for written in ("csv", "markdown"):
        answer = client.get("/report", params=asked | {"format": written})
        assert answer.status_code == OK, answer.text
        assert "None" not in answer.text
    both = {"calibration": [there["id"], digits_calibration["id"]]}
    compared = client.get("/report", params=both).json()["comparisons"][0]
    *by_event, last = compared["sentences"]
    assert len(by_event) == len(compared["events"])
    assert all("share no score" in sentence for sentence in by_event)
    assert "Both run the same model" in last
    assert compared["to_decide"] is None


def test_what_needs_samples_is_refused(client, digits_calibration) -> None:
    there = imported(client, exported(client, digits_calibration["id"]), name="bare")
    parts = {"evaluation": ("e.npz", digits("evaluation.npz")), "name": (None, "later")}

    refit = client.post(f"/calibrations/{there['id']}/refit", json={"bins": 5})
    judged = client.post(f"/calibrations/{there['id']}/evaluations", files=parts)

    for answer in (refit, judged):
        assert answer.status_code == CONFLICT
        assert "bare@1 was imported" in answer.json()["detail"]
        assert "no records" in answer.json()["detail"]


def test_it_outlives_the_calibration_whose_model_it_shares(database_url, tmp_path) -> None:
    rows = digits_set()["inputs"][:20].tolist()
    with service_on(tmp_path, database_url=database_url) as client:
        source = calibrated(client, model=MODEL, calibration=digits("calibration.npz"))
        expected = answers(client, source["id"], inputs=rows)
        document = exported(client, source["id"])
        there = imported(client, document)
        assert client.delete(f"/calibrations/{source['id']}").is_success
        assert len(kept_files(tmp_path)) == 1, "the model, and no samples"

    with service_on(tmp_path, database_url=database_url) as client:
        assert answers(client, there["id"], inputs=rows) == expected
        second = imported(client, document)
        assert client.delete(f"/calibrations/{there['id']}").is_success
        assert answers(client, second["id"], inputs=rows) == expected
        assert client.delete(f"/calibrations/{second['id']}").is_success
        assert kept_files(tmp_path) == []
        answer = client.post("/calibrations/import", json=document)
        assert answer.status_code == httpx.codes.NOT_FOUND
