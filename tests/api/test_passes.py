"""Measures that run the model more than once, from the upload to the answer."""

from typing import Any

import httpx
import numpy as np
import pytest
from pass_service import (
    CASES,
    MEMBERS,
    Case,
    as_file,
    labelled_sets,
    predictions,
    started,
    uncertainties,
)
from slow_cases import quick

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:40]


@pytest.fixture(scope="module", params=quick(CASES, "dropout", "gradient"))
def made(request, client) -> tuple[Case, dict[str, Any]]:
    return request.param, started(client, request.param)


def test_the_resource_says_what_it_costs(made) -> None:
    case, found = made
    costs = found["costs"]
    assert set(costs) == {"plain", case.measure}
    assert costs["plain"]["passes"] == 1
    assert all(cost["ms_per_row"] >= 0 for cost in costs.values())
    averaged = case.measure == "ensemble_variance"
    assert costs[case.measure]["passes"] == case.runs - (not averaged)
    assert [member["label"] for member in found["model"]["members"]] == (
        ["model.onnx"] * len(case.models) if len(case.models) > 1 else []
    )


def test_the_report_compares_cost_with_quality(client, made) -> None:
    case, found = made
    report = client.get("/report", params={"calibration": found["id"]}).json()
    event = report["events"]["1"]
    rows = {row["measure"]: row for row in event["comparison"]}

    assert set(rows) == {"entropy", case.measure}
    averaged = case.measure == "ensemble_variance"
    assert rows[case.measure]["passes"] == case.runs
    assert rows["entropy"]["passes"] == (case.runs if averaged else 1)
    assert rows[case.measure]["ms_per_row"] >= rows["entropy"]["ms_per_row"] > 0
    for name, row in rows.items():
        assert row["served"] == (name == case.measure)
        scores = event["measures"][name]
        for score in ("nll", "brier", "ece", "aurc", "conditional_entropy"):
            assert row[score]["value"] == scores["scores"][score]["mean"]
            assert row[score]["std"] == scores["scores"][score]["std"]
            assert row[score]["evaluation"] == scores["evaluation"][score]
        assert row["eor"]["value"] == scores["scores"]["eor"]["pooled"]
    nll = [row["nll"]["value"] for row in event["comparison"]]
    assert nll == sorted(nll)


def test_the_report_tells_what_fewer_passes_would_do(client, made) -> None:
    case, found = made
    report = client.get("/report", params={"calibration": found["id"]}).json()
    n_passes = 3 if case.models == MEMBERS else 6
    for name, n_samples in (("calibration", 600), ("evaluation", 200)):
        scores = report["model_scores"][name]
        rows = scores["passes"][case.measure]
        assert [row["passes"] for row in rows] == [n for n in (1, 2, 3, 5, 6) if n <= n_passes]
        assert scores["n_samples"] == n_samples
        if case.measure == "gradient_norm":
            assert all(row["nll"] is None and row["accuracy"] is None for row in rows)
        else:
            assert all(0 < row["accuracy"]["1"] <= 1 for row in rows)
            assert rows[0]["auroc"]["1"] is None, "one pass has no spread"
        assert 0.5 < rows[-1]["auroc"]["1"] <= 1
        if case.measure == "ensemble_variance":
            assert rows[-1]["accuracy"]["1"] == pytest.approx(scores["accuracy"]["1"], abs=1e-12)
            assert rows[-1]["nll"] == pytest.approx(scores["nll"], rel=1e-6)


def test_markdown_shows_both(client, made) -> None:
    case, found = made
    params = {"calibration": found["id"], "format": "markdown"}
    text = client.get("/report", params=params).text
    report = client.get("/report", params={"calibration": found["id"]}).json()

    assert text.count("### Measures compared") == 1
    row = next(r for r in report["events"]["1"]["comparison"] if r["measure"] == case.measure)
    (line,) = [line for line in text.splitlines() if line.startswith(f"| **{case.measure}** |")]
    cells = line.split(" | ")
    assert cells[1] == str(case.runs)
    assert f"{row['nll']['value']:.4f} ± {row['nll']['std']:.4f}" in cells[3]
    assert cells[3].endswith(f"/ {row['nll']['evaluation']:.4f}")
    for name in ("calibration", "evaluation"):
        _, _, after = text.partition(f"### {case.measure}, by its passes, {name}\n\n")
        block = after.split("\n\n")[0].splitlines()
        assert len({line.count("|") for line in block}) == 1
        last = report["model_scores"][name]["passes"][case.measure][-1]
        assert block[-1].startswith(f"| {last['passes']} |")
        assert f"{last['auroc']['1']:.4f}" in block[-1]


