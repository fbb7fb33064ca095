"""An imported calibration answers exactly as the exported one."""

import json
from collections.abc import Iterator

import httpx
import pytest
from bins_documents import EARLIER, answers, changed, digits_set, exported, put
from job_workspaces import inputs_set
from model_services import MEMBERS, as_file, labelled_sets, model_file, quick
from report_scenarios import outputs
from runner_models import linear, rows, weights
from running_service import (
    DIGITS_PARTS,
    JSON,
    calibrated,
    digits,
    evaluate,
    npz,
    refit,
    service_on,
    swept_files,
)

pytestmark = pytest.mark.process
CREATED, NOT_FOUND = httpx.codes.CREATED, httpx.codes.NOT_FOUND
PLAIN = ["entropy", "margin"]
CONFIGS = [
    {"measures": ["learned"], "bins": 10},
    {"lookup": "step", "measures": PLAIN, "top_k": [1, 3], "bins": 10},
    {"lookup": "interpolated", "measures": PLAIN, "top_k": [1, 2, 3], "bins": 30},
    {"top_k": [2], "monotone": True, "interval": {"method": "hoeffding", "level": 0.9}},
    {"measures": ["energy"], "classes": [f"é {i}" for i in range(10)], "ood": {"level": 0.9}},
]


def imported(client: httpx.Client, document: dict | str, **params: str) -> dict:
    text = document if isinstance(document, str) else json.dumps(document)
    answer = client.post("/calibrations/import", content=text, headers=JSON, params=params)
    assert answer.status_code == CREATED, answer.text
    assert answer.headers["location"] == f"/calibrations/{answer.json()['id']}"
    return answer.json()


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Iterator[httpx.Client]:
    """A second service, which knows the digits model from another set and configuration."""
    with service_on(tmp_path_factory.mktemp("other")) as client:
        parts = DIGITS_PARTS | {"calibration": digits("evaluation.npz")}
        calibrated(client, {"name": "here", "bins": 3, "top_k": [1, 2, 3, 5]}, **parts)
        yield client


BY_TEXT = {json.dumps(config): config for config in CONFIGS}


@pytest.mark.parametrize("config", quick(BY_TEXT, *map(json.dumps, CONFIGS[:2])))
def test_another_service_answers_alike(client, other, config: dict) -> None:
    made = calibrated(client, {"name": "there"} | config, **DIGITS_PARTS)
    document = exported(client, made["id"])
    # As a program would send it that writes 1 for 1.0, and the keys in another order.
    sent = json.dumps(document, sort_keys=True).replace(".0,", ",")
    there = imported(other, sent)
    assert (there["name"], there["status"]) == ("there", "succeeded")
    assert there["finished_at"] is not None
    inputs = digits_set()["inputs"]
    pixels = [*inputs.tolist(), *(inputs[:10] * 255.0).tolist()]
    assert answers(other, there["id"], inputs=pixels) == answers(client, made["id"], inputs=pixels)
    again = exported(other, there["id"])
    for name in ("content_sha256", "tables"):
        assert again[name] == document[name]
    assert (there["serve"], there["accuracy"]) == (made["serve"], made["accuracy"])
    for name in ("top_k", "classes", "selective", "ood", "lookup", "interval"):
        assert there["config"][name] == made["config"][name]


@pytest.mark.parametrize("case", EARLIER, ids=["step", "interpolated", "learned"])
def test_a_document_of_an_earlier_version_answers_as_it_did(other, case) -> None:
    there = imported(other, case["document"], name="earlier")
    pixels = digits_set()["inputs"][: len(case["predictions"])].tolist()
    # The model's own scores may differ in their last bits on another machine.
    tolerance = 0 if case["document"]["tables"][0]["lookup"] == "step" else 1e-6
    predictions = answers(other, there["id"], inputs=pixels)
    for now, then in zip(predictions, case["predictions"], strict=True):
        assert now["class"] == then["class"]
        for event in (name for name in then if name.startswith("top")):
            ours, theirs = now[event], then[event]
            assert ours["bin"] == theirs["bin"]
            assert ours["uncertainty"] == pytest.approx(theirs["uncertainty"], rel=1e-4)
            numbers = [theirs["probability"], *theirs["interval"]]
            assert [ours["probability"], *ours["interval"]] == pytest.approx(numbers, abs=tolerance)
    again = exported(other, there["id"])
    for name in ("schema", "content_sha256", "tables"):
        assert again[name] == case["document"][name]


DROPOUT = {"measures": ["dropout_variance"], "dropout": {"passes": 4}}
ENSEMBLE = {"measures": ["ensemble_variance"]}


PLANS = [(["hidden_dropout_cnn.onnx"], DROPOUT, "serve.1"), (MEMBERS, ENSEMBLE, "model.members")]


