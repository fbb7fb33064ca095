"""Labels, outputs, scores and rows as users hold them: arrays, lists, Series and frames."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from running_service import DIGITS, QUICK

from howsure.client import HowsureError
from howsure.client.labels import label_array, positions_of

MODEL = DIGITS / "model.onnx"
RNG = np.random.default_rng(5)
N = 240
P = RNG.beta(1, 1, N).round(4)
HIT = RNG.random(N) < P
INDEX = HIT.astype(int)
BOTH = np.stack([1 - P, P], axis=1)
NAMES = ["no", "yes"]
BY_NAME = np.where(HIT, "yes", "no")
PIXELS = [f"pixel{k}" for k in range(64)]
EXPECTED = np.mean((P > 0.5) == HIT)
FRAME = pd.DataFrame(BOTH, columns=NAMES)
LABELS = {
    "floats": HIT.astype(float),
    "half floats": HIT.astype(np.float16),
    "booleans": HIT,
    "a list": HIT.astype(float).tolist(),
    "a series with an index": pd.Series(HIT.astype(float), index=range(7, N + 7)),
    "nullable booleans": pd.Series(HIT, dtype="boolean"),
    "nullable integers": pd.Series(INDEX, dtype="Int8"),
    "arrow integers": pd.Series(INDEX, dtype=pd.ArrowDtype(pa.int64())),
    "categories": pd.Series(INDEX, dtype="category"),
    "a categorical": pd.Categorical(INDEX),
    "objects": pd.Series(INDEX.astype(object)),
    "names": BY_NAME,
    "names in objects": BY_NAME.astype(object),
    "categories of names": pd.Series(BY_NAME, dtype="category"),
    "strings": pd.Series(BY_NAME, dtype="string"),
    "arrow strings": pd.Series(BY_NAME, dtype=pd.ArrowDtype(pa.string())),
}


@pytest.fixture(scope="module")
def binary(client):
    return client.calibrate(probabilities=BOTH, labels=INDEX, name="binary", **QUICK)


@pytest.fixture(scope="module")
def by_name(client):
    """A calibration of the same samples with named classes, and with an evaluation set."""
    named = {"labels": BY_NAME, "classes": NAMES, "evaluation_labels": BY_NAME}
    return client.calibrate(probabilities=FRAME, evaluation=FRAME, name="by-name", **named, **QUICK)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_are_indices(kind) -> None:
    np.testing.assert_array_equal(label_array(LABELS[kind], positions_of(NAMES)), INDEX)


def changed(labels: np.ndarray, value: object) -> np.ndarray:
    """Return labels of which one is another."""
    other = labels.astype(object)
    other[17] = value
    return other


NAMED = {"probabilities": BOTH, "labels": BY_NAME}
COLUMN = {"probabilities": P, "labels": HIT}
TWO = pd.DataFrame({"a": P, "b": P})
# What is refused before anything is sent: method, options, exception, and part of its message.
REFUSED = [
    *(
        ("dry_run", NAMED | {"labels": changed(BY_NAME, missing)}, ValueError, r"labels\[17\]")
        for missing in (None, pd.NA, np.nan)
    ),
    ("calibrate", NAMED | {"classes": ["nein", "yes"]}, ValueError, r"labels\[\d+\]: .*'no'"),
    ("calibrate", NAMED | {"classes": ["yes", "yes"]}, ValueError, "one class"),
    ("dry_run", COLUMN | {"probabilities": 100 * P}, ValueError, r"probabilities\[0\]: .*by 100"),
    ("dry_run", COLUMN | {"classes": {"no", "yes"}}, TypeError, "JSON.* got set"),
    ("dry_run", COLUMN | {"prior_strength": float("nan")}, ValueError, "finite"),
    ("calibrate", {"scores": TWO, "labels": HIT}, ValueError, "column of scores"),
    ("predict", {"scores": TWO}, ValueError, "column of scores"),
    ("calibrate", {}, ValueError, "calibration set"),
    ("calibrate", {"logits": [[1.0, 2.0]]}, ValueError, "labels"),
    ("calibrate", {"calibration": {"inputs": [[1.0], [1.0, 2.0]]}}, ValueError, "inhomog|objects"),
    ("calibrate", {"calibration": {"inputs": np.array([None])}}, ValueError, "objects"),
    ("calibrate", {"calibration": {}, "evaluation_labels": [1]}, ValueError, "evaluation beside"),
    ("calibrate", {"calibration": b"", "scores": TWO[["a"]][:0]}, ValueError, "in its place"),
    ("calibrate", {"logits": [[1.0]], "scores": [1.0], "labels": [0]}, ValueError, "one of them"),
    ("predict", {}, ValueError, "exactly one"),
    ("predict", {"inputs": [[1.0]], "logits": [[1.0]]}, ValueError, "exactly one"),
    ("predict", {"inputs": {"a": [1.0, 2.0], "b": [1.0]}}, ValueError, "number of rows"),
    ("predict", {"scores": 0.3}, ValueError, "scores: .* got float"),
    ("predict", {"probabilities": 100 * P}, ValueError, "by 100"),
    ("predict", {"probabilities": [0.3, 0.7]}, ValueError, r"\[\[…\]\]"),
    *(
        ("predict", {"probabilities": P, "rows_per_request": size}, ValueError, "rows_per_request")
        for size in (0, -1)
    ),
    *(
        ("predict", {"inputs": rows}, ValueError, "inputs: .* got")
        for rows in ("rows.csv", 7, 3.0, (row for row in P))
    ),
    *(
        ("calibrate", {"model": samples}, TypeError, "model: .*calibration=")
        for samples in (FRAME.assign(label=HIT), {"inputs": P, "labels": HIT}, (P, HIT), P)
    ),
    *(
        ("calibrate", {"model": MODEL, "calibration": samples}, TypeError, "calibration: .*")
        for samples in ([1, 2, 3], 7, (P, HIT, HIT), ("inputs.npy", "labels.npy"))
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {' '.join(case[1])}")
def test_what_cannot_be_sent_is_refused(client, binary, case) -> None:
    method, options, exception, message = case
    calibration = [binary] if method == "predict" else []
    with pytest.raises(exception, match=message):
        getattr(client, method)(*calibration, **options)


def test_names_alone_have_the_order_of_their_names(client, binary) -> None:
    made = client.calibrate(**NAMED, name="by-order", **QUICK)
    assert made.accuracy == binary.accuracy
    assert any("no=0, yes=1" in warning for warning in made.warnings)


def test_probabilities_of_class_1_are_enough(client, binary) -> None:
    assert binary.accuracy[1] == pytest.approx(EXPECTED)
    made = client.calibrate(probabilities=P, labels=HIT, name="column", **QUICK)
    assert made.accuracy == binary.accuracy
    expected = client.predict(binary, probabilities=BOTH)
    for column in (P, P.tolist(), pd.Series(P), pd.DataFrame({"p": P})):
        tried = client.dry_run(probabilities=column, labels=HIT, **QUICK)
        assert tried["accuracy"]["value"] == binary.accuracy[1]
        predictions = client.predict(made, probabilities=column)
        assert np.array_equal(predictions.class_, expected.class_)
        assert predictions.top1.probability == pytest.approx(expected.top1.probability)
    assert len(client.predict(binary, probabilities=[0.3])) == 1


OTHER_SETS = {
    "a pair of a column": ((P, INDEX), None),
    "an array": (BOTH, INDEX),
    "a pair of a frame": ((FRAME, BY_NAME), None),
    "a frame of both": (FRAME.assign(label=BY_NAME), None),
    "arrays and names": ({"probabilities": BOTH, "labels": BY_NAME}, None),
}


@pytest.mark.parametrize("form", OTHER_SETS)
def test_other_sets_of_outputs_are_as_the_calibration_set(client, by_name, form) -> None:
    samples, labels = OTHER_SETS[form]
    further = client.evaluate(by_name, samples, labels=labels, name=form)
    assert further.result["events"]["1"]["accuracy"] == pytest.approx(EXPECTED)
    figures = client.report(by_name)["events"]["1"]["figures"]
    assert figures["set"] == "evaluation"
    assert figures["accuracy"]["value"] == further.result["events"]["1"]["accuracy"]


def test_outputs_of_a_row_by_class_name_are_found(client, by_name) -> None:
    expected = client.predict(by_name, probabilities=BOTH)
    predictions = client.predict(by_name, probabilities=FRAME[["yes", "no"]].to_dict("records"))
    assert np.array_equal(predictions.top1.probability, expected.top1.probability)
    rows = FRAME.to_dict("records")
    rows[3]["yes"] = None
    with pytest.raises(HowsureError, match=r"probabilities\[3\].yes"):
        client.predict(by_name, probabilities=rows, rows_per_request=2)


SCORES = [
    {"scores": P.tolist(), "labels": HIT.astype(float)},
    {"scores": pd.Series(P), "labels": pd.Series(HIT)},
    {"scores": pd.DataFrame({"anything": P}), "labels": HIT},
    {"scores": pd.DataFrame({"score": P, "correct": HIT})},
    {"scores": pa.table({"correct": HIT, "score": P})},
    {"calibration": pd.DataFrame({"correct": HIT, "confidence": P})},
]


def test_scores_are_calibrated_evaluated_and_answered(client) -> None:
    for samples in SCORES:
        tried = client.dry_run(**samples, bins=3)
        assert (tried["data"]["kind"], tried["data"]["samples"]) == ("pairs", N)
    quick = {"bins": 3, "folds": 2}
    made = client.calibrate(scores=P, labels=HIT, evaluation=(P, HIT), name="judge", **quick)
    assert made.serve == {1: "score"}
    assert client.report(made)["events"]["1"]["figures"]["set"] == "evaluation"
    table = pd.DataFrame({"score": P})
    further = {"array": (P, HIT), "whole frame": (table.assign(correct=HIT), None)}
    for name, (samples, labels) in further.items():
        evaluation = client.evaluate(made, samples, labels=labels, name=name)
        assert evaluation.result["events"]["1"]["accuracy"] == pytest.approx(HIT.mean())
    predictions = client.predict(made, scores=P)
    with pytest.raises(AttributeError, match="classes"):
        predictions.class_  # noqa: B018 - a property
    forms = (pd.DataFrame({"anything": P}), pd.DataFrame({"correct": HIT, "score": P}), P[:, None])
    for scores in (*forms, pa.table({"correct": HIT, "score": P})):
        again = client.predict(made, scores=scores)
        assert np.array_equal(again.top1.probability, predictions.top1.probability)


@pytest.fixture(scope="module")
def digits_set():
    with np.load(DIGITS / "calibration.npz") as archive:
        return pd.DataFrame(archive["inputs"], columns=PIXELS), archive["labels"]


def test_one_row_by_name_needs_no_list(client, digits_set) -> None:
    by_column = client.calibrate(MODEL, digits_set, name="by-column", **QUICK)
    row = digits_set[0].iloc[3].to_dict()
    alone, listed = client.predict(by_column, row), client.predict(by_column, [row])
    assert len(alone) == 1
    assert alone.top1.probability == listed.top1.probability
    assert not alone.by_position
    row = dict.fromkeys(PIXELS, 0.0) | {"pixel20": 1, "pixel30": 1}
    expected = client.predict(by_column, row)
    for boolean in (bool, np.bool_):
        flags = row | {"pixel20": boolean(1), "pixel30": boolean(1)}
        assert client.predict(by_column, flags).topk_score == pytest.approx(expected.topk_score)


@pytest.mark.parametrize("form", ["frame", "array", "dict", "file"])
def test_labels_beside_any_samples(client, digits_set, tmp_path, form) -> None:
    n_rows = 25
    frame, labels = digits_set[0][:n_rows], digits_set[1][:n_rows]
    np.save(tmp_path / "inputs.npy", frame.to_numpy())
    array, file = frame.to_numpy(), tmp_path / "inputs.npy"
    samples = {"frame": frame, "array": array, "dict": {"inputs": array}, "file": file}[form]
    tried = client.dry_run(MODEL, samples, labels=labels, evaluation=samples,
                           evaluation_labels=labels[:, np.newaxis])  # fmt: skip
    assert tried["data"]["class_counts"] == np.bincount(labels, minlength=10).tolist()
    assert tried["data"]["evaluation_samples"] == n_rows


def test_labels_given_twice_are_refused(client, digits_set) -> None:
    frame, labels = digits_set
    for samples in ({"inputs": frame, "labels": labels}, (frame, labels), frame.assign(label=0)):
        with pytest.raises((HowsureError, ValueError), match="label"):
            client.dry_run(MODEL, samples, labels=labels[::-1])


def test_options_may_be_arrays_and_numbers_of_numpy(client) -> None:
    options = {"bins": np.int64(4), "classes": np.array(NAMES), "measures": ("entropy",)}
    tried = client.dry_run(probabilities=P, labels=BY_NAME, targets=np.array([0.9]), **options)
    config = tried["config"]
    assert (config["bins"], config["classes"], config["targets"]) == (4, NAMES, [0.9])
