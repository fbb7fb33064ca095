"""A model given pixels answers as it does given the values that numpy makes of them."""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from runner_models import PASSES_FOLDER, digits_model, linear, rows, save, weights

from howsure.bins_document.pass_plan import PassPlan
from howsure.onnx_head.spec import ExportEvent, ExportSpec
from howsure.preprocessing import PRESETS, Preprocessing
from howsure.statistics.bins.lookup import LookupTable
from howsure.statistics.records.order import tie_keys
from service.child.onnx.model_inputs import ModelInputs
from service.errors import InvalidConfig, InvalidInput
from service.graph.description import TensorSpec
from service.runner.messages.convert import FieldError, convert

DIGITS = np.load(PASSES_FOLDER / "digits_passes.npz")
X, LABELS = DIGITS["evaluation_inputs"], DIGITS["evaluation_labels"]
DROPOUT = PassPlan("dropout_variance", passes=6, seed=0)
ENSEMBLE = PassPlan("ensemble_variance", passes=6, seed=0)
GRADIENT = PassPlan("gradient_norm", passes=4, seed=0, step=1e-3)
# Of 17 levels of grey, as the digits are.
GREY = Preprocessing(colour="grey", scale=1 / 16, mean=(0.0,), std=(1.0,))
PIXELS = (X * 16).astype(np.uint8).transpose(0, 2, 3, 1)


SPEC = TensorSpec("inputs", "float32", (None, 1, 8, 8))
INTEGERS = dataclasses.replace(SPEC, dtype="uint8")


def inspected(pool: Any, files: Any, *plans: Any, **options: Any) -> Any:
    return pool.inspect(files, top_k=(1, 5), passes=plans, **options)


def check_same(one: Any, other: Any) -> None:
    np.testing.assert_equal(dataclasses.asdict(one), dataclasses.asdict(other))


MODELS = [(["small_cnn"], ()), (["small_cnn"], (GRADIENT,))]
MODELS += [(["hidden_dropout_cnn"], (DROPOUT,)), (["member_0", "member_1"], (ENSEMBLE,))]


@pytest.mark.parametrize(("names", "plans"), MODELS)
def test_pixels_are_answered_and_recorded_as_their_values(pool, names, plans):
    files, n = digits_model(*names), 40
    loaded = inspected(pool, files, *plans, trial={"pixels": PIXELS[:n]}, preprocessing=GREY)
    resolved = json.loads(json.dumps(loaded.resolved))
    assert resolved["preprocessing"] == GREY.as_dict()
    values, pixels = {"inputs": X[:n]}, {"pixels": PIXELS[:n]}  # values are as they are, always
    check_same(pool.predict(files, resolved, pixels), pool.predict(files, resolved, values))
    records = pool.record(files, resolved, pixels, LABELS[:n], seed=3)
    of_values = pool.record(files, resolved, values, LABELS[:n], seed=3)
    # Samples are told apart by what was sent, not by what was made of it.
    np.testing.assert_array_equal(records.tie_key, tie_keys(PIXELS[:n], 3))
    check_same(records, dataclasses.replace(of_values, tie_key=records.tie_key))
    if not plans:  # without preprocessing its key is what it always was
        plain = inspected(pool, files, trial={"inputs": X[:n]}).resolved
        assert "preprocessing" not in plain
        assert plain | {"preprocessing": GREY.as_dict()} == loaded.resolved
        check_same(pool.predict(files, plain, values), pool.predict(files, resolved, pixels))


def test_pixels_is_a_name_like_any_other_without_preprocessing(pool, tmp_path):
    model, matrix = linear(), weights()
    model.graph.input[0].name = model.graph.node[0].input[0] = "pixels"
    files = save(tmp_path, model)
    resolved = inspected(pool, files, trial={"pixels": rows(20)}).resolved
    outputs = pool.predict(files, resolved, {"pixels": rows(5)})
    np.testing.assert_array_equal(outputs.top_classes[:, 0], (rows(5) @ matrix).argmax(axis=1))