@pytest.mark.parametrize(("models", "config", "location"), PLANS, ids=["passes", "members"])
def test_plans_of_passes_and_members_belong_to_it(client, models, config, location) -> None:
    """The plan fixes the masks of passes: another plan would be another measure."""
    sets = labelled_sets()
    files = [model_file(name) for name in models]
    name = {"name": config["measures"][0].replace("_", "-")}
    made = calibrated(client, name | config, model=files, calibration=as_file(sets, n=200))
    document = exported(client, made["id"])
    there = imported(client, document)
    pixels = sets["evaluation_inputs"][:40].tolist()
    assert answers(client, there["id"], inputs=pixels) == answers(client, made["id"], inputs=pixels)
    turned = {"model.members": document["model"]["members"][::-1]}
    plans = [{"model.passes.0.passes": 7}, {"model.passes": []}]
    for changes in [turned] if len(models) > 1 else plans:
        answer = client.post("/calibrations/import", json=changed(document, put(changes)))
        assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
        assert answer.json()["errors"][0]["location"] == f"document.{location}"


@pytest.fixture(scope="module")
def original(shelf) -> dict:
    return shelf("quick-digits")


def test_names_and_versions(client, original) -> None:
    document = changed(exported(client, original["id"]), put({"calibration.name": "numbered"}))
    for params, name in (({}, "numbered"), ({"name": "by-another-name"}, "by-another-name")):
        made = [imported(client, document, **params) for _ in range(2)]
        assert [(one["name"], one["version"]) for one in made] == [(name, 1), (name, 2)]
    params = {"name": original["id"]}
    refused = client.post("/calibrations/import", json=document, params=params)
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused.json()["errors"][0]["location"] == "name"


def test_without_samples_nothing_is_judged(client, original) -> None:
    there = imported(client, exported(client, original["id"]), name="bare")
    both = {"calibration": [there["id"], original["id"]]}
    comparison = client.get("/report", params=both).json()
    report, theirs = comparison["calibrations"]
    assert report["warnings"] == there["warnings"] != []
    for k, event in report["events"].items():
        assert event["accuracy"] == theirs["events"][k]["accuracy"]
        assert (event["verdict"], event["oracle"], event["baselines"]) == (None, None, {})
        for name, figures in event["measures"].items():
            assert (figures["scores"], figures["evaluation"]) == ({}, None)
            assert figures["bins"] == theirs["events"][k]["measures"][name]["bins"]
        assert {row["nll"]["value"] for row in event["comparison"]} == {None}
    assert report["model_scores"] == {}
    assert report["provenance"]["data"]["imported"]["id"] == original["id"]
    assert comparison["comparisons"][0]["to_decide"] is None
    later = evaluate(client, there["id"], "later", digits("evaluation.npz"))
    for answer in (refit(client, there["id"], bins=5), later):
        assert answer.status_code == httpx.codes.CONFLICT
        assert "bare@1" in answer.json()["detail"]


def test_it_outlives_the_calibration_whose_model_it_shares(database_url, tmp_path) -> None:
    sent = rows(20).tolist()
    parts = {"model": linear(weights()).SerializeToString(), "calibration": inputs_set()}
    with service_on(tmp_path, database_url=database_url) as client:
        source = calibrated(client, **parts)
        expected = answers(client, source["id"], inputs=sent)
        document = exported(client, source["id"])
        there = imported(client, document)
        assert client.delete(f"/calibrations/{source['id']}").is_success
        assert len(swept_files(tmp_path, database_url)) == 1, "the model, and no samples"
        assert answers(client, there["id"], inputs=sent) == expected
        second = imported(client, document)
        assert client.delete(f"/calibrations/{there['id']}").is_success
        assert answers(client, second["id"], inputs=sent) == expected
        assert client.delete(f"/calibrations/{second['id']}").is_success
        assert swept_files(tmp_path, database_url) == []
        assert client.post("/calibrations/import", json=document).status_code == NOT_FOUND


def test_the_largest_names_of_classes_are_listed_a_few_at_a_time(other) -> None:
    config = {"name": "wide", "measures": PLAIN}
    calibrated(other, config, calibration=npz(**outputs(300, seed=0)))
    document = exported(other, "wide@1")
    names = [f"{i:0200}" for i in range(5140)]
    wide = changed(document, put({"classes": names}))
    made = [imported(other, wide)["id"] for _ in range(3)]
    wider = changed(document, put({"classes": [*names, "x" * 200]}))
    refused = other.post("/calibrations/import", content=json.dumps(wider), headers=JSON)
    assert refused.json()["errors"][0]["location"] == "document.classes"
    query, listed, lengths = {"name": "wide", "limit": 200}, [], []
    while query.get("cursor", "first"):
        answer = other.get("/calibrations", params=query)
        listed += [row["id"] for row in answer.json()["calibrations"]]
        lengths.append(len(answer.content))
        query["cursor"] = answer.json()["next_cursor"]
    assert listed[:3] == made[::-1]
    assert len(listed) == 4
    assert max(lengths) < 3 * 2**20
