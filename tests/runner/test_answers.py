"""What the parent believes of a child: nothing it has not checked."""

import json

import numpy as np
import pytest

from howsure.statistics.records.build import build_records
from service.errors import (
    DeadlineExceeded,
    InferenceFailed,
    InvalidConfig,
    InvalidDataset,
    InvalidInput,
    InvalidOnnxModel,
    ModelRule,
    ServiceError,
    TooLarge,
    Violation,
)
from service.graph.description import OnnxModelDescription, OutputChoice, TensorSpec
from service.runner.messages.convert import FieldError, convert, to_fields
from service.runner.messages.failures import raise_failure
from service.runner.messages.frames import HEADER, Frame, Kind, Status, encode, parse_header
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.model_output import output_spec

CHOICE = OutputChoice("y", "logits", "y", "said", 4)
LOADED = LoadedOnnxModel(
    description=OnnxModelDescription(
        inputs=(TensorSpec("x", "float32", (None, 3)),),
        outputs=(TensorSpec("y", "float32", None),),
        opset=17,
        ir_version=8,
        class_labels=("a", "b", "c", "d"),
        external_files=(),
        fixed_batch=None,
    ),
    output=CHOICE,
    top_k=(1, 2),
    provider="CPUExecutionProvider",
    versions={"onnxruntime": "1"},
)
EXPECTED = output_spec(LOADED.resolved)
N_ROWS = 3


def head():
    words = np.full((N_ROWS, EXPECTED.n_words), 0.25, np.float32)
    words[:, : EXPECTED.n_top] = np.arange(4)
    return {"rows": words}


def records():
    return build_records(
        np.eye(N_ROWS, 4),
        LABELS,
        tie_keys=np.zeros(N_ROWS, dtype=np.uint32),
        top_k=(1, 2),
        logits=True,
    ).to_arrays()


LABELS = np.array([0, 1, 3])


def test_right_answers_are_taken():
    assert EXPECTED.columns == (
        "entropy",
        "neg_log_pmax",
        "neg_log_topk_mass_1",
        "neg_log_topk_mass_2",
        "margin",
        "energy",
    )
    assert EXPECTED.read_rows(head(), N_ROWS).outputs.top_classes.shape == (N_ROWS, 4)
    assert EXPECTED.records(records(), LABELS).n_samples == N_ROWS
    assert convert(to_fields(LOADED), LoadedOnnxModel) == LOADED


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:2],
        lambda a: a[:, :-1],
        lambda a: a.astype(np.float64),
        lambda a: a.ravel(),
    ],
)
def test_a_matrix_of_another_shape_or_type_is_refused(change):
    """Its values are those of a batch: see `test_lying_batches`."""
    with pytest.raises(FieldError):
        EXPECTED.read_rows({"rows": change(head()["rows"])}, N_ROWS)
    with pytest.raises(FieldError):
        EXPECTED.read_rows({}, N_ROWS)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("label", lambda a: a[::-1].copy()),
        ("label", lambda a: a.astype(np.int64)),
        ("label_rank", lambda a: a + 4),
        ("label_rank", lambda a: a - 4),
        ("top_classes", lambda a: a + 4),
        ("top_logits", lambda a: a * np.float32(np.nan)),
        ("uncertainty_entropy", lambda a: a / np.float32(0)),
        ("uncertainty_entropy", None),
        ("uncertainty_more", lambda _: np.zeros(3, dtype=np.float32)),
        ("sum_squares", None),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_wrong_records_are_refused(name, change):
    arrays = records()
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays.get(name))
    with pytest.raises(FieldError):
        EXPECTED.records(arrays, LABELS)


def test_records_of_another_number_of_rows_are_refused():
    with pytest.raises(FieldError):
        EXPECTED.records(records(), LABELS[:2])


@pytest.mark.parametrize("n_rows", [1, 100, 5000])
def test_right_answers_are_not_larger_than_allowed(n_rows):
    scores = np.random.default_rng(0).normal(size=(n_rows, 4))
    made = build_records(
        scores,
        np.zeros(n_rows, dtype=int),
        tie_keys=np.zeros(n_rows, dtype=np.uint32),
        top_k=(1, 2),
    )
    data = b"".join(encode(Frame(Kind.RECORD, 1, {}, made.to_arrays())))
    sent = parse_header(data[: HEADER.size]).tensor_bytes
    assert sent <= EXPECTED.most_record_bytes(n_rows) <= 2 * sent + 1000


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid-input", InvalidDataset),
        ("invalid-config", InvalidConfig),
        ("invalid-onnx-model", InvalidOnnxModel),
        ("too-large", TooLarge),
        ("inference-failed", InferenceFailed),
        ("deadline-exceeded", DeadlineExceeded),
    ],
)
def test_reported_failures_are_raised(code, kind):
    fields = {"code": code, "message": "m", "violations": [["where", "what", "not-onnx"]]}
    with pytest.raises(ServiceError) as caught:
        raise_failure(Frame(Kind.LOAD, 1, fields, status=Status.FAILED), invalid=InvalidDataset)
    assert type(caught.value) is kind
    assert caught.value.violations == (Violation("where", "what", ModelRule.NOT_ONNX),)


@pytest.mark.parametrize(
    "change",
    [
        {"code": "storage-full"},
        {"code": None},
        {"message": "m" * 10_000},
        {"message": "\ud800"},
        {"violations": "x"},
        {"violations": [["where", "what"]]},
        {"violations": [[1, 2, ""]]},
        {"violations": [["where", "what", "a rule that there is not"]]},
    ],
)
def test_impossible_failures_are_refused(change):
    fields = {"code": "invalid-input", "message": "m", "violations": []} | change
    with pytest.raises(FieldError):
        raise_failure(Frame(Kind.LOAD, 1, fields, status=Status.FAILED), invalid=InvalidInput)


def replaced(path, value):
    """Return the fields of a description with one value replaced, or taken away."""
    fields = json.loads(json.dumps(to_fields(LOADED)))
    place = fields
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return fields


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["provider"], 3),
        (["provider"], KeyError),
        (["versions"], ["a"]),
        (["top_k"], [0]),
        (["top_k"], [True]),
        (["output"], {}),
        (["output"], "y"),
        (["output", "n_classes"], 1),
        (["output", "kind"], "odds"),
        (["output", "tensor"], None),
        (["output", "raw"], 1),
        (["output", "precision"], "float8"),
        (["output", "positive_column"], -1),
        (["description"], None),
        (["description", "opset"], "17"),
        (["description", "fixed_batch"], 0),
        (["description", "class_labels"], [1.5]),
        (["description", "external_files"], [None]),
        (["description", "inputs"], [None]),
        (["description", "inputs"], [{"name": "\udcff", "dtype": "float32", "shape": None}]),
        (["description", "inputs"], [{"name": "x", "dtype": 1, "shape": None}]),
        (["description", "inputs"], [{"name": "x", "dtype": "float32", "shape": ["N"]}]),
    ],
)
def test_impossible_descriptions_are_refused(path, value):
    with pytest.raises(FieldError):
        convert(replaced(path, value), LoadedOnnxModel)


def test_a_stored_choice_that_was_damaged_is_refused():
    assert convert(CHOICE.as_dict(), OutputChoice) == CHOICE
    for damaged in ({}, {"output": None}, {**LOADED.resolved, "top_k": [1.0]}):
        with pytest.raises(FieldError):
            output_spec(damaged)