UNSUITED = [([SPEC, SPEC], {}, "several")]
UNSUITED += [([TensorSpec("x", "float32", (None, 6))], {}, r"\[rows, 1, any, any\]")]
UNSUITED += [([SPEC], {"colour": "rgb", "mean": (0.0,) * 3, "std": (1.0,) * 3}, r"3, any, any\]")]
UNSUITED += [([SPEC], {"layout": "nhwc"}, r"\[rows, any, any, 1\]")]
UNSUITED += [([SPEC], {"resize": (7, 8)}, r"\[rows, 1, 7, 8\]"), ([INTEGERS], {}, "preset none")]


@pytest.mark.parametrize(("specs", "changes", "words"), UNSUITED)
def test_preprocessing_that_never_fits_the_inputs_is_refused(specs, changes, words):
    ModelInputs([SPEC], GREY).check_preprocessing()
    integers = ModelInputs([INTEGERS], structs.replace(GREY, scale=1.0))
    integers.check_preprocessing()
    feeds = integers.fitted({"pixels": PIXELS}, location="rows", start=0)
    np.testing.assert_array_equal(feeds["inputs"], X * 16)
    with pytest.raises(InvalidConfig, match=words) as refused:
        ModelInputs(specs, structs.replace(GREY, **changes)).check_preprocessing()
    assert refused.value.violations[0].location == "config.preprocessing"


INVALID_PIXELS = [
    ({"pixels": PIXELS[:, :7]}, "rows.pixels", "8 x 7"),
    ({"pixels": PIXELS[..., 0]}, "rows.pixels", "shape"),
    ({"pixels": np.repeat(PIXELS, 3, axis=3)}, "rows.pixels", "shape"),
    ({"pixels": X.transpose(0, 2, 3, 1)}, "rows.pixels[70][0][2][0]", "0 to 255"),
    ({"pixels": PIXELS.astype(int) * 100}, "rows.pixels[70][0][2][0]", "0 to 255"),
    ({"pixels": PIXELS, "inputs": X}, "rows", "'inputs'"),
]


@pytest.mark.parametrize(("arrays", "location", "words"), INVALID_PIXELS)
def test_invalid_pixels_are_refused_by_name(arrays, location, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        ModelInputs([SPEC], GREY).fitted(arrays, location="rows", start=70)
    assert refused.value.violations[0].location == location


def test_an_exported_file_is_compared_on_pixels(pool):
    """The file takes the model's own input; the rows that it is tried on are pixels."""
    files, n = digits_model("small_cnn"), 300  # more than are converted at a time
    of_pixels = inspected(pool, files, trial={"pixels": PIXELS[:9]}, preprocessing=GREY).resolved
    of_values = inspected(pool, files, trial={"inputs": X[:9]}).resolved
    half, edges = np.array([0.25, 0.75]), np.float32([-np.inf, 0.3, np.inf])
    columns = dict.fromkeys(("probability", "lower", "upper", "mean_uncertainty"), half)
    options = {"n_top": 5, "n_classes": 10, "ood_threshold": None, "accept_thresholds": ()}
    event = ExportEvent(1, "entropy", LookupTable(edges=edges, **columns))
    spec = ExportSpec(events=(event,), metadata={}, **options)
    exported = pool.export(files, of_pixels, spec, {"pixels": PIXELS[:n]})
    expected = pool.export(files, of_values, spec, {"inputs": X[:n]})
    assert exported.content == expected.content
    assert {len(output) for output in exported.outputs.values()} == {n}
    np.testing.assert_equal(exported.outputs, expected.outputs)


INVALID = [{"resize": 0}, {"resize": [1, 2, 3]}, {"crop": 224}, {"interpolation": "lanczos5"}]
INVALID += [{"colour": "cmyk"}, {"layout": "nhw"}, {"scale": 0}, {"mean": [0.0]}]
INVALID += [{"std": [1.0, 1.0, 0.0]}, {"std": [1.0, 1.0, float("nan")]}]


@pytest.mark.parametrize("changes", INVALID)
def test_invalid_preprocessing_is_refused(changes):
    with pytest.raises(FieldError):
        convert(PRESETS["clip"].as_dict() | changes, Preprocessing)
