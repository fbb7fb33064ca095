"""The learned measure of models whose prediction is a mean over members or passes."""

import numpy as np
import pytest
from bins_documents import exported, learned_uncertainty, looked_up, served_table
from model_services import (
    MEMBERS,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
    probabilities,
    uncertainties,
)

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:100]
CASES = {
    "ensemble": (MEMBERS, {}),
    "variational": (("variational_mlp.onnx",), {"ensemble": {"passes": 6}}),
}


def calibrated(client, case: str) -> dict:
    models, config = CASES[case]
    fit = {"name": case, "measures": ["learned", "ensemble_variance"], "serve": {"1": "learned"}}
    files = [model_file(name) for name in models]
    made = calibrate_models(client, files, fit | config, calibration=as_file(SETS)).json()
    assert made["status"] == "succeeded", made["error"]
    return made


@pytest.mark.parametrize("case", CASES)
def test_answers_are_on_the_curve(client, case) -> None:
    made = calibrated(client, case)
    table = served_table(exported(client, made["id"]), 1)
    assert (table["measure"], table["lookup"]) == ("learned", "smooth")
    found = predictions(client, made["id"], ROWS)
    expected = looked_up(table, uncertainties(found))
    assert [row["top1"]["bin"] for row in found] == expected["bin"].tolist()
    served = [[row["top1"]["probability"], *row["top1"]["interval"]] for row in found]
    columns = np.stack([expected[name] for name in ("probability", "lower", "upper")], axis=1)
    np.testing.assert_allclose(served, columns, rtol=0, atol=1e-12)
    few = predictions(client, made["id"], ROWS[:3])
    assert uncertainties(few) == pytest.approx(uncertainties(found)[:3], abs=1e-4)


def test_the_measure_is_that_of_the_mean_probability(client) -> None:
    made = calibrated(client, "ensemble")
    mean = np.mean([probabilities(model_file(name), ROWS) for name in MEMBERS], axis=0)
    formula = served_table(exported(client, made["id"]), 1)["learned"]
    found = uncertainties(predictions(client, made["id"], ROWS))
    np.testing.assert_allclose(found, learned_uncertainty(formula, mean), rtol=1e-3, atol=1e-3)
