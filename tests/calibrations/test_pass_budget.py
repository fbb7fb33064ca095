"""Cost of an answer, and the limit on the rows of passes."""

from dataclasses import asdict
from typing import Any

import pytest

from howsure.bins_document.pass_plan import PassPlan
from service.calibrations.pass_limits import check_rows
from service.errors import TooLarge
from service.runner.model_description import ModelDescription, ModelRuns, runs_of


def model(
    *plans: PassPlan, averaged: bool = False, members: int = 0, n_inputs: int = 1, ms: float = 2.0
) -> dict[str, Any]:
    costs = {"plain": {"passes": 1, "ms_per_row": ms}}
    costs |= {p.measure: {"passes": p.runs, "ms_per_row": ms * p.passes} for p in plans}
    return {
        "inputs": [{"name": str(i)} for i in range(n_inputs)],
        "members": [{"label": str(i)} for i in range(members)],
        "costs": costs,
        "resolved": {"passes": [asdict(plan) for plan in plans], "averaged": averaged},
    }


DROPOUT = PassPlan("dropout_variance", passes=20, seed=0)
LAST_LAYER = PassPlan("last_layer_dropout_variance", passes=20, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=32, seed=0, step=1e-3)
JACOBIAN = PassPlan("jacobian_norm", passes=32, seed=0, step=1e-3)
RANDOM = PassPlan("ensemble_variance", passes=20, seed=0)


COSTS = [
    (model(), ["entropy"], ModelRuns(1, 2.0)),
    (model(DROPOUT), ["dropout_variance"], ModelRuns(21, 42.0)),
    (model(LAST_LAYER), ["last_layer_dropout_variance"], ModelRuns(1, 42.0)),
    (model(DROPOUT, GRADIENT), ["gradient_norm"], ModelRuns(65, 66.0)),
    (model(JACOBIAN), ["jacobian_norm"], ModelRuns(65, 66.0)),
    (model(GRADIENT, JACOBIAN), ["gradient_norm", "jacobian_norm"], ModelRuns(65, 66.0)),
    (model(RANDOM, averaged=True), ["entropy"], ModelRuns(20, 40.0)),
    (model(averaged=True, members=3), ["entropy"], ModelRuns(3, 6.0)),
    ({"resolved": {"output": {}}}, ["entropy"], ModelRuns(1, None)),
    (model(DROPOUT) | {"costs": {}}, ["dropout_variance"], ModelRuns(21, None)),
]


@pytest.mark.parametrize(("onnx_model", "measures", "expected"), COSTS)
def test_what_an_answer_costs(onnx_model, measures: list[str], expected: ModelRuns) -> None:
    assert runs_of(onnx_model, measures) == expected


TOO_MANY_ROWS = [
    (model(DROPOUT), 1000, "config.dropout.passes", "9 passes"),
    (model(DROPOUT, LAST_LAYER), 1000, "config.dropout.passes", "9 passes"),
    (model(GRADIENT), 1000, "config.gradient.directions", "4 directions"),
    (model(GRADIENT, JACOBIAN), 1000, "config.gradient.directions", "4 directions"),
    (model(GRADIENT, n_inputs=2), 1000, "config.gradient.directions", "2 directions"),
    (model(DROPOUT, GRADIENT), 250, "config.gradient.directions", "9 directions"),
    (model(RANDOM, averaged=True), 1000, "config.ensemble.passes", "10 passes"),
    (model(RANDOM, averaged=True, members=20), 1000, "model", "10 models"),
    (model(DROPOUT), 5000, "calibration", "476 samples"),
    (model(DROPOUT, GRADIENT), 1000, "calibration", "117 samples"),
]


@pytest.mark.parametrize(("onnx_model", "n_samples", "location", "fits"), TOO_MANY_ROWS)
def test_what_would_fit(onnx_model, n_samples: int, location: str, fits: str) -> None:
    with pytest.raises(TooLarge) as refused:
        check_rows(ModelDescription(onnx_model), n_samples, limit=10_000)
    (violation,) = refused.value.violations
    assert violation.location == location
    assert f"at most {fits}" in violation.message


@pytest.mark.parametrize("onnx_model", [model(), model(LAST_LAYER), {"resolved": {}}])
def test_one_run_of_each_row_always_fits(onnx_model) -> None:
    check_rows(ModelDescription(onnx_model), 10**9, limit=1, location="evaluation")


def test_the_limit_itself_fits() -> None:
    check_rows(ModelDescription(model(DROPOUT)), 100, limit=2100)
    with pytest.raises(TooLarge):
        check_rows(ModelDescription(model(DROPOUT)), 100, limit=2099)


TIMES = [
    (1e-4, "1 second"),
    (1.0, "105 seconds"),
    (10.0, "18 minutes"),
    (100.0, "3 hours"),
    (1e4, "12 d"),
]


@pytest.mark.parametrize(("ms", "time"), TIMES)
def test_the_time_is_told(ms: float, time: str) -> None:
    with pytest.raises(TooLarge) as refused:
        check_rows(ModelDescription(model(DROPOUT, ms=ms)), 5000, limit=1000, location="evaluation")
    (violation,) = refused.value.violations
    assert violation.location == "evaluation"
    assert f"about {time}" in violation.message
