"""What a child answers is checked before it is used: descriptions, plans, rows and failures."""

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scripted_child import loaded_model

from howsure.bins_document.pass_plan import PassPlan
from howsure.preprocessing import PRESETS
from howsure.statistics.input_ranges import ColumnRanges
from howsure.statistics.records.build import build_records
from service import errors
from service.runner.child_requests import checked_model
from service.runner.messages.convert import FieldError, convert, to_fields
from service.runner.messages.failures import raise_failure
from service.runner.messages.frames import HEADER, Frame, Kind, Status, encode, parse_header
from service.runner.messages.onnx_models import LoadedOnnxModel, packed_model, unpacked_model
from service.runner.messages.requests import LoadRequest
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.model_output import OutputMatrix, output_spec

LOADED = loaded_model(n_classes=4, top_k=(1, 2), class_labels=("a", "b", "c", "d"))
EXPECTED = output_spec(LOADED.resolved)
LABELS = np.array([0, 1, 3])
N_ROWS = len(LABELS)


def head(n_rows=N_ROWS):
    words = np.full((n_rows, EXPECTED.n_words), 0.25, np.float32)
    words[:, : EXPECTED.n_top] = np.arange(4)
    return words


def records(n_rows=N_ROWS, labels=LABELS):
    keys = np.zeros(n_rows, dtype=np.uint32)
    scores = np.random.default_rng(0).normal(size=(n_rows, 4))
    return build_records(scores, labels, tie_keys=keys, top_k=(1, 2), logits=True).to_arrays()


def test_valid_answers_are_taken():
    assert EXPECTED.read_rows({"rows": head()}, N_ROWS).outputs.top_classes.shape == (N_ROWS, 4)
    assert EXPECTED.records(records(), LABELS).n_samples == N_ROWS
    assert convert(to_fields(LOADED), LoadedOnnxModel) == LOADED


OTHER_MATRICES = [head()[:2], head()[:, :-1], head().astype(np.float64), head().ravel(), None]


@pytest.mark.parametrize("matrix", OTHER_MATRICES)
def test_a_matrix_of_another_shape_or_type_is_refused(matrix):
    with pytest.raises(FieldError):
        EXPECTED.read_rows({} if matrix is None else {"rows": matrix}, N_ROWS)


WRONG_CLASSES = [(0, number) for number in (4, -1, 0.5, np.nan)]
WRONG_NUMBERS = [*WRONG_CLASSES, (4, 1.1), (4, -0.1), (4, np.nan), (-1, np.inf)]


@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.parametrize(("place", "number"), WRONG_NUMBERS)
def test_a_value_out_of_range_is_refused(n_rows, place, number):
    words = head(n_rows)
    words[-1, place] = number
    with pytest.raises(FieldError):
        EXPECTED.read_words(words)


OTHER_RECORDS = [("label", lambda array: array[::-1].copy())]
OTHER_RECORDS += [("label", lambda array: array.astype(np.int64))]
OTHER_RECORDS += [(name, lambda array: array + 4) for name in ("label_rank", "top_classes")]
OTHER_RECORDS += [("top_logits", lambda array: array * np.float32(np.nan))]
OTHER_RECORDS += [(name, None) for name in ("uncertainty_entropy", "sum_squares")]
OTHER_RECORDS += [("uncertainty_more", lambda _: np.zeros(3, dtype=np.float32))]
OTHER_RECORDS += [("tie_key", lambda array: array[0]), ("top_log_odds", np.ravel)]
OTHER_RECORDS += [("weight", lambda _: np.ones(3))]
LARGE, MASS = 3e38, "uncertainty_neg_log_topk_mass_1"
# A fit fails on these, or tells nonsense.
FILLED = [("top_classes", 0), ("label_rank", 0), ("top_logits", np.inf), ("top_logits", -LARGE)]
FILLED += [("log_sum_exp", number) for number in (np.inf, LARGE, -1.0)]
FILLED += [("label_log_probability", number) for number in (np.inf, 1.0)]
FILLED += [(MASS, LARGE), (MASS, -LARGE), ("sum_squares", LARGE), ("label_logit", LARGE)]
OTHER_RECORDS += [(name, partial(np.full_like, fill_value=number)) for name, number in FILLED]
OTHER_RECORDS += [
    (name, lambda array: array[::-1].copy()) for name in ("top_classes", "label_rank")
]


