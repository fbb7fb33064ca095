"""What the parent believes of the passes that a child plans: no more than it asked for."""

import json
from dataclasses import replace

import pytest

from service.graph.description import OnnxModelDescription, OutputChoice, TensorSpec
from service.runner.child_requests import check_loaded_model
from service.runner.messages.convert import FieldError, convert, to_fields
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.messages.passes import PassPlan

CHOICE = OutputChoice("y", "logits", "y", "said", 4)
ASKED = (
    PassPlan("dropout_variance", 20, seed=1),
    PassPlan("last_layer_dropout_variance", 20, seed=1),
    PassPlan("gradient_norm", 16, seed=1, step=1e-3),
)
FOUND = (
    ASKED[0],
    replace(ASKED[1], rate=0.1, feature_shape=(8,)),
    replace(ASKED[2], passes=3, scales={"x": (1.0, 0.5, 2.0)}, divisible=False),
)
ENSEMBLE = PassPlan("ensemble_variance", 20, seed=1)


def loaded(*passes, averaged=False, members=0, **costs):
    return LoadedOnnxModel(
        description=OnnxModelDescription(
            inputs=(TensorSpec("x", "float32", (None, 3)),),
            outputs=(TensorSpec("y", "float32", None),),
            opset=17,
            ir_version=8,
            class_labels=None,
            external_files=(),
            fixed_batch=None,
        ),
        output=CHOICE,
        top_k=(1,),
        provider="CPUExecutionProvider",
        versions={},
        members=(CHOICE,) * members,
        passes=passes,
        averaged=averaged,
        costs={"plain": 1.0} | {plan.measure: 2.0 for plan in passes} | costs,
    )


def test_what_an_honest_child_plans_is_taken():
    check_loaded_model(loaded(*FOUND), ASKED, n_models=1)
    check_loaded_model(loaded(), (), n_models=1)
    check_loaded_model(loaded(ENSEMBLE, averaged=True), (ENSEMBLE,), n_models=1)
    of_three = replace(ENSEMBLE, passes=3)
    check_loaded_model(loaded(of_three, averaged=True, members=2), (ENSEMBLE,), n_models=3)
    check_loaded_model(loaded(averaged=True, members=2), (), n_models=3)


@pytest.mark.parametrize(
    ("position", "change"),
    [
        (0, {"passes": 2**62}),
        (0, {"seed": 2}),
        (0, {"rate": 0.5}),
        (0, {"measure": "ensemble_variance"}),
        (0, {"divisible": False}),
        (0, {"feature_shape": (2**62,)}),
        (0, {"scales": {"x": (1.0,)}}),
        (1, {"passes": 21}),
        (1, {"rate": None}),
        (1, {"rate": 1.0}),
        (1, {"feature_shape": None}),
        (2, {"passes": 4}),
        (2, {"step": 1e-2}),
        (2, {"scales": None}),
        (2, {"scales": {"z": (1.0, 0.5, 2.0)}}),
        (2, {"scales": {"x": (1.0, 0.0, 2.0)}}),
        (2, {"scales": {"x": (1.0,) * 17}, "passes": 17}),
    ],
)
def test_another_plan_is_refused(position, change):
    plans = list(FOUND)
    plans[position] = replace(plans[position], **change)
    with pytest.raises(FieldError):
        check_loaded_model(loaded(*plans), ASKED, n_models=1)


@pytest.mark.parametrize(
    ("found", "asked", "n_models"),
    [
        (loaded(), ASKED, 1),
        (loaded(*FOUND, *FOUND), ASKED, 1),
        (loaded(averaged=True), (), 1),
        (loaded(averaged=True, members=1), (), 3),
        (loaded(ENSEMBLE, averaged=True, members=2), (ENSEMBLE,), 3),
        (loaded(ENSEMBLE), (ENSEMBLE,), 1),
        (loaded(more=1.0), (), 1),
    ],
)
def test_another_model_than_was_asked_for_is_refused(found, asked, n_models):
    with pytest.raises(FieldError):
        check_loaded_model(found, asked, n_models=n_models)


@pytest.mark.parametrize("value", ["1", "nan", 10**400, -1, True, float("inf")])
@pytest.mark.parametrize(
    "path",
    [
        ("costs", "plain"),
        ("passes", 0, "rate"),
        ("passes", 2, "step"),
        ("passes", 2, "scales", "x", 0),
    ],
)
def test_impossible_numbers_are_refused(path, value):
    fields = json.loads(json.dumps(to_fields(loaded(*FOUND))))
    place = fields
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(FieldError):
        convert(fields, LoadedOnnxModel)
