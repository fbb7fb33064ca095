"""A model given pixels answers as it does given the values that numpy makes of them."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from runner_models import (
    N_FEATURES,
    PASSES_FOLDER,
    digits_model,
    linear,
    rows,
    save,
    softmax_of_two,
    weights,
)

from howsure.statistics.bins.lookup import LookupTable
from howsure.statistics.records.order import tie_keys
from service.child.onnx.model_inputs import ModelInputs
from service.errors import InvalidConfig, InvalidDataset, InvalidInput
from service.graph.description import TensorSpec
from service.graph.export_spec import ExportEvent, ExportSpec
from service.runner.child_requests import check_loaded_model
from service.runner.messages.convert import FieldError, convert
from service.runner.messages.passes import PassPlan
from service.runner.messages.preprocessing import PRESETS, Preprocessing

DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")
X, LABELS = DIGITS["evaluation_inputs"], DIGITS["evaluation_labels"]
TOP_K = (1, 5)
DROPOUT = PassPlan("dropout_variance", passes=6, seed=0)
LAST_LAYER = PassPlan("last_layer_dropout_variance", passes=6, seed=0)
ENSEMBLE = PassPlan("ensemble_variance", passes=6, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=4, seed=0, step=1e-3)
# Of 17 levels of grey, as the digits are.
GREY = Preprocessing(colour="grey", scale=1 / 16, mean=(0.0,), std=(1.0,))
PIXELS = (X * 16).astype(np.uint8).transpose(0, 2, 3, 1)


def inspected(pool: Any, files: Any, *plans: Any, **options: Any) -> Any:
    return pool.inspect(files, top_k=TOP_K, passes=plans, **options)


def check_same(one: Any, other: Any) -> None:
    np.testing.assert_equal(dataclasses.asdict(one), dataclasses.asdict(other))


@pytest.mark.parametrize(
    ("names", "plan"),
    [
        (["small_cnn"], None),
        (["small_cnn"], LAST_LAYER),
        (["small_cnn"], GRADIENT),
        (["hidden_dropout_cnn"], DROPOUT),
        (["variational_mlp"], ENSEMBLE),
        (["member_0", "member_1"], ENSEMBLE),
    ],
    ids=lambda found: found[0] if isinstance(found, list) else getattr(found, "measure", "plain"),
)
def test_pixels_are_answered_and_recorded_as_their_values(pool, names, plan):
    files, plans, n = digits_model(*names), () if plan is None else (plan,), 40
    found = inspected(pool, files, *plans, trial={"pixels": PIXELS[:n]}, preprocessing=GREY)
    resolved = json.loads(json.dumps(found.resolved))
    assert resolved["preprocessing"] == GREY.as_dict()
    values, pixels = {"inputs": X[:n]}, {"pixels": PIXELS[:n]}  # values are as they are, always
    check_same(pool.predict(files, resolved, pixels), pool.predict(files, resolved, values))
    records = pool.record(files, resolved, pixels, LABELS[:n], seed=3)
    of_values = pool.record(files, resolved, values, LABELS[:n], seed=3)
    # Samples are told apart by what was sent, not by what was made of it.
    np.testing.assert_array_equal(records.tie_key, tie_keys(PIXELS[:n], 3))
    check_same(records, dataclasses.replace(of_values, tie_key=records.tie_key))


def test_preprocessing_changes_nothing_else_of_the_resolved_model(pool):
    files = digits_model("small_cnn")
    of_values = inspected(pool, files, trial={"inputs": X[:40]})
    of_pixels = inspected(pool, files, trial={"pixels": PIXELS[:40]}, preprocessing=GREY)
    assert "preprocessing" not in of_values.resolved  # its key is what it always was
    assert of_values.resolved | {"preprocessing": GREY.as_dict()} == of_pixels.resolved
    check_same(
        pool.predict(files, of_values.resolved, {"inputs": X}),
        pool.predict(files, of_pixels.resolved, {"pixels": PIXELS}),
    )


def test_pixels_is_a_name_like_any_other_without_preprocessing(pool, tmp_path):
    matrix = weights()
    model = make_model(
        [node("MatMul", ["pixels", "w"], ["y"])],
        inputs=[value("pixels", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", matrix)],
    )
    files = save(tmp_path, model)
    resolved = inspected(pool, files, trial={"pixels": rows(20)}).resolved
    found = pool.predict(files, resolved, {"pixels": rows(5)})
    np.testing.assert_array_equal(found.top_classes[:, 0], (rows(5) @ matrix).argmax(axis=1))


def test_integers_take_pixels_as_they_are(pool, tmp_path):
    flat = make_model(
        [
            node("Flatten", ["x"], ["flat"]),
            node("Cast", ["flat"], ["f"], to=TensorProto.FLOAT),
            node("MatMul", ["f", "w"], ["y"]),
        ],
        inputs=[value("x", ("N", 2, 3, 3), TensorProto.UINT8)],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", np.random.default_rng(0).normal(0, 0.01, (18, 10)))],
    )
    files = save(tmp_path, flat)
    pixels = np.random.default_rng(1).integers(0, 256, (9, 2, 3, 3), dtype=np.uint8)
    given = Preprocessing(colour="bgr", layout="nhwc")
    resolved = inspected(pool, files, trial={"pixels": pixels}, preprocessing=given).resolved
    found = pool.predict(files, resolved, {"pixels": pixels})
    plain = inspected(pool, files, trial={"x": pixels}).resolved
    check_same(found, pool.predict(files, plain, {"x": pixels[..., ::-1].copy()}))


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        (softmax_of_two(weights()), PRESETS["imagenet"], "several: 'left', 'right'"),
        (linear(), PRESETS["imagenet"], r"it makes \[rows, 3, 224, 224\] of pictures"),
    ],
)
def test_a_model_that_takes_no_pictures_is_refused(pool, tmp_path, model, given, told):
    trial = {"pixels": np.zeros((4, 224, 224, 3), np.uint8)}
    with pytest.raises(InvalidConfig, match=told) as caught:
        inspected(pool, save(tmp_path, model), trial=trial, preprocessing=given)
    assert caught.value.violations[0].location == "config.preprocessing"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"colour": "rgb", "mean": (0.0,) * 3, "std": (1.0,) * 3}, r"\[rows, 3, any, any\]"),
        ({"layout": "nhwc"}, r"\[rows, any, any, 1\]"),
        ({"resize": (7, 8)}, r"\[rows, 1, 7, 8\]"),
    ],
)
def test_preprocessing_that_never_fits_the_input_is_refused_at_once(changed, told):
    spec = TensorSpec("x", "float32", (None, 1, 8, 8))
    given = dataclasses.replace(GREY, **changed)
    with pytest.raises(InvalidConfig, match=told):
        ModelInputs([spec], given).check_preprocessing()
    ModelInputs([spec], GREY).check_preprocessing()


def test_fractions_for_integers_are_refused():
    spec = TensorSpec("x", "uint8", (None, 1, 8, 8))
    with pytest.raises(InvalidConfig, match=r"fractions of pixels.*preset none"):
        ModelInputs([spec], GREY).check_preprocessing()
    ModelInputs([spec], dataclasses.replace(GREY, scale=1.0)).check_preprocessing()


@pytest.mark.parametrize(
    ("arrays", "location", "told"),
    [
        ({"pixels": PIXELS[:, :7]}, "pixels", "pictures of 8 x 7 do not suit"),
        ({"pixels": PIXELS[..., 0]}, "pixels", "expected shape"),
        ({"pixels": np.repeat(PIXELS, 3, axis=3)}, "pixels", "expected shape"),
        ({"pixels": X.transpose(0, 2, 3, 1)}, "pixels[", "expected an integer from 0 to 255"),
        ({"pixels": PIXELS.astype(int) * 100}, "pixels[", "from 0 to 255"),
        ({"pixels": PIXELS, "inputs": X}, "", "leave out 'inputs'"),
    ],
)
def test_invalid_pixels_are_refused_by_name(arrays, location, told):
    spec = TensorSpec("inputs", "float32", (None, 1, 8, 8))
    with pytest.raises(InvalidInput, match=told) as caught:
        ModelInputs([spec], GREY).fitted(arrays, location="rows", start=70)
    found = caught.value.violations[0].location
    assert found.startswith(f"rows.{location}" if location else "rows")
    assert "[" not in found or int(found.split("[")[1].rstrip("]")) >= 70


def test_invalid_pixels_of_sets_and_of_requests_are_named(pool):
    files, bad = digits_model("small_cnn"), {"pixels": PIXELS[:9, :7]}
    with pytest.raises(InvalidDataset, match=r"calibration\.pixels: pictures of 8 x 7"):
        inspected(pool, files, trial=bad, preprocessing=GREY)
    resolved = inspected(pool, files, trial={"pixels": PIXELS[:9]}, preprocessing=GREY).resolved
    with pytest.raises(InvalidInput, match=r"inputs\.pixels: pictures of 8 x 7"):
        pool.predict(files, resolved, bad)


def test_an_exported_file_is_compared_on_pixels(pool):
    """The file takes the model's own input; the rows that it is tried on are pixels."""
    files = digits_model("small_cnn")
    of_pixels = inspected(pool, files, trial={"pixels": PIXELS[:9]}, preprocessing=GREY).resolved
    of_values = inspected(pool, files, trial={"inputs": X[:9]}).resolved
    half = np.array([0.25, 0.75])
    edges = np.float32([-np.inf, 0.3, np.inf])
    table = LookupTable(
        edges=edges, probability=half, lower=half, upper=half, mean_uncertainty=half
    )
    spec = ExportSpec(
        events=(ExportEvent(1, "entropy", table),),
        n_top=5,
        n_classes=10,
        ood_threshold=None,
        accept_thresholds=(),
        metadata={},
    ).as_dict()
    n = 300  # more than are converted at a time
    found = pool.export(files, of_pixels, spec, {"pixels": PIXELS[:n]})
    expected = pool.export(files, of_values, spec, {"inputs": X[:n]})
    assert found.content == expected.content
    assert {len(output) for output in found.outputs.values()} == {n}
    np.testing.assert_equal(found.outputs, expected.outputs)