@pytest.mark.parametrize(("name", "change"), OTHER_RECORDS)
def test_invalid_records_are_refused(name, change):
    arrays = records()
    array = arrays.pop(name, None)
    changed = arrays if change is None else arrays | {name: change(array)}
    with pytest.raises(FieldError):
        EXPECTED.records(changed, LABELS)
    with pytest.raises(FieldError):  # records of another number of rows
        EXPECTED.records(records(), LABELS[:2])


@pytest.mark.parametrize("n_rows", [1, 5000])
def test_the_limit_of_records_holds_valid_ones_and_not_much_more(n_rows):
    arrays = records(n_rows, np.zeros(n_rows, dtype=int))
    data = b"".join(encode(Frame(Kind.RECORD, 1, {}, arrays)))
    sent = parse_header(data[: HEADER.size]).tensor_bytes
    assert sent <= EXPECTED.most_record_bytes(n_rows) <= 2 * sent + 1000


def report(**changes):
    fields = {"code": "invalid-input", "message": "m", "violations": []} | changes
    raise_failure(Frame(Kind.LOAD, 1, fields, status=Status.FAILED), invalid=errors.InvalidDataset)


CODES = {"invalid-input": errors.InvalidDataset, "inference-failed": errors.InferenceFailed}
CODES |= {"deadline-exceeded": errors.DeadlineExceeded}


@pytest.mark.parametrize("code", CODES)
def test_reported_failures_are_raised(code):
    with pytest.raises(errors.ServiceError) as failure:
        report(code=code, violations=[["where", "what", "not-onnx"]])
    assert type(failure.value) is CODES[code]
    assert failure.value.violations == (
        errors.Violation("where", "what", errors.ModelRule.NOT_ONNX),
    )


IMPOSSIBLE = [{"code": "storage-full"}, {"message": "m" * 10_000}, {"message": "\ud800"}]
IMPOSSIBLE += [{"violations": [["where", "what"]]}, {"violations": [[1, 2, ""]]}]
IMPOSSIBLE += [{"violations": [["where", "what", "an unknown rule"]]}]


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_impossible_failures_are_refused(change):
    with pytest.raises(FieldError):
        report(**change)


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
OF_THREE = replace(ENSEMBLE, passes=3)
CLIP = PRESETS["clip"]


def planned(*passes, members=0, more_costs=(), **changes):
    costs = dict.fromkeys(["plain", *(plan.measure for plan in passes), *more_costs], 1.0)
    choices = (LOADED.output,) * members
    return loaded_model(*passes, members=choices, costs=costs, **changes)


def requested(passes, *, n_models=1, preprocessing=None):
    limits = {"device": "cpu", "threads": 1, "max_classes": 10, "max_nodes": 1}
    choices = {"passes": passes, "preprocessing": preprocessing, "top_k": (1, 5)}
    return LoadRequest(("model",) * n_models, {}, sandbox=SandboxRules(), **limits, **choices)


SPEC = {"name": "x", "dtype": "float32", "shape": None}
# Values of a description that no child may report; KeyError: the field is missing.
DESCRIPTIONS = [("provider", 3), ("provider", KeyError), ("top_k", [True])]
DESCRIPTIONS += [("output.n_classes", 1), ("output.kind", "odds"), ("output.positive_column", -1)]
DESCRIPTIONS += [("description.fixed_batch", 0), ("description.class_labels", [1.5])]
DESCRIPTIONS += [("description.inputs", [SPEC | {"name": "\udcff"}]), ("passes.2.scales.x.0", "1")]
COSTS = ("1", "nan", 10**400, -1, True, float("inf"))
DESCRIPTIONS += [("passes.0.rate", COSTS[-1]), *(("costs.plain", number) for number in COSTS)]


@pytest.mark.parametrize(("path", "value"), DESCRIPTIONS)
def test_impossible_descriptions_are_refused(path, value):
    fields = place = json.loads(json.dumps(to_fields(planned(*FOUND))))
    *steps, last = (int(step) if step.isdecimal() else step for step in path.split("."))
    for step in steps:
        place = place[step]
    place[last] = value
    if value is KeyError:
        del place[last]
    with pytest.raises(FieldError):
        convert(fields, LoadedOnnxModel)


