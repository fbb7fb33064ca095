"""Labels, outputs, scores and rows as users hold them: arrays, lists, Series and frames."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from running_service import DIGITS

from howsure.client import Client, HowsureError

QUICK = {"bins": 4, "folds": 2}
MODEL = DIGITS / "model.onnx"
RNG = np.random.default_rng(5)
N = 240
P = RNG.beta(1, 1, N).round(4)
HIT = RNG.random(N) < P
BOTH = np.stack([1 - P, P], axis=1)
NAMES = ["no", "yes"]
BY_NAME = np.where(HIT, "yes", "no")
PIXELS = [f"pixel{k}" for k in range(64)]
EXPECTED = np.mean((P > 0.5) == HIT)


@pytest.fixture(scope="module")
def client(url):
    with Client(url) as client:
        yield client


@pytest.fixture(scope="module")
def binary(client):
    return client.calibrate(probabilities=BOTH, labels=HIT.astype(int), name="binary", **QUICK)


@pytest.mark.parametrize(
    "labels",
    [
        HIT.astype(float),
        HIT.astype(np.float16),
        HIT,
        HIT.astype(float).tolist(),
        pd.Series(HIT.astype(float), index=range(7, N + 7)),
        pd.Series(HIT, dtype="boolean"),
        pd.Series(HIT.astype(int), dtype="Int8"),
        pd.Series(HIT.astype(int), dtype=pd.ArrowDtype(pa.int64())),
        pd.Series(HIT.astype(int), dtype="category"),
        pd.Categorical(HIT.astype(int)),
        pd.Series(HIT.astype(int).astype(object)),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_labels_of_any_type_are_indices(client, labels) -> None:
    for samples in (
        {"probabilities": BOTH, "labels": labels},
        {"probabilities": pd.DataFrame(BOTH, columns=[0, 1]), "labels": labels},
        {"calibration": {"probabilities": BOTH, "labels": labels}},
    ):
        found = client.dry_run(**samples, **QUICK)
        assert found["data"]["class_counts"] == [N - HIT.sum(), HIT.sum()]


def test_a_label_that_is_no_class_is_refused_by_its_row(client) -> None:
    labels = HIT.astype(float)
    labels[17] = 8.5
    with pytest.raises(HowsureError, match=r"labels\[17\].*'8.5'"):
        client.dry_run(probabilities=BOTH, labels=labels)
    with pytest.raises(HowsureError, match=r"label\[17\].*'8.5'"):
        client.dry_run(probabilities=pd.DataFrame(BOTH, columns=[0, 1]), labels=labels)


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan])
def test_a_missing_label_is_refused_by_its_row(client, missing) -> None:
    labels = [*BY_NAME[:17].tolist(), missing, *BY_NAME[18:].tolist()]
    with pytest.raises(ValueError, match=r"labels\[17\]: .*leave out"):
        client.dry_run(probabilities=BOTH, labels=pd.Series(labels, dtype=object), classes=NAMES)


@pytest.mark.parametrize("dtype", ["U3", object, "category", "string", pd.ArrowDtype(pa.string())])
def test_labels_are_names_where_classes_are_told(client, dtype) -> None:
    is_numpy = dtype in {"U3", object} if isinstance(dtype, str | type) else False
    labels = BY_NAME.astype(dtype) if is_numpy else pd.Series(BY_NAME, dtype=dtype)
    found = client.dry_run(probabilities=BOTH, labels=labels, classes=NAMES)
    assert found["data"]["class_counts"] == [N - HIT.sum(), HIT.sum()]


def test_labels_that_are_names_need_classes(client) -> None:
    with pytest.raises(ValueError, match=r"such as '(yes|no)': pass .*classes=\["):
        client.calibrate(probabilities=BOTH, labels=BY_NAME)
    with pytest.raises(ValueError, match=r"classes=\["):
        client.calibrate(MODEL, (np.zeros((N, 64), np.float32), BY_NAME.tolist()))
    with pytest.raises(ValueError, match=r"labels\[\d+\]: .* such as 'nein', 'yes', got 'no'"):
        client.calibrate(probabilities=BOTH, labels=BY_NAME, classes=["nein", "yes"])
    with pytest.raises(ValueError, match="expected the name of one class only"):
        client.calibrate(probabilities=BOTH, labels=BY_NAME, classes=["yes", "yes"])


def test_a_further_set_has_labels_by_the_names_of_the_calibration(client) -> None:
    made = client.calibrate(
        probabilities=BOTH, labels=BY_NAME, classes=NAMES, name="by-name", **QUICK
    )
    further = client.evaluate(made, {"probabilities": BOTH, "labels": BY_NAME}, name="next")
    assert further.result["events"]["1"]["accuracy"] == pytest.approx(EXPECTED)


@pytest.mark.parametrize("given", [P, P.tolist(), pd.Series(P), pd.DataFrame({"p": P})])
def test_probabilities_of_class_1_are_enough(client, binary, given) -> None:
    made = client.calibrate(probabilities=given, labels=HIT, name="column", **QUICK)
    assert made.accuracy[1] == binary.accuracy[1] == pytest.approx(EXPECTED)
    expected = client.predict(binary, probabilities=BOTH)
    found = client.predict(made, probabilities=given)
    assert np.array_equal(found.class_, expected.class_)
    assert found.top1.probability == pytest.approx(expected.top1.probability)


FRAME = pd.DataFrame(BOTH, columns=NAMES)
OTHER_SETS = {
    "a pair": ((BOTH, HIT.astype(int)), None),
    "a pair of a column": ((P, HIT.astype(int)), None),
    "an array": (BOTH, HIT.astype(int)),
    "a list and labels": ((BOTH.tolist(), HIT.astype(int).tolist()), None),
    "a pair of a frame": ((FRAME, BY_NAME), None),
    "a frame": (FRAME, BY_NAME),
    "a frame of both": (FRAME.assign(label=BY_NAME), None),
    "arrays by name": ({"probabilities": BOTH, "labels": HIT.astype(int)}, None),
}


@pytest.mark.parametrize("form", OTHER_SETS)
def test_other_sets_of_outputs_are_as_the_calibration_set(client, form) -> None:
    samples, labels = OTHER_SETS[form]
    named = f"other-{form.replace(' ', '-')}"
    made = client.calibrate(
        probabilities=FRAME,
        labels=BY_NAME,
        evaluation=samples,
        evaluation_labels=labels,
        classes=NAMES,
        name=named,
        **QUICK,
    )
    figures = client.report(made)["events"]["1"]["figures"]
    assert figures["set"] == "evaluation"
    assert figures["accuracy"]["value"] == pytest.approx(EXPECTED)
    found = client.evaluate(made, samples, labels=labels, name="later")
    assert found.resource["result"]["events"]["1"]["accuracy"] == pytest.approx(EXPECTED)


def test_pairs_are_evaluated_as_they_were_calibrated(client) -> None:
    made = client.calibrate(scores=P, labels=HIT, evaluation=(P, HIT), name="scored", **QUICK)
    assert client.report(made)["events"]["1"]["figures"]["set"] == "evaluation"
    table = pd.DataFrame({"score": P})
    forms = (("pair", (P, HIT), None), ("array", P, HIT), ("frame", table, HIT))
    forms += (("whole frame", table.assign(correct=HIT), None),)
    for name, samples, labels in forms:
        found = client.evaluate(made, samples, labels=labels, name=name)
        assert found.resource["result"]["events"]["1"]["accuracy"] == pytest.approx(HIT.mean())


def test_outputs_of_a_row_by_class_name_are_found(client) -> None:
    made = client.calibrate(probabilities=FRAME, labels=BY_NAME, name="by-class", **QUICK)
    expected = client.predict(made, probabilities=BOTH)
    found = client.predict(made, probabilities=FRAME[["yes", "no"]].to_dict("records"))
    assert np.array_equal(found.top1.probability, expected.top1.probability)
    rows = FRAME.to_dict("records")
    rows[3]["yes"] = None
    with pytest.raises(HowsureError, match=r"probabilities\[3\].yes: expected a number"):
        client.predict(made, probabilities=rows, rows_per_request=2)


def test_a_row_is_not_taken_for_a_column_of_probabilities(client, binary) -> None:
    with pytest.raises(ValueError, match=r"for one row write \[\[…\]\]"):
        client.predict(binary, probabilities=[0.3, 0.7])
    assert len(client.predict(binary, probabilities=[0.3])) == 1


def test_percentages_of_class_1_are_refused(client, binary) -> None:
    with pytest.raises(ValueError, match=r"probabilities\[0\]: .* divide percentages by 100"):
        client.dry_run(probabilities=100 * P, labels=HIT)
    with pytest.raises(ValueError, match="divide percentages by 100"):
        client.predict(binary, probabilities=100 * P)


@pytest.mark.parametrize(
    "given",
    [
        {"scores": P, "labels": HIT},
        {"scores": P.tolist(), "labels": HIT.astype(float)},
        {"scores": pd.Series(P), "labels": pd.Series(HIT)},
        {"scores": pd.DataFrame({"anything": P}), "labels": HIT},
        {"scores": pd.DataFrame({"score": P, "correct": HIT})},
        {"calibration": pd.DataFrame({"correct": HIT, "confidence": P})},
    ],
)
def test_scores_are_calibrated_and_answered(client, given) -> None:
    made = client.calibrate(**given, name="judge", **QUICK)
    assert made.serve == {1: "score"}
    predictions = client.predict(made, scores=P)
    expected = predictions.top1.probability
    with pytest.raises(AttributeError, match="predictions for scores have no classes"):
        predictions.class_  # noqa: B018 - a property
    for scores in (
        pd.DataFrame({"anything": P}),
        pd.DataFrame({"correct": HIT, "score": P}),
        P[:, np.newaxis],
    ):
        found = client.predict(made, scores=scores).top1.probability
        assert np.array_equal(found, expected)


def test_scores_in_an_unknown_column_are_refused(client) -> None:
    frame = pd.DataFrame({"a": P, "b": P})
    with pytest.raises(ValueError, match="pass the column of scores"):
        client.predict("judge", scores=frame)
    with pytest.raises(ValueError, match="pass the column of scores"):
        client.calibrate(scores=frame, labels=HIT)


@pytest.mark.parametrize(
    "samples",
    [pd.DataFrame({"x": P, "label": HIT}), {"inputs": P, "labels": HIT}, (P, HIT), P],
    ids=lambda samples: type(samples).__name__,
)
def test_samples_in_the_place_of_the_model_are_refused(client, samples) -> None:
    with pytest.raises(TypeError, match=r"model: expected an ONNX file, got .*calibration="):
        client.calibrate(samples)


@pytest.mark.parametrize("samples", [[1, 2, 3], 7], ids=lambda one: type(one).__name__)
def test_samples_of_another_type_are_refused(client, samples) -> None:
    with pytest.raises(TypeError, match=r"calibration: expected a path, .* got"):
        client.calibrate(MODEL, samples)


@pytest.mark.parametrize("samples", [(P, HIT, HIT), ("inputs.npy", "labels.npy")])
def test_anything_but_a_pair_of_arrays_is_refused(client, samples) -> None:
    with pytest.raises(TypeError, match=r"calibration: expected a pair of arrays"):
        client.calibrate(MODEL, samples)


@pytest.fixture(scope="module")
def digits_set():
    with np.load(DIGITS / "calibration.npz") as archive:
        return pd.DataFrame(archive["inputs"], columns=PIXELS), archive["labels"]


@pytest.fixture(scope="module")
def by_column(client, digits_set):
    return client.calibrate(MODEL, digits_set, name="by-column", **QUICK)


def test_one_row_by_name_needs_no_list(client, digits_set, by_column) -> None:
    row = digits_set[0].iloc[3].to_dict()
    alone, listed = client.predict(by_column, row), client.predict(by_column, [row])
    assert len(alone) == 1
    assert alone.top1.probability == listed.top1.probability
    assert not alone.by_position


@pytest.mark.parametrize("boolean", [bool, np.bool_])
def test_booleans_in_a_row_are_0_and_1(client, by_column, boolean) -> None:
    row = dict.fromkeys(PIXELS, 0.0) | {"pixel20": 1, "pixel30": 1}
    expected = client.predict(by_column, row)
    found = client.predict(by_column, row | {"pixel20": boolean(1), "pixel30": boolean(1)})
    assert found.topk_score == pytest.approx(expected.topk_score)


@pytest.mark.parametrize("n_rows", [25, 600])
@pytest.mark.parametrize("form", ["frame", "array", "dict", "file"])
def test_labels_beside_any_samples(client, digits_set, by_column, tmp_path, form, n_rows) -> None:
    frame, labels = digits_set[0][:n_rows], digits_set[1][:n_rows]
    np.save(tmp_path / "inputs.npy", frame.to_numpy())
    samples = {
        "frame": frame,
        "array": frame.to_numpy(),
        "dict": {"inputs": frame.to_numpy()},
        "file": tmp_path / "inputs.npy",
    }[form]
    found = client.dry_run(MODEL, samples, labels=labels, evaluation=samples,
                           evaluation_labels=labels[:, np.newaxis])  # fmt: skip
    assert found["data"]["class_counts"] == np.bincount(labels, minlength=10).tolist()
    assert found["data"]["evaluation_samples"] == n_rows
    name = f"{form} of {n_rows}"
    assert client.evaluate(by_column, samples, labels=labels, name=name).labelled
    assert not client.evaluate(by_column, samples, name=f"{name}, no labels").labelled


def test_labels_given_twice_are_refused(client, digits_set) -> None:
    frame, labels = digits_set
    for samples in ({"inputs": frame, "labels": labels}, (frame, labels), frame.assign(label=0)):
        with pytest.raises((HowsureError, ValueError), match="label"):
            client.dry_run(MODEL, samples, labels=labels[::-1])


def test_options_may_be_arrays_and_numbers_of_numpy(client) -> None:
    options = {"bins": np.int64(4), "classes": np.array(NAMES), "measures": ("entropy",)}
    found = client.dry_run(probabilities=P, labels=BY_NAME, targets=np.array([0.9]), **options)
    assert found["config"]["bins"] == 4
    assert found["config"]["classes"] == NAMES
    assert found["config"]["targets"] == [0.9]
    with pytest.raises(TypeError, match=r"expected values for JSON, .* got set"):
        client.dry_run(probabilities=P, labels=HIT, classes={"no", "yes"})
    with pytest.raises(ValueError, match="expected finite numbers"):
        client.dry_run(probabilities=P, labels=HIT, prior_strength=float("nan"))


@pytest.mark.parametrize(
    "rows", ["rows.csv", 7, (row for row in P)], ids=["file", "number", "generator"]
)
def test_rows_of_another_type_are_refused(client, binary, rows) -> None:
    with pytest.raises(ValueError, match=r"inputs: expected rows as an array, .* got"):
        client.predict(binary, rows)


@pytest.mark.parametrize("size", [0, -1])
def test_requests_have_rows(client, binary, size) -> None:
    with pytest.raises(ValueError, match="rows_per_request must be 1 or more"):
        client.predict(binary, probabilities=P, rows_per_request=size)