def test_a_row_is_answered_alike_whatever_comes_with_it(client, made) -> None:
    case, found = made
    together = predictions(client, found["id"], ROWS)
    again = predictions(client, found["id"], ROWS)
    parts = [predictions(client, found["id"], ROWS[a:b]) for a, b in ((0, 1), (1, 8), (8, 40))]
    apart = [prediction for part in parts for prediction in part]
    back = predictions(client, found["id"], ROWS[::-1])[::-1]

    assert together == again
    assert {p["top1"]["measure"] for p in together} == {case.measure}
    for other in (apart, back):
        np.testing.assert_allclose(uncertainties(other), uncertainties(together), rtol=2e-3)
        for one, two in zip(together, other, strict=True):
            assert one["class"] == two["class"]
            assert one["top1"]["bin"] == two["top1"]["bin"]
            assert one["top1"]["probability"] == two["top1"]["probability"]


def test_the_calibration_set_got_the_values_that_are_served(client, made) -> None:
    """The bins' counts are those of the served values of the calibration set's rows."""
    _, found = made
    rows = SETS["calibration_inputs"]
    served = [
        p for a in range(0, 600, 200) for p in predictions(client, found["id"], rows[a : a + 200])
    ]
    (table,) = [
        table
        for table in client.get(f"/calibrations/{found['id']}/bins").json()["tables"]
        if table["measure"] == found["serve"]["1"]
    ]
    counts = np.bincount([p["top1"]["bin"] for p in served], minlength=len(table["bins"]))
    assert counts.tolist() == [row["count"] for row in table["bins"]]
    right = np.array([p["class"] for p in served]) == SETS["calibration_labels"]
    assert found["accuracy"]["1"] == pytest.approx(right.mean(), abs=1e-12)


def test_refits_keep_it_or_leave_it_out(client, made) -> None:
    case, found = made
    wait = {"Prefer": "wait=60"}
    route = f"/calibrations/{found['id']}/refit"
    kept = client.post(route, json={"bins": 4}, headers=wait).json()
    assert kept["status"] == "succeeded", kept
    assert kept["costs"] == found["costs"]
    before, after = (predictions(client, x["id"], ROWS) for x in (found, kept))
    np.testing.assert_array_equal(uncertainties(before), uncertainties(after))

    without = client.post(route, json={"measures": ["entropy"]}, headers=wait).json()
    assert (without["status"], without["serve"]) == ("succeeded", {"1": "entropy"})
    classes = [p["class"] for p in predictions(client, without["id"], ROWS)]
    assert classes == [p["class"] for p in before]

    route = f"/calibrations/{without['id']}/refit"
    back = client.post(route, json={"measures": [case.measure]}, headers=wait).json()
    assert (back["status"], back["serve"]) == ("succeeded", {"1": case.measure})
    other = "gradient_norm" if case.measure != "gradient_norm" else "dropout_variance"
    refused = client.post(route, json={"measures": ["entropy", other]})
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    (error,) = refused.json()["errors"]
    assert error == {
        "location": "config.measures",
        "message": f"the records hold no {other}; calibrate anew",
    }


def test_further_sets_are_measured_too(client, made) -> None:
    case, found = made
    parts = [
        ("evaluation", ("e.npz", as_file(SETS, "evaluation", 200))),
        ("name", (None, "further")),
    ]
    answer = client.post(
        f"/calibrations/{found['id']}/evaluations", files=parts, headers={"Prefer": "wait=60"}
    ).json()
    assert answer["status"] == "succeeded", answer
    report = client.get("/report", params={"calibration": found["id"]}).json()
    evaluated = report["events"]["1"]["measures"][case.measure]["evaluation"]
    scores = answer["result"]["events"]["1"]["measures"][case.measure]["scores"]
    assert scores == pytest.approx(evaluated, rel=1e-12)
    passes = answer["result"]["model_scores"]["passes"][case.measure]
    assert passes == report["model_scores"]["evaluation"]["passes"][case.measure]


@pytest.mark.parametrize(
    "name",
    quick({name: name for name in ("dropout", "last layer", "variational", "gradient")}, "dropout"),
)
def test_the_seed_is_that_of_the_noise(client, name: str) -> None:
    case = CASES[name]
    first, same, other = (started(client, case, seed=seed) for seed in (3, 3, 4))
    values = [uncertainties(predictions(client, x["id"], ROWS)) for x in (first, same, other)]
    np.testing.assert_array_equal(values[0], values[1])
    assert np.mean(values[0] != values[2]) > 0.9