@pytest.mark.parametrize("damaged", [{}, {"output": None}, {**LOADED.resolved, "top_k": [1.0]}])
def test_a_damaged_stored_description_is_refused(damaged):
    with pytest.raises(FieldError):
        output_spec(damaged)


LOADED_MODELS = [
    (planned(*FOUND), ASKED, {}, True),
    (planned(), (), {}, True),
    (planned(ENSEMBLE, averaged=True), (ENSEMBLE,), {}, True),
    (planned(OF_THREE, averaged=True, members=2), (ENSEMBLE,), {"n_models": 3}, True),
    (planned(preprocessing=CLIP), (), {"preprocessing": CLIP}, True),
    (planned(), ASKED, {}, False),
    (planned(*FOUND, *FOUND), ASKED, {}, False),
    (planned(averaged=True, members=1), (), {"n_models": 3}, False),
    (planned(ENSEMBLE, averaged=True, members=2), (ENSEMBLE,), {"n_models": 3}, False),
    (planned(ENSEMBLE), (ENSEMBLE,), {}, False),
    (planned(), (), {"preprocessing": CLIP}, False),
]
MORE = [{"n_classes": 11}, {"top_k": (1, 2**40)}, {"columns": {"entropy"}}, {"averaged": True}]
MORE += [{"scalar_outputs": ("y",)}, {"column_ranges": {"x": ColumnRanges((0.0,), (1.0,))}}]
MORE += [{"more_costs": ["more"]}, {"preprocessing": CLIP}]
LOADED_MODELS += [(planned(**more), (), {}, False) for more in MORE]


@pytest.mark.parametrize(("answer", "plans", "options", "is_taken"), LOADED_MODELS)
def test_a_model_is_taken_if_it_fits_the_request(answer, plans, options, is_taken):
    with nullcontext() if is_taken else pytest.raises(FieldError):
        checked_model(answer, requested(plans, **options))


# Changes of one field each, by the position of the plan.
CHANGES = [(0, {"passes": 2**62, "seed": 2, "rate": 0.5, "measure": "ensemble_variance"})]
CHANGES += [(0, {"divisible": False, "feature_shape": (2**62,), "scales": {"x": (1.0,)}})]
CHANGES += [(1, {"passes": 21, "rate": None, "feature_shape": None}), (1, {"rate": 1.0})]
CHANGES += [(2, {"passes": 4, "step": 1e-2, "scales": None})]
CHANGES += [(2, {"scales": {"z": (1.0, 0.5, 2.0)}}), (2, {"scales": {"x": (1.0, 0.0, 2.0)}})]
SINGLE = [(at, {name: value}) for at, fields in CHANGES for name, value in fields.items()]
TOO_MANY = (2, {"scales": {"x": (1.0,) * 17}, "passes": 17})


@pytest.mark.parametrize(("position", "change"), [*SINGLE, TOO_MANY])
def test_another_plan_than_requested_is_refused(position, change):
    plans = list(FOUND)
    plans[position] = replace(plans[position], **change)
    with pytest.raises(FieldError):
        checked_model(planned(*plans), requested(ASKED))


LONG = [{"class_labels": ("a",) * (2**17 + 1)}, {"external_files": ("a" * 3000,) * 100}]


@pytest.mark.parametrize("change", LONG)
def test_a_description_of_too_many_names_is_refused(change):
    assert unpacked_model(packed_model(LOADED)) == LOADED
    description = replace(LOADED.description, **change)
    with pytest.raises(FieldError):
        unpacked_model(packed_model(replace(LOADED, description=description)))


def test_rows_have_the_classes_that_are_served_and_records_those_of_the_events():
    spec = output_spec(loaded_model(n_classes=1000, top_k=(1, 900)).resolved)
    assert (spec.n_top, spec.n_words - len(spec.columns), spec.n_recorded) == (10, 20, 900)
    assert spec.read_words(np.zeros((24, spec.n_words), np.float32)).numbers is not None
    wide = np.zeros((24, 100), np.float32)
    assert OutputMatrix(wide, 5, {}).numbers is None