@pytest.mark.parametrize(
    "changed",
    [
        {"resize": 0},
        {"resize": [1, 2, 3]},
        {"crop": 224},
        {"interpolation": "lanczos5"},
        {"colour": "cmyk"},
        {"layout": "nhw"},
        {"scale": 0},
        {"mean": [0.0]},
        {"std": [1.0, 1.0, 0.0]},
        {"std": [1.0, 1.0, float("nan")]},
    ],
)
def test_invalid_preprocessing_is_refused(changed):
    with pytest.raises(FieldError):
        convert(PRESETS["clip"].as_dict() | changed, Preprocessing)


@pytest.mark.parametrize("preset", PRESETS.values())
def test_stored_preprocessing_is_read_back(preset):
    assert convert(json.loads(json.dumps(preset.as_dict())), Preprocessing) == preset


def test_a_child_with_preprocessing_of_its_own_is_not_believed(pool):
    found = inspected(
        pool, digits_model("small_cnn"), trial={"pixels": PIXELS[:9]}, preprocessing=GREY
    )
    check_loaded_model(found, (), n_models=1, preprocessing=GREY)
    for other in (None, PRESETS["none"]):
        with pytest.raises(FieldError, match="preprocessing differs"):
            check_loaded_model(found, (), n_models=1, preprocessing=other)
